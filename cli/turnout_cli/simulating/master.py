"""The master of the made-up world: carries out what the real `MasterCore` decides, as the product's service does.

Its clock, its network and its log are made up. A crash throws the core away; the next one has a higher epoch.
"""

from collections.abc import Sequence
from typing import assert_never

from turnout_api.lending import LeaseAnswer, ModelRef, NodeState, QueueEvent, Reason
from turnout_cli.simulating.ledger import Ledger
from turnout_cli.simulating.relay import Relay, Routes
from turnout_cli.simulating.schedule import Clock
from turnout_cli.simulating.watch_master import MasterWatch
from turnout_router.lending.effects import Admitted, Answer, MasterEffect, Poll, Push, RelayRefused, Stall, Write
from turnout_router.lending.links import Link
from turnout_router.lending.master import MasterCore
from turnout_router.lending.plan import plan
from turnout_router.lending.settings import LendingSettings


class SimMaster:
    """One run of the master's process."""

    def __init__(
        self,
        routes: Routes,
        name: str,
        clock: Clock,
        ledger: Ledger,
        *,
        settings: LendingSettings,
        links: Sequence[Link],
        epoch: int,
    ) -> None:
        self.name = name
        self.up = True
        self.epoch = epoch
        self.relays: dict[str, Relay] = {}
        """Lent requests on their way, by request."""
        self.stopped: set[str] = set()
        """Requests whose owner took them back: one that still comes is too late."""
        self._routes = routes
        self._clock = clock
        self._ledger = ledger
        self._core = MasterCore(settings, links, clock.now(), epoch=epoch, planner=plan)
        self.watch = MasterWatch(settings, links, epoch)
        self._polls: dict[str, int] = {}
        """Node → number of the poll that is out."""
        self._again: set[str] = set()
        """Nodes to be polled once more after that: what they say now may be older than what was asked."""
        self._poll_count = 0
        self._timer_at: float | None = None
        self._arm()

    def configure(self, settings: LendingSettings, links: Sequence[Link]) -> None:
        """Other settings or links."""
        self.watch.configure(settings, links)
        self._carry_out(self._core.configure(settings, links, self._clock.now()))

    def drain(self) -> None:
        """Another master takes over: no leases from here on."""
        self.watch.drains()
        self._carry_out(self._core.drain(self._clock.now()))

    def crash(self) -> None:
        """The process is killed: all its connections break."""
        self.up = False
        for relay in list(self.relays.values()):
            relay.master_crashed()
        self.relays.clear()

    def hear(self, event: QueueEvent) -> None:
        """`POST offload/event`."""
        if self.up:
            self.watch.hears(event)
            self._carry_out(self._core.on_event(event, self._clock.now()))
        else:
            self._routes.schedule.after(
                self._routes.network.spec.hop_s, self._routes.nodes[event.node].unanswered, event
            )

    def node_gone(self, node: str) -> None:
        """Its health poll failed."""
        if self.up:
            self.watch.loses(node)
            self._carry_out(self._core.on_node_gone(node, self._clock.now()))

    def admit(self, lease: str, owner_node: str, request_id: str) -> Admitted | RelayRefused:
        """Whether a lent request may pass."""
        now = self._clock.now()
        admission = self._core.admit(lease, owner_node, request_id, now)
        self.watch.admits(lease, owner_node, request_id, admission, now)
        if isinstance(admission, RelayRefused):
            self._ledger.write(admission.row, self.name, self._routes.schedule.now)
        self._arm()
        return admission

    def relay_ended(self, relay: Relay, *, refused: Reason | None = None) -> None:
        """A lent request has left the master."""
        self.relays.pop(relay.request.id, None)
        if self.up:
            effects = self._core.relay_ended(relay.request.id, self._clock.now(), refused=refused)
            self.watch.ends(relay.request.id, refused, effects)
            self._carry_out(effects)

    # Carrying out

    def _carry_out(self, effects: Sequence[MasterEffect]) -> None:
        self.watch.check(effects, self._clock.now())
        for effect in effects:
            self._do(effect)
        self._arm()

    def _do(self, effect: MasterEffect) -> None:
        match effect:
            case Write(row):
                self._ledger.write(row, self.name, self._routes.schedule.now)
            case Poll(node):
                self._poll(node)
            case Answer(owner, seq, answer, instance):
                self._answer(owner, seq, answer, instance)
            case Push(node, answer):
                self._routes.network.message(self.name, node, _not_told, self._routes.nodes[node].pushed, answer)
            case Stall(request_ids):
                for request_id in request_ids:
                    if (relay := self.relays.get(request_id)) is not None:
                        relay.stall()
            case _:
                assert_never(effect)

    def _answer(self, owner: ModelRef, seq: int, answer: LeaseAnswer, instance: str) -> None:
        node = self._routes.nodes[owner.node]
        self._routes.network.message(
            self.name, owner.node, node.answer_lost, node.answered, owner.model, seq, answer, instance
        )

    # Polls

    def _poll(self, node: str) -> None:
        if node in self._polls:
            self._again.add(node)
            return
        self._poll_count += 1
        self._polls[node] = self._poll_count
        self._routes.network.message(self.name, node, self._poll_failed, self._ask, node, self._poll_count)

    def _ask(self, node: str, poll: int) -> None:
        """At the node."""
        asked = self._routes.nodes[node]
        if asked.up:
            state = asked.state() if asked.knows_lending else None
            self._routes.network.message(node, self.name, self._poll_lost, self._told, node, poll, state)
        else:
            self._routes.schedule.after(self._routes.network.spec.hop_s, self._poll_failed, node, poll)

    def _told(self, node: str, poll: int, state: NodeState | None) -> None:
        if self._is_answer(node, poll):
            now = self._clock.now()
            self.watch.knows(node, state)
            if state is None:
                self._carry_out(self._core.on_state_unsupported(node, now))
            else:
                self._carry_out(self._core.on_state(node, state, now))
            self._poll_again(node)

    def _poll_lost(self, node: str, poll: int, _: NodeState | None) -> None:
        self._poll_failed(node, poll)

    def _poll_failed(self, node: str, poll: int) -> None:
        if self._is_answer(node, poll):
            self._carry_out(self._core.on_state_failed(node, self._clock.now()))
            self._poll_again(node)

    def _is_answer(self, node: str, poll: int) -> bool:
        if not self.up or self._polls.get(node) != poll:
            return False
        del self._polls[node]
        return True

    def _poll_again(self, node: str) -> None:
        if node in self._again:
            self._again.discard(node)
            self._poll(node)

    # Time

    def _arm(self) -> None:
        deadline = self._core.next_deadline()
        if deadline is not None and (self._timer_at is None or deadline < self._timer_at):
            self._timer_at = deadline
            self._routes.schedule.at(self._clock.true_time(deadline), self._on_timer, deadline)

    def _on_timer(self, deadline: float) -> None:
        if self.up and self._timer_at == deadline:
            self._timer_at = None
            self._carry_out(self._core.on_time(self._clock.reached(deadline)))


def _not_told(_: LeaseAnswer) -> None:
    """A push that was lost: the owner keeps what it has until it ends, or until it asks."""
