"""One round of a namespace: read, plan, write. No decision is made here."""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from turnout_operator.api import Api, ApiError, WritesRefused
from turnout_operator.children import ChildKey, RouterPods, key_of
from turnout_operator.damping import Damper
from turnout_operator.known import Known
from turnout_operator.names import router_object
from turnout_operator.nudge import Nudger
from turnout_operator.plan import Memory, Observed, Outcome, Plan, Told, known_of, master_names, plan, token_references
from turnout_operator.reader import Reader
from turnout_operator.state import Kept, StateError
from turnout_operator.statuses import StatusWrite, of_unremembered

_SAID_AT_ONCE = 8
_SAYS_FOR_S = 0.3
"""A change waits no longer for statuses; so much is said between any two."""
_NOT_ABOUT_IT = {0, 429, 503, 504}
"""Statuses with which the API server speaks of itself, not of the object that it does not take."""

log = logging.getLogger(__name__)


def utc_now() -> datetime:
    """The time."""
    return datetime.now(UTC)


@dataclass(slots=True)
class _Secrets:
    """Of routers, by node, as they were read or written last."""

    there: dict[str, dict[str, Any]] = field(default_factory=dict)
    read_at: float = float("-inf")


@dataclass(slots=True)
class _Writes:
    """What became of the writes of a round."""

    done: Counter[str] = field(default_factory=Counter)
    refusals: list[ApiError] = field(default_factory=list)

    @property
    def count(self) -> int:
        """Objects; an Event is said beside one."""
        return self.done.total() - self.done["Events"]

    refused: dict[ChildKey, str] = field(default_factory=dict)
    """Objects that routers need, and what the API server said."""

    async def wrote(self, what: str, write: Awaitable[None], about: ChildKey | None = None) -> bool:
        """One object that the API server refuses must not hold up the others."""
        try:
            await write
        except ApiError as refusal:
            self.refusals.append(refusal)
            if about is not None and refusal.status not in _NOT_ABOUT_IT:
                self.refused[about] = str(refusal)
            return False
        self.done[what] += 1
        return True

    def __str__(self) -> str:
        return ", ".join(f"{count} {what}" for what, count in self.done.items()) or "what it remembers"


_Beside = tuple[dict[ChildKey, dict[str, Any]], list[dict[str, Any]]]
"""Children and pods."""


async def _nothing() -> _Beside:
    return {}, []


