"""kopf as a watcher: it says that something changed, and nothing else. The only module that imports it.

kopf's change handlers would keep their own progress in annotations and finalizers. Rounds need neither, so there are
event handlers only, which never write; the operator's own writes of statuses do not wake it.

kopf runs in a thread with a loop of its own. There it may end as it does when a kind cannot be listed for a while, cancel every task that it
finds, or hang: it is started anew, and whoever waits for it waits for `_STOP_S` at most. What keeps routers right meanwhile is that rounds
read everything, at least every `resync_s`.
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from itertools import chain, repeat
from types import SimpleNamespace

import aiohttp
import kopf
from yarl import URL

from turnout_api.resources import GROUP, KINDS, VERSION
from turnout_operator.api import SERVICE_ACCOUNT
from turnout_operator.hearing import Hearing, Stream
from turnout_operator.names import FIELD_MANAGER, MASTER_LABEL, NODE_LABEL
from turnout_operator.rights import Rights, used
from turnout_operator.routers import routers_of

WATCH_S = 30.0
"""A watch is asked anew so often."""
_SILENT = 4 / 3
"""Times that: a watch that said nothing for so long, not even that it ends, is dead."""
_DEAD = 3.0
"""Times that: nobody asks any more."""
_AGAIN_S = 10.0
"""Between an end of kopf and its next start."""
_STOP_S = 5.0

log = logging.getLogger(__name__)
_KIND_OF = {kind.plural: name for name, kind in KINDS.items()} | {"pods": "Pod"}
"""All that is watched."""

_Seen = dict[tuple[str, str, str], tuple[object, ...]]
_Ears = tuple[Hearing, Rights]
"""Who is told what the API server answers."""
_Listed = Callable[[Stream], None]
"""Called when the API server begins to answer a list."""
Change = Callable[[str], None]
"""Gets the namespace of an object that came, changed or went."""


def streams(namespaces: Collection[str]) -> list[Stream]:
    """All that is watched; no namespaces = all of them."""
    return [(namespace, plural) for namespace in namespaces or ("",) for plural in _KIND_OF]


async def watch(
    namespaces: Collection[str], on_change: Change, hearing: Hearing, rights: Rights, *, watch_s: float = WATCH_S
) -> None:
    """Watch until it is cancelled; no namespaces = all of them. `on_change` is called in the loop of the caller."""
    loop = asyncio.get_running_loop()

    def changed(namespace: str) -> None:
        with suppress(RuntimeError):  # the loop may have ended meanwhile
            loop.call_soon_threadsafe(on_change, namespace)

    told = ""
    while True:
        hearing.begin()
        run = _Run(namespaces, changed, (hearing, rights), watch_s)
        try:
            await run.until_over(lambda: max(hearing.ages().values()) > _DEAD * watch_s)
        finally:
            await run.stop()
        if run.why != told:
            told = run.why
            log.warning("watching ended, and is started anew: %s", told)
        await asyncio.sleep(_AGAIN_S)
        for namespace in namespaces:  # nobody watched meanwhile
            on_change(namespace)


class _Run:
    """kopf, from a start to its end."""

    def __init__(self, namespaces: Collection[str], changed: Change, ears: _Ears, watch_s: float) -> None:
        self.why = "nothing was heard of it any more"
        """It ended."""
        self._options = (namespaces, changed, ears, watch_s)
        self._look_s = min(1.0, watch_s / 10)
        self._stopping = threading.Event()
        self._over = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        # a daemon: the process ends without it, whatever it does
        self._thread = threading.Thread(target=self._work, name="watch", daemon=True)
        self._thread.start()

    async def until_over(self, dead: Callable[[], bool]) -> None:
        """Until it has ended, or is dead."""
        while not self._over.is_set() and not dead():
            with suppress(TimeoutError):
                async with asyncio.timeout(self._look_s):
                    await self._over.wait()

    async def stop(self) -> None:
        """Tell it, and wait a little."""
        self._stopping.set()
        try:
            async with asyncio.timeout(_STOP_S):
                await self._over.wait()
        except TimeoutError:
            log.warning("the watches did not stop in %g s, and are left behind", _STOP_S)

    def _work(self) -> None:
        try:
            asyncio.run(_kopf(*self._options, self._stopping))
        except Exception as error:  # noqa: BLE001 - the border of the thread: whatever ended kopf, it is started anew
            self.why = f"{type(error).__name__}: {error}"
        finally:
            with suppress(RuntimeError):  # the loop may have ended meanwhile
                self._loop.call_soon_threadsafe(self._over.set)


async def _kopf(
    namespaces: Collection[str], changed: Change, ears: _Ears, watch_s: float, stopping: threading.Event
) -> None:
    # tasks that failed with the one that ended kopf: it says why
    asyncio.get_running_loop().set_exception_handler(lambda _loop, _context: None)

    def unless_stopped(namespace: str) -> None:
        if not stopping.is_set():  # one that was left behind says nothing any more
            changed(namespace)

    try:
        await kopf.operator(
            registry=_registry(unless_stopped, ears),
            settings=_settings(watch_s),
            namespaces=namespaces,
            clusterwide=not namespaces,
            # kopf's own has the user's name in it, and the user of an image has none; the type is a str that kopf keeps to itself
            identity=FIELD_MANAGER,  # type: ignore[arg-type] # as above
            standalone=True,  # peering is no leader election: `leader` is
            stop_flag=stopping,
        )
    finally:
        stopping.set()  # kopf waits for it in a thread, which must end too


def _registry(on_change: Change, ears: _Ears) -> kopf.OperatorRegistry:
    """An explicit one: kopf's default is global, and logs in with whatever client it finds."""
    registry = kopf.OperatorRegistry()
    seen: _Seen = {}

    # handlers that are no coroutines would each be run in a thread
    async def changed(event: kopf.RawEvent, **_: object) -> None:
        kind, namespace, news = _facts(event)
        if seen.get(kind) != news:
            seen[kind] = news
            on_change(namespace)
        if event["type"] == "DELETED":
            seen.pop(kind, None)

    def listed(stream: Stream) -> None:
        # a watch that expired (410) begins with a list, in which what went meanwhile is missing: kopf says nothing of it
        kind = _KIND_OF.get(stream[1])  # kopf asks for other things, too
        for namespace in {name for seen_kind, name, _ in seen if seen_kind == kind and stream[0] in {"", name}}:
            on_change(namespace)

    async def login(settings: kopf.OperatorSettings, **_: object) -> kopf.AiohttpSession | None:
        return _login(settings, ears, listed)

    for kind in KINDS.values():
        kopf.on.event(GROUP, VERSION, kind.plural, registry=registry, id="changed")(changed)
    kopf.on.event("", "v1", "pods", registry=registry, id="changed", when=_of_a_node)(changed)
    kopf.on.login(registry=registry, id="login")(login)
    return registry


