"""Objects of a cluster that people change: the custom resources are the one truth, and the API server keeps it.

    read ──► check the version ──► write ──► the operator judges it ──► this router serves it
                   ▲                 │              │ not accepted
                   └── conflict ─────┘              └──► what was there before is put back

Problem: others change the same objects with kubectl, and who judges a change is the operator, after it was written.
Idea: every write names the state that it replaces, so that of two the second is refused, and reads again. What the operator
does not accept is put back as it was: for people here a change that is refused has changed nothing, with the validating webhook or
without it.

Invariants: what somebody else wrote meanwhile is never put back; a change that nobody has judged in time stays, and says so.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable

from turnout_api.config import RouterConfig
from turnout_api.objects import ObjectWrite, StoredObject, Writable, unexpected
from turnout_router.admin import resources
from turnout_router.admin.apiserver import FIELD_MANAGER, Answer, ApiServer
from turnout_router.admin.errors import BadInput, NotHere, Unacceptable
from turnout_router.admin.objects import error_of, served
from turnout_router.admin.resources import Manifest, path_of

PAGE = 500
"""Objects a request of a list."""
TRIES = 5
"""Of a write that others were in the way of."""
JUDGED_S = 15.0
"""How long the operator gets for its verdict. It takes about a second; one that starts anew, or waits for another's lease, some more."""
SERVED_S = 10.0
"""How long what is accepted may take to reach this router."""
LOOK_EVERY_S = 0.2
NOT_SERVED_YET = "it is accepted and not served yet: routers that cannot be told now take it when they can"


class CustomResources:
    """As `Objects`, over the API server."""

    def __init__(self, config: Callable[[], RouterConfig], *, now: Callable[[], float] = time.time) -> None:
        """`config`: what this router serves at the moment."""
        self._config = config
        self._now = now

    async def all(self, kind: Writable) -> list[StoredObject]:
        """As `Objects`; in the order of their creation."""
        admin = self._config().admin
        found: list[Manifest] = []
        more = ""
        async with ApiServer.talk(admin) as api:
            while True:
                page = await api.ask("GET", f"{path_of(kind, admin.namespace)}?limit={PAGE}&continue={more}")
                if not page.ok:
                    raise _no_kind(kind, page)
                found += page.document["items"]
                more = page.document["metadata"].get("continue", "")
                if not more:
                    break
        living = [each for each in found if "deletionTimestamp" not in each["metadata"]]
        living.sort(key=lambda each: (each["metadata"]["creationTimestamp"], each["metadata"]["name"]))
        return [resources.stored(kind, each) for each in living]

    async def change(self, wish: ObjectWrite) -> StoredObject | None:
        """As `Objects`."""
        admin = self._config().admin
        served = self._served(wish)
        async with ApiServer.talk(admin) as api:
            change = _Change(api, wish, admin.namespace, self._now)
            for _ in range(TRIES):
                if await change.written():
                    break
            else:
                raise NotHere(f"{change.what} is being changed by others all the time", retry_after_s=1)
            if change.there is not None and not await change.accepted():
                return resources.stored(wish.kind, change.there)
        return await self._once_served(change, served)

    async def _once_served(self, change: "_Change", before: object) -> StoredObject | None:
        """Wait until this router serves something else under that name than before."""
        if change.there is None:
            await _until(lambda: self._served(change.wish) is None, SERVED_S)
            return None
        there = resources.stored(change.wish.kind, change.there)
        if not change.shows or await _until(lambda: self._served(change.wish) != before, SERVED_S):
            return there
        return there.model_copy(update={"warnings": [*there.warnings, NOT_SERVED_YET]})

    def _served(self, wish: ObjectWrite) -> StoredObject | None:
        return next((each for each in served(self._config(), wish.kind) if each.name == wish.name), None)


