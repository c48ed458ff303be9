"""One round of a namespace: read, plan, write. No decision is made here."""

import logging
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from turnout_operator.api import Api, ApiError
from turnout_operator.children import RouterPods
from turnout_operator.damping import Damper
from turnout_operator.injection import Nodes
from turnout_operator.nudge import Nudger
from turnout_operator.plan import Observed, Plan, nodes_of, plan, token_references
from turnout_operator.reader import Reader

log = logging.getLogger(__name__)


def utc_now() -> datetime:
    """The time."""
    return datetime.now(UTC)


async def _refusal(write: Awaitable[None]) -> ApiError | None:
    """What the API server said against it: one object that it refuses must not hold up the others."""
    try:
        await write
    except ApiError as refusal:
        return refusal
    return None


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
        judged: Callable[[str, Nodes], None] = lambda _namespace, _nodes: None,
    ) -> None:
        """`reader` None = nobody reads routers. `judged` gets what each round found out about the nodes of its namespace."""
        self._api = api
        self._nudger = nudger
        self._pods = pods
        self._reader = reader
        self._damper = Damper()
        self._now = now
        self._judged = judged

    async def run(self, namespace: str) -> int:
        """One round. Returns how many objects were written. Raises ApiError and StateError; another round mends it."""
        before = self._nudger.reached(namespace)
        writes = await self._round(namespace)
        if self._nudger.reached(namespace) != before:
            writes += await self._round(namespace)  # the statuses say what came of telling
        return writes

    async def look(self, namespace: str) -> Nodes:
        """The nodes as they are at this moment; nothing is written. Raises ApiError and StateError."""
        kept, _ = await self._api.read_state(namespace)
        return nodes_of(Observed(objects=await self._api.objects(namespace), kept=kept, secrets={}))

    async def _round(self, namespace: str) -> int:
        # first the state: if another operator writes between the two, ours is refused, not built on what it did not see
        kept, version = await self._api.read_state(namespace)
        objects = await self._api.objects(namespace)
        nodes = [manifest["metadata"]["name"] for manifest in objects if manifest["kind"] == "RouterNode"]
        if not objects and not version:
            self._judged(namespace, Nodes())
            return 0  # nothing was ever declared here: nothing to remember
        observed = Observed(
            objects=objects,
            kept=kept,
            secrets=await self._api.router_secrets(namespace, nodes),
            previous_tokens=await self._api.with_previous(namespace, token_references(objects, kept)),
            children=await self._api.children(namespace, roles=bool(self._pods.admin_role)) if nodes else {},
            pods=await self._api.pods(namespace) if nodes else [],
            reached=self._nudger.reached(namespace),
            readings=self._reader.readings(namespace) if self._reader else {},
            resting=self._damper.resting(namespace, self._now().timestamp()),
        )
        planned = plan(observed, self._now(), self._pods)
        self._judged(namespace, planned.known)
        failures = await self._write(namespace, planned, version)
        await self._nudger.tell(namespace, planned.nudges)
        if self._reader:
            self._reader.follow(namespace, planned.nudges)
        if failures:
            raise ApiError(failures[0].status, f"{len(failures)} writes failed, the first with {failures[0]}")
        return sum(
            (planned.state is not None, *map(len, (planned.secrets, planned.delete, planned.apply, planned.statuses)))
        )

    async def _write(self, namespace: str, planned: Plan, version: str) -> list[ApiError]:
        if planned.state is not None:
            await self._api.write_state(namespace, planned.state, version)
        refusals = [await _refusal(self._api.apply_secret(secret)) for secret in planned.secrets]
        refusals += [await _refusal(self._api.delete_child(namespace, key)) for key in planned.delete]
        refusals += [await _refusal(self._api.apply_child(child)) for child in planned.apply]
        for status in planned.statuses:
            refusals.append(await _refusal(self._api.apply_status(namespace, status.key, status.body)))
            if not refusals[-1]:
                if not status.declared:
                    self._damper.wrote(namespace, status.key, self._now().timestamp())
                refusals += [await _refusal(self._api.create_event(event)) for event in status.events]
        counts = (len(planned.secrets), len(planned.apply), len(planned.delete), len(planned.statuses))
        if any(counts):
            log.info("%s: wrote %d Secrets, %d other objects, deleted %d, wrote %d statuses", namespace, *counts)
        return [refusal for refusal in refusals if refusal]
