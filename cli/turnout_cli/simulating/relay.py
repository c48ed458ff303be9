"""The way of a lent request: owner → master → helper, and back.

Each hop is a connection that its two ends close on their own: an end knows only what reached it. So every end has its
own flag, every step looks at the flag of the end where it happens, and nothing looks at another router's.

Before a request runs again on its owner, a helper that may still have it is told to stop (`stop`). Only when that cannot
be confirmed is the request *excused*: it may then run twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from turnout_api.lending import ModelRef, Reason
from turnout_cli.simulating.network import Network
from turnout_cli.simulating.requests import Request
from turnout_cli.simulating.schedule import Do, Schedule
from turnout_router.lending.effects import Admitted, RelayRefused
from turnout_router.runtime.effects import LentEnding, Ticket

if TYPE_CHECKING:
    from turnout_cli.simulating.master import SimMaster
    from turnout_cli.simulating.node import SimNode


class Routes(Protocol):
    """How a router finds the others."""

    schedule: Schedule
    network: Network
    master: SimMaster
    nodes: dict[str, SimNode]


class Relay:
    """One lent request on its way."""

    __slots__ = (
        "_ending",
        "_routes",
        "admitted",
        "at_helper",
        "at_master",
        "at_owner",
        "broke",
        "helper",
        "lease",
        "master",
        "owner",
        "refused",
        "request",
        "stopping",
        "ticket",
    )

    def __init__(self, routes: Routes, request: Request, owner: SimNode, ticket: Ticket, lease: str) -> None:
        self._routes = routes
        self.request = request
        self.owner = owner
        self.ticket = ticket
        """At its owner."""
        self.lease = lease
        self.master = routes.master
        self.helper: SimNode | None = None
        self.admitted: Admitted | None = None
        self.at_owner = True
        """Open at the owner, …"""
        self.at_master = False
        self.at_helper = False
        self.broke = False
        """The answer is an error: the helper's backend broke while it generated, and nobody runs the request again."""
        self.stopping = False
        self.refused: Reason | None = None
        """Why it was not passed on, as its owner is told."""
        self._ending = LentEnding.STOPPED

    # There

    def begin(self) -> None:
        """The owner sends it to the master."""
        self._send(self.owner.name, self.master.name, self._unsent, self._reach_master)

    def _unsent(self) -> None:
        self.refused = Reason.FORWARD_FAILED
        self._reach_owner(LentEnding.REFUSED)

    def _reach_master(self) -> None:
        master = self.master
        if not master.up or self.request.id in master.stopped:
            self._refuse(Reason.FORWARD_FAILED)
            return
        admission = master.admit(self.lease, self.owner.name, self.request.id)
        if isinstance(admission, RelayRefused):
            self._refuse(admission.reason)
            return
        self.admitted, self.at_master = admission, True
        self.helper = self._routes.nodes[admission.helper.node]
        master.relays[self.request.id] = self
        self._send(master.name, self.helper.name, self._unreached, self._reach_helper)

    def _unreached(self) -> None:
        """Nobody listens at the helper: it cannot have seen the request."""
        if self.at_master:
            self.at_master = False
            self.master.relay_ended(self, refused=Reason.HELPER_UNREACHABLE)
            self._refuse(Reason.HELPER_UNREACHABLE)

    def _reach_helper(self) -> None:
        helper = self.helper
        assert helper is not None  # noqa: S101  the master found it
        if not helper.up:
            self._routes.network.stream(helper.name, self.master.name, self._unreached)
        elif self.request.id in helper.stopped:
            self._routes.network.stream(helper.name, self.master.name, self._master_hears, LentEnding.STOPPED)
        else:
            self.at_helper = True
            helper.borrow(self)

    def _send(self, source: str, target: str, unsent: Do, do: Do) -> None:
        network = self._routes.network
        if network.is_cut(source, target):
            self._routes.schedule.after(network.spec.timeout_s, unsent)
        else:
            network.stream(source, target, do)

    # And back

    def answer(self, how: LentEnding) -> None:
        """The helper is through with it."""
        self.at_helper = False
        assert self.helper is not None  # noqa: S101  it is the helper that answers
        self._routes.network.stream(self.helper.name, self.master.name, self._master_hears, how)

    def _master_hears(self, how: LentEnding) -> None:
        if self.at_master:
            self.at_master = False
            self.master.relay_ended(self, refused=Reason.FORWARD_FAILED if how is LentEnding.FAILED else None)
            self._back(how)

    def stall(self) -> None:
        """The master gives it up: its helper does not run it."""
        if self.at_master:
            self._close_at_master()
            self._back(LentEnding.STALLED)

    def _refuse(self, reason: Reason) -> None:
        self.refused = reason
        self._back(LentEnding.REFUSED)

    def _back(self, how: LentEnding) -> None:
        self._routes.network.stream(self.master.name, self.owner.name, self._reach_owner, how)

    def _reach_owner(self, how: LentEnding) -> None:
        if self.at_owner:
            self.at_owner = False
            self.owner.lent_ended(self, self._ending if self.stopping and how is not LentEnding.SERVED else how)

    # Closing, hop by hop

    def close(self) -> None:
        """The owner no longer wants it."""
        self.at_owner = False
        self._routes.network.stream(self.owner.name, self.master.name, self._close_at_master)

    def _close_at_master(self) -> None:
        if self.at_master:
            self.at_master = False
            self.master.relay_ended(self)
            self._close_to_helper()

    def _close_to_helper(self) -> None:
        if self.helper is not None:
            self._routes.network.stream(self.master.name, self.helper.name, self._close_at_helper)

    def _close_at_helper(self) -> None:
        if self.at_helper and self.helper is not None:
            self.at_helper = False
            self.helper.give_up(self)

    # Somebody is gone

    def owner_crashed(self) -> None:
        """Its kernel closes the connection."""
        self.close()

    def helper_crashed(self) -> None:
        """As above, on the other side."""
        self.answer(LentEnding.FAILED)

    def master_crashed(self) -> None:
        """Both its connections break."""
        self.at_master = False
        if self.helper is not None and self._routes.network.is_cut(self.master.name, self.helper.name):
            self.request.excused = True
        self._routes.network.stream(self.master.name, self.owner.name, self._broken)
        self._close_to_helper()

    def reset(self, one: str, other: str) -> None:
        """The connection between these two is given up by both its ends."""
        pair = {one, other}
        if self.at_owner and pair == {self.owner.name, self.master.name}:
            self._close_at_master()
            self._broken()
        if self.at_master and self.helper is not None and pair == {self.master.name, self.helper.name}:
            self.request.excused = self.request.excused or self.at_helper
            self._master_hears(LentEnding.FAILED)
            self._close_at_helper()

    def _broken(self) -> None:
        """The owner sees its connection end without an answer."""
        if self.at_owner:
            self.stop(LentEnding.FAILED)

    # Stopping

    def stop(self, ending: LentEnding) -> None:
        """The owner wants it back: `ending` is reported once the helper confirmed, or could not be reached."""
        if self.stopping:
            return
        self.stopping, self._ending = True, ending
        self._routes.network.message(self.owner.name, self.master.name, self._unstopped, self._stop_at_master)

    def _stop_at_master(self) -> None:
        master = self.master
        if not master.up:
            self._routes.schedule.after(self._routes.network.spec.hop_s, self._unstopped)
            return
        master.stopped.add(self.request.id)
        if self.helper is None or not self.at_master:
            self._answer_stop()
        else:
            self._routes.network.message(master.name, self.helper.name, self._unstopped, self._stop_at_helper)

    def _stop_at_helper(self) -> None:
        helper = self.helper
        assert helper is not None  # noqa: S101  it is there
        helper.stopped.add(self.request.id)
        self._close_at_helper()
        self._routes.network.message(helper.name, self.master.name, self._unstopped, self._answer_stop)

    def _answer_stop(self) -> None:
        if self.at_master:
            self._close_at_master()
        self._routes.network.message(self.master.name, self.owner.name, self._unstopped, self._stopped)

    def _unstopped(self) -> None:
        """Nobody could say that it no longer runs."""
        if self.at_owner:
            self.request.excused = True
            self._stopped()

    def _stopped(self) -> None:
        if self.at_owner:
            self.close()
            self.owner.lent_ended(self, self._ending)

    @property
    def owner_model(self) -> ModelRef:
        """The model that lends it."""
        return self.request.arrival.target