def _of_a_node(labels: kopf.Labels, **_: object) -> bool:
    return NODE_LABEL in labels or MASTER_LABEL in labels


def _facts(event: kopf.RawEvent) -> tuple[tuple[str, str, str], str, tuple[object, ...]]:
    """Which object, its namespace, and what a round would see differently. `generation` grows with the spec only."""
    body = event["object"]
    metadata = body["metadata"]
    namespace = metadata["namespace"]
    own = [item for item in (metadata.get("annotations") or {}).items() if item[0].startswith(f"{GROUP}/")]
    gone = (metadata.get("deletionTimestamp"), event["type"] == "DELETED")
    # the status of a pod is news, that of Turnout's kinds is the operator's own
    pod = tuple(routers_of([body]).items()) if body["kind"] == "Pod" else ()
    news = (metadata["uid"], metadata.get("generation"), *gone, *sorted(own), *pod)
    return (body["kind"], namespace, metadata["name"]), namespace, news


def _login(settings: kopf.OperatorSettings, ears: _Ears, listed: _Listed) -> kopf.AiohttpSession | None:
    """The same order as `Api.connect`. A session of our own, since kopf does not say when it asked and what it was answered."""
    if (SERVICE_ACCOUNT / "token").exists():
        found = kopf.login_with_service_account(settings=settings)
    else:
        found = kopf.login_with_kubeconfig(settings=settings)
    if found is None:
        return None
    session = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, ssl=found.as_ssl_context()),
        headers=found.as_http_headers(),
        proxy=found.proxy_url,
        trace_configs=[_trace(*ears, listed)],
    )
    return kopf.AiohttpSession(
        server=found.server,
        default_namespace=found.default_namespace,
        expiration=found.expiration,
        aiohttp_session=session,
    )


