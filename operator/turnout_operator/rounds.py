"""One round of a namespace: read, plan, write. No decision is made here."""

import logging
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from turnout_operator.api import Api, ApiError
from turnout_operator.nudge import Nudger
from turnout_operator.plan import Observed, Plan, plan, token_references

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

    def __init__(self, api: Api, nudger: Nudger, now: Callable[[], datetime] = utc_now) -> None:
        self._api = api
        self._nudger = nudger
        self._now = now

    async def run(self, namespace: str) -> int:
        """One round. Returns how many objects were written. Raises ApiError and StateError; another round mends it."""
        # first the state: if another operator writes between the two, ours is refused, not built on what it did not see
        kept, version = await self._api.read_state(namespace)
        objects = await self._api.objects(namespace)
        nodes = [manifest["metadata"]["name"] for manifest in objects if manifest["kind"] == "RouterNode"]
        secrets = await self._api.router_secrets(namespace, nodes)
        if not objects and not version:
            return 0  # nothing was ever declared here: nothing to remember
        rotating = await self._api.with_previous(namespace, token_references(objects, kept))
        planned = plan(Observed(objects, kept, secrets, rotating), self._now())
        failures = await self._write(namespace, planned, version)
        await self._nudger.tell(planned.nudges)
        if failures:
            raise ApiError(failures[0].status, f"{len(failures)} writes failed, the first with {failures[0]}")
        return (planned.state is not None) + len(planned.secrets) + len(planned.statuses)

    async def _write(self, namespace: str, planned: Plan, version: str) -> list[ApiError]:
        if planned.state is not None:
            await self._api.write_state(namespace, planned.state, version)
        refusals = [await _refusal(self._api.apply_secret(secret)) for secret in planned.secrets]
        for status in planned.statuses:
            refusals.append(await _refusal(self._api.apply_status(namespace, status.key, status.body)))
            if status.event is not None and not refusals[-1]:
                refusals.append(await _refusal(self._api.create_event(status.event)))
        if planned.secrets or planned.statuses:
            log.info("%s: wrote %d Secrets and %d statuses", namespace, len(planned.secrets), len(planned.statuses))
        return [refusal for refusal in refusals if refusal]