class _Change:
    """One wish on its way into the cluster."""

    def __init__(self, api: ApiServer, wish: ObjectWrite, namespace: str, now: Callable[[], float]) -> None:
        self.wish = wish
        self.what = f"{wish.kind} {wish.name}"
        self.there: Manifest | None = None
        """What is there after the write."""
        self.changed = True
        """The object is another one than before."""
        self.shows = True
        """Routers are given something else than before."""
        self._before: Manifest | None = None
        self._api, self._namespace, self._now = api, namespace, now
        self._path = path_of(wish.kind, namespace, wish.name)

    async def written(self) -> bool:
        """One try; False = somebody was in the way. Raises AdminError where the wish is not to be met."""
        before = self._before = await self._read()
        self._check(before)
        if before is None:
            path = path_of(self.wish.kind, self._namespace)
            done = await self._write("POST", path, resources.created(self.wish, self._namespace, self._now()))
        elif self.wish.spec is None:
            self.there = None
            done = await self._api.ask("DELETE", self._path, resources.only_as_it_is(before))
        elif before.get("spec") == self.wish.spec:
            self.there, self.changed, self.shows = before, False, False
            return True
        else:
            self.shows = resources.visible(before.get("spec")) != resources.visible(self.wish.spec)
            done = await self._write("PUT", self._path, resources.changed(self.wish, before, self._now()))
        if done.status in {404, 409}:
            return False
        if not done.ok:
            raise self._refused(done)
        return True

    async def accepted(self) -> bool:
        """Wait for the verdict. False = there is none yet; raises Unacceptable after it was put back as it was."""
        if not await _until(self._is_judged, JUDGED_S) or self.there is None:
            return False
        verdict = resources.verdict_of(self.there)
        if verdict["status"] == "True" or not self.changed:
            return True
        await self._put_back(self.there)
        raise Unacceptable(str(verdict["message"]), reason=str(verdict["reason"]), problems=[verdict["message"]])

    async def _is_judged(self) -> bool:
        """Reads the object again. A newer generation is somebody else's: its verdict is as good."""
        self.there = await self._read()
        return self.there is None or bool(resources.verdict_of(self.there))

    async def _put_back(self, written: Manifest) -> None:
        """Only where nobody changed it meanwhile, which the API server sees to."""
        if self._before is None:
            await self._api.ask("DELETE", self._path, resources.only_as_it_is(written))
        else:
            await self._write("PUT", self._path, resources.restored(self._before, written))

    async def _read(self) -> Manifest | None:
        found = await self._api.ask("GET", self._path)
        if found.status == 404:
            return None
        if not found.ok:
            raise self._refused(found)
        return None if "deletionTimestamp" in found.document["metadata"] else found.document

    async def _write(self, method: str, path: str, body: Manifest) -> Answer:
        done = await self._api.ask(method, f"{path}?fieldManager={FIELD_MANAGER}&fieldValidation=Strict", body)
        if done.ok:
            self.there = done.document
        return done

    def _check(self, there: Manifest | None) -> None:
        """Raises AdminError where something else is there than what was expected."""
        current = None if there is None else resources.stored(self.wish.kind, there)
        if refusal := unexpected(self.wish, current):
            raise error_of(refusal)

    def _refused(self, answer: Answer) -> BadInput | Unacceptable:
        """What was judged before it was kept: by the schema, or by the validating webhook."""
        if answer.is_of_a_webhook:
            return Unacceptable(answer.message, reason=answer.reason or "NotAccepted", problems=[answer.message])
        return BadInput(answer.message)


def _no_kind(kind: Writable, answer: Answer) -> NotHere:
    message = f"the API server knows no {kind} ({answer.message}): are the CustomResourceDefinitions installed?"
    return NotHere(message, retry_after_s=60)


async def _until(probe: Callable[[], bool] | Callable[[], Awaitable[bool]], seconds: float) -> bool:
    """Look again and again; False = the time is over."""
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    while True:
        found = probe()
        if found is True or (not isinstance(found, bool) and await found):
            return True
        if loop.time() >= end:
            return False
        await asyncio.sleep(LOOK_EVERY_S)