def _trace(hearing: Hearing, rights: Rights, listed: _Listed) -> aiohttp.TraceConfig:
    """Of each request to list or watch: that it was answered, or why it was not."""

    async def answered(_s: aiohttp.ClientSession, _c: SimpleNamespace, params: aiohttp.TraceRequestEndParams) -> None:
        status, is_watch = params.response.status, "watch" in params.url.query
        taken = used(params.method, params.url.path, status, watch=is_watch)
        why = (
            f"the operator may not {'watch' if is_watch else 'list'} them" if status == 403 else params.response.reason
        )
        if status == 403:
            for right in taken:
                rights.lacks(right)
        elif status < 400:
            rights.has(taken)
            if not is_watch:
                listed(_stream(params.url))
        hearing.heard(_stream(params.url), f"{status}: {why}" if status >= 400 else "", said=status == 403)

    async def broke(
        _s: aiohttp.ClientSession, _c: SimpleNamespace, params: aiohttp.TraceRequestExceptionParams
    ) -> None:
        hearing.heard(_stream(params.url), f"the API server was not reached: {type(params.exception).__name__}")

    trace = aiohttp.TraceConfig()
    trace.on_request_end.append(answered)
    trace.on_request_exception.append(broke)
    return trace


def _stream(url: URL) -> Stream:
    """…/namespaces/NAMESPACE/PLURAL, or …/VERSION/PLURAL of all namespaces."""
    parts = url.parts
    return (parts[-2] if "namespaces" in parts[-3:-2] else "", parts[-1])


class _Backoffs:
    """Pauses between attempts, without an end: with kopf's own, a kind that is refused for a minute ends the whole of kopf."""

    def __iter__(self) -> Iterator[float]:
        return chain((1, 1, 2, 3, 5), repeat(10))


def _settings(watch_s: float) -> kopf.OperatorSettings:
    settings = kopf.OperatorSettings()
    settings.scanning.disabled = True  # listing namespaces and CRDs needs cluster-wide rights
    settings.posting.enabled = False  # no Events of kopf's own
    settings.process.ultimate_exiting_timeout = None  # the process ends by itself, see main
    settings.watching.server_timeout = round(watch_s)
    settings.watching.inactivity_timeout = watch_s * _SILENT
    settings.watching.client_timeout = watch_s * 2
    settings.watching.connect_timeout = 10
    settings.networking.request_timeout = 30
    settings.networking.error_backoffs = _Backoffs()
    settings.networking.enforce_retry_after = True  # a busy API server knows best
    # A task an object, which waits for another event before it ends: with kopf's 5 s of that, a list of 2,000 objects and a
    # limit that keeps it from making 2,000 tasks, what is changed first would be noticed after minutes.
    settings.queueing.worker_limit = 128
    settings.queueing.idle_timeout = 0.02
    # not used by event handlers; named so that nothing of kopf's would ever stand in an object
    settings.persistence.finalizer = f"{GROUP}/operator"
    settings.persistence.progress_storage = kopf.AnnotationsProgressStorage(prefix=GROUP)
    settings.persistence.diffbase_storage = kopf.AnnotationsDiffBaseStorage(prefix=GROUP)
    return settings
