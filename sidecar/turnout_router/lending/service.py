"""The master's half of lending with a clock, a network and a database around it; `master.py` decides.

Everything runs in one event loop and only this object touches the core. Each event that came is a future until the core
answers it; a poll and a push are tasks with a short limit, so that a node that does not answer costs its own leases and
nobody else's time; one timer stands for all deadlines of the core.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol, assert_never

from turnout_api.lending import DecisionRow, LeaseAnswer, ModelRef, NodeState, QueueEvent, Reason
from turnout_router.alarm import Alarm
from turnout_router.cluster.peers import PeerFailed
from turnout_router.lending.effects import Admitted, Answer, MasterEffect, Poll, Push, RelayRefused, Stall, Write
from turnout_router.lending.links import Link
from turnout_router.lending.master import MasterCore
from turnout_router.lending.nodes import POLL_LIMIT_S
from turnout_router.lending.plan import plan
from turnout_router.lending.settings import LendingSettings

EVENT_TIMEOUT_S: Final = 10.0
"""An event that is not decided by then is answered by an error; the owner goes on by itself until its next one."""
PUSH_TIMEOUT_S: Final = 2.0

_Run = tuple[ModelRef, str]
"""An owner in one run of its process."""

log = logging.getLogger(__name__)


class NotDecided(Exception):
    """No answer to an event within EVENT_TIMEOUT_S."""


class Nodes(Protocol):
    """The routers of the cluster, this one among them, by node ID."""

    async def state(self, node: str, *, timeout_s: float) -> NodeState | None:
        """Its state now; None = it runs a build that knows no lending. Raises PeerFailed."""

    async def push(self, node: str, answer: LeaseAnswer, *, timeout_s: float) -> None:
        """Tell it of a decision that it did not ask for. Raises PeerFailed."""


@dataclass(slots=True, eq=False)
class Relayed:
    """A lent request that is on its way through the master."""

    request_id: str
    stop: asyncio.Future[str]
    """Why it is to end now: the word for the header `x-turnout-offload`."""
    ended: asyncio.Event = field(default_factory=asyncio.Event)


class LendingService:
    """The `MasterCore` of this process."""

    def __init__(
        self,
        settings: LendingSettings,
        links: Sequence[Link],
        nodes: Nodes,
        write: Callable[[DecisionRow], None],
        clock: Callable[[], float],
        *,
        epoch: int,
        ineligible: Mapping[str, str] | None = None,
    ) -> None:
        """`epoch` grows with each start; `ineligible` is link → why its models may not be linked as they are now."""
        self._nodes = nodes
        self._write = write
        self._clock = clock
        self._core = MasterCore(settings, links, clock(), epoch=epoch, planner=plan, ineligible=ineligible)
        self._asked: dict[_Run, list[tuple[int, asyncio.Future[LeaseAnswer]]]] = {}
        self._relayed: dict[str, Relayed] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._alarm = Alarm(self._on_time, clock)
        self._running = False
        self._stopped = False

    def start(self) -> None:
        """Begin to keep time."""
        self._running = True
        self._arm()

    async def stop(self) -> None:
        """Forget everything that is under way, and begin nothing any more."""
        self._running, self._stopped = False, True
        self._alarm.cancel()
        for task in (doing := list(self._tasks)):
            task.cancel()
        await asyncio.gather(*doing, return_exceptions=True)

    def configure(self, settings: LendingSettings, links: Sequence[Link], ineligible: Mapping[str, str]) -> None:
        """Take other settings, links, or reasons against links; what did not change disturbs nothing."""
        self._carry_out(self._core.configure(settings, links, self._clock(), ineligible=ineligible))

    def drain(self) -> None:
        """No leases from here on: another master takes over."""
        self._carry_out(self._core.drain(self._clock()))

    async def event(self, event: QueueEvent) -> LeaseAnswer:
        """What an owner may lend now. Raises NotDecided."""
        owner = ModelRef(event.node, event.model), event.instance
        answer: asyncio.Future[LeaseAnswer] = asyncio.get_running_loop().create_future()
        waiting = self._asked.setdefault(owner, [])
        waiting.append((event.seq, answer))
        self._carry_out(self._core.on_event(event, self._clock()))
        try:
            async with asyncio.timeout(EVENT_TIMEOUT_S):
                return await answer
        except TimeoutError as error:
            raise NotDecided(f"event {event.seq} of {event.node}/{event.model} is not decided yet") from error
        finally:
            self._forget(owner, answer)

    def node_gone(self, node: str) -> None:
        """A node was found unhealthy, or left the cluster."""
        self._carry_out(self._core.on_node_gone(node, self._clock()))

    def node_back(self, node: str) -> None:
        """A node is healthy again."""
        self._carry_out(self._core.on_node_back(node, self._clock()))

    def suspended(self) -> dict[str, str]:
        """Link → why nothing is lent over it for now."""
        return self._core.suspended(self._clock())

    def leases(self) -> int:
        """How many are live."""
        return self._core.live_leases(self._clock())

    # Lent requests on their way

    def admit(
        self, lease: str, owner_node: str, request_id: str, *, model: str = ""
    ) -> tuple[Admitted, Relayed] | RelayRefused:
        """Whether this request may go to the helper of the lease. Whoever is admitted calls `relay_ended` once."""
        admission = self._core.admit(lease, owner_node, request_id, self._clock(), model=model)
        if isinstance(admission, RelayRefused):
            self._write(admission.row)
            return admission
        relayed = Relayed(request_id, asyncio.get_running_loop().create_future())
        self._relayed[request_id] = relayed
        self._arm()
        return admission, relayed

    def relay_ended(self, relayed: Relayed, *, refused: Reason | None = None) -> None:
        """The request left the master, whatever way; `refused` = its helper could not serve it."""
        relayed.ended.set()
        del self._relayed[relayed.request_id]
        self._carry_out(self._core.relay_ended(relayed.request_id, self._clock(), refused=refused))

    def relayed(self, request_id: str) -> Relayed | None:
        """The request with this ID that is on its way now: two with one ID are never admitted."""
        return self._relayed.get(request_id)

    # Carrying out

    def _carry_out(self, effects: Sequence[MasterEffect]) -> None:
        for effect in effects:
            self._do(effect)
        self._arm()

    def _do(self, effect: MasterEffect) -> None:
        match effect:
            case Poll(node):
                self._spawn(self._poll(node), f"poll {node}")
            case Answer(owner, seq, answer, instance):
                self._answer((owner, instance), seq, answer)
            case Push(node, answer):
                self._spawn(self._push(node, answer), f"push leases to {node}")
            case Write(row):
                self._write(row)
            case Stall(request_ids):
                for relayed in map(self.relayed, request_ids):
                    if relayed is not None and not relayed.stop.done():
                        relayed.stop.set_result("stalled")
            case _:
                assert_never(effect)

    def _answer(self, owner: _Run, seq: int, answer: LeaseAnswer) -> None:
        for asked, future in self._asked.get(owner, ()):
            if asked <= seq and not future.done():
                future.set_result(answer)

    def _forget(self, owner: _Run, answer: asyncio.Future[LeaseAnswer]) -> None:
        left = [each for each in self._asked[owner] if each[1] is not answer]
        if left:
            self._asked[owner] = left
        else:
            del self._asked[owner]

    async def _poll(self, node: str) -> None:
        try:
            state = await self._nodes.state(node, timeout_s=POLL_LIMIT_S)
        except PeerFailed as error:
            log.info("the queue of %s could not be read: %s", node, error)
            effects = self._core.on_state_failed(node, self._clock())
        else:
            now = self._clock()
            core = self._core
            effects = core.on_state_unsupported(node, now) if state is None else core.on_state(node, state, now)
        self._carry_out(effects)

    async def _push(self, node: str, answer: LeaseAnswer) -> None:
        try:
            await self._nodes.push(node, answer, timeout_s=PUSH_TIMEOUT_S)
        except PeerFailed as error:
            # the node keeps what it has until its lifetime ends, or until it asks
            log.info("leases of %s could not be told to %s: %s", answer.model, node, error)

    def _arm(self) -> None:
        self._alarm.set(self._core.next_deadline() if self._running else None)

    def _on_time(self) -> None:
        self._carry_out(self._core.on_time(self._clock()))

    def _spawn(self, work: Coroutine[None, None, None], name: str) -> None:
        if self._stopped:
            work.close()
            return
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