class Rounds:
    """Brings namespaces to what their objects say."""

    def __init__(
        self,
        api: Api,
        nudger: Nudger,
        pods: RouterPods = RouterPods(),  # noqa: B008 - frozen
        *,
        reader: Reader | None = None,
        now: Callable[[], datetime] = utc_now,
        clock: Callable[[], float] = time.monotonic,
        reread_s: float = 0.0,
        pressing: Callable[[str], bool] = lambda _namespace: False,
        judged: Callable[[str, Known], None] = lambda _namespace, _known: None,
    ) -> None:
        """`reread_s`: how long what it wrote into Secrets is taken to be there. `pressing`: whether something changed meanwhile.

        `reader` None = nobody reads routers. `judged` gets what each round found out about its namespace.
        """
        self._pressing = pressing
        self._api = api
        self._nudger = nudger
        self._pods = pods
        self._reader = reader
        self._damper = Damper()
        self._clock, self._reread_s = clock, reread_s
        self._secrets: dict[str, _Secrets] = {}
        self._memory: dict[str, Memory] = {}
        self._now = now
        self._judged = judged

    async def run(self, namespace: str) -> int | None:
        """One round. Returns how many objects were written; None = nothing is declared there, and nothing is left to be done.

        Raises ApiError and StateError; another round mends it.
        """
        try:
            return await self._run(namespace)
        except StateError as error:
            statuses = tuple(of_unremembered(await self._api.objects(namespace), str(error), self._now()))
            await self._say(namespace, statuses, _Writes())
            raise

    async def _run(self, namespace: str) -> int | None:
        began = self._now()
        # first the state: if another operator writes between the two, ours is refused, not built on what it did not see
        kept, version = await self._api.read_state(namespace)
        objects = await self._api.objects(namespace)
        if not objects and not version:
            self._judged(namespace, Known(read_at=began))
            # there may have been routers, before the namespace went with all that was in it
            await self._follow(namespace, ())
            self._forget(namespace)
            return None
        observed = await self._observe(namespace, objects, kept)
        planned = await self._plan(namespace, observed)
        self._judged(namespace, replace(planned.known, read_at=began))
        if planned.state is not None:
            await self._api.write_state(namespace, planned.state, version)
        writes = _Writes()
        await self._deliver(namespace, planned, writes)
        await self._follow(namespace, planned.nudges)
        if self._reader:
            await self._reader.meet(namespace, self._nudger.reached(namespace))
        await self._say(namespace, await self._statuses(namespace, planned, writes.refused), writes)
        if planned.state is not None or writes.count:
            log.info("%s: wrote %s", namespace, writes)
        if writes.refusals:
            raise _together(writes.refusals)
        written = (planned.state is not None) + writes.count
        if not objects and not written:
            self._forget(namespace)
            return None
        return written

    def forget(self) -> None:
        """Another operator may write from here on."""
        self._secrets.clear()
        self._memory.clear()

    def _forget(self, namespace: str) -> None:
        """Namespaces come and go."""
        self._secrets.pop(namespace, None)
        self._memory.pop(namespace, None)

    async def look(self, namespace: str) -> Known:
        """The namespace as it is at this moment; nothing is written. Raises ApiError and StateError."""
        began = self._now()
        kept, _ = await self._api.read_state(namespace)
        found = known_of(Observed(objects=await self._api.objects(namespace), kept=kept, secrets={}))
        return replace(found, read_at=began)

    async def _observe(self, namespace: str, objects: list[dict[str, Any]], kept: Kept) -> Observed:
        nodes = [manifest["metadata"]["name"] for manifest in objects if manifest["kind"] == "RouterNode"]
        masters = [router_object(name) for name in master_names(objects, kept)]
        secrets, previous_tokens, (children, pods) = await asyncio.gather(
            self._secrets_of(namespace, nodes),
            self._api.with_previous(namespace, token_references(objects, kept)),
            self._beside(namespace, masters) if nodes else _nothing(),
        )
        return Observed(
            objects=objects,
            kept=kept,
            secrets=secrets,
            previous_tokens=previous_tokens,
            children=children,
            pods=pods,
            reached=self._nudger.reached(namespace),
            readings=self._reader.readings(namespace) if self._reader else {},
        )

    async def _beside(self, namespace: str, masters: list[str]) -> _Beside:
        children, pods = await asyncio.gather(
            self._api.children(namespace, masters, roles=bool(self._pods.admin_role)), self._api.pods(namespace)
        )
        return children, pods

    async def _secrets_of(self, namespace: str, nodes: list[str]) -> dict[str, dict[str, Any]]:
        """Those of routers. There may be hundreds, which only this operator writes: once in `reread_s` they are read."""
        found = self._secrets.setdefault(namespace, _Secrets())
        if self._clock() - found.read_at >= self._reread_s:
            found.there, found.read_at = {}, self._clock()
        unknown = [node for node in nodes if node not in found.there]
        found.there |= await self._api.router_secrets(namespace, unknown)
        return {node: found.there[node] for node in nodes if node in found.there}

    async def _plan(self, namespace: str, observed: Observed) -> Plan:
        """In a thread: with thousands of objects it takes a second, in which webhooks, probes and the Lease must go on."""
        memory = self._memory.setdefault(namespace, Memory())
        return await asyncio.to_thread(plan, observed, self._now(), self._pods, memory)

    async def _follow(self, namespace: str, routers: Sequence[Told]) -> None:
        await self._nudger.tell(namespace, routers)
        if self._reader:
            self._reader.follow(namespace, routers)

    async def _statuses(self, namespace: str, planned: Plan, refused: Mapping[ChildKey, str]) -> Sequence[StatusWrite]:
        """They say what came of writing and telling, so that each is written once for a change. Also in a thread."""
        readings = self._reader.readings(namespace) if self._reader else {}
        outcome = Outcome(self._nudger.reached(namespace), readings, refused)
        resting = self._damper.resting(namespace, self._now().timestamp())
        return await asyncio.to_thread(planned.outlook.statuses, outcome, resting)

    async def _deliver(self, namespace: str, planned: Plan, writes: _Writes) -> None:
        there = self._secrets[namespace].there
        for secret in planned.secrets:
            [owner] = secret["metadata"]["ownerReferences"]
            node = str(owner["name"])
            there.pop(node, None)
            about = ChildKey("Secret", str(secret["metadata"]["name"]))
            if await writes.wrote("Secrets", self._api.apply_secret(secret), about):
                there[node] = dict(secret)
        for key in planned.delete:
            await writes.wrote("deletions", self._api.delete_child(namespace, key))
        for child in planned.apply:
            await writes.wrote("other objects", self._api.apply_child(child), key_of(child))

    async def _say(self, namespace: str, statuses: Sequence[StatusWrite], writes: _Writes) -> None:
        """Some at once. What changed meanwhile goes to routers before more is said: the next round says it."""
        ends = self._clock() + _SAYS_FOR_S
        for first in range(0, len(statuses), _SAID_AT_ONCE):
            if self._clock() >= ends and self._pressing(namespace):
                log.info("%s: %d statuses are left for the next round", namespace, len(statuses) - first)
                return
            some = statuses[first : first + _SAID_AT_ONCE]
            await asyncio.gather(*(self._say_one(namespace, status, writes) for status in some))

    async def _say_one(self, namespace: str, status: StatusWrite, writes: _Writes) -> None:
        if await writes.wrote("statuses", self._api.apply_status(namespace, status)):
            if not status.declared:
                self._damper.wrote(namespace, status.key, self._now().timestamp())
            for event in status.events:
                await writes.wrote("Events", self._api.create_event(event))


def _together(refusals: Sequence[ApiError]) -> WritesRefused:
    """Of the first: of those that nobody complained of yet, if there are any."""
    first = next((refusal for refusal in refusals if not refusal.said), refusals[0])
    text = f"{len(refusals)} writes failed, the first with {first}"
    return WritesRefused(first.status, text, first.retry_after_s, said=first.said)
