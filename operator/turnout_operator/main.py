"""The process of the operator: `turnout operator`, or `python -m turnout_operator`.

SIGTERM or Ctrl-C ends it; a round that is cut off is made good by the next start. Exit code 1 = it cannot run.
"""

import asyncio
import logging
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

import aiohttp

from turnout_operator.admission.injector import Injector
from turnout_operator.admission.keeper import Keeper, server_context
from turnout_operator.admission.server import serve_admission
from turnout_operator.api import SERVICE_ACCOUNT, Api, ApiError
from turnout_operator.children import RouterPods
from turnout_operator.health import serve_health
from turnout_operator.injection import Nodes
from turnout_operator.nudge import Nudger
from turnout_operator.reader import INTERVAL_S, Reader
from turnout_operator.rounds import Rounds
from turnout_operator.watch import watch
from turnout_operator.worker import Worker

RESYNC_S = 60.0
"""A round without any event: mends what was changed by hand, and tells routers that could not be reached."""
_SHORTEST_RESYNC_S = 1.0
_CRD_POLL_S = 2.0
_STALE_AFTER_RESYNCS = 5

log = logging.getLogger(__name__)


class OperatorRefused(Exception):
    """It cannot run like this; the message says what to change."""


@dataclass(frozen=True, slots=True)
class Webhook:
    """Where the webhook is, and what is called how."""

    configuration: str
    """The MutatingWebhookConfiguration."""
    namespace: str
    """Of `secret` and of the Service."""
    secret: str
    """Holds certificates; it is made."""
    names: tuple[str, ...]
    """Under which the API server calls."""
    host: str = "0.0.0.0"  # noqa: S104 - the API server calls from outside the pod
    port: int = 9443


@dataclass(frozen=True, slots=True)
class Options:
    """How the operator runs."""

    namespaces: tuple[str, ...]
    """Each is a cluster of its own. Empty = that of the pod."""
    resync_s: float = RESYNC_S
    health_host: str = "127.0.0.1"
    health_port: int = 8080
    pods: RouterPods = field(default_factory=RouterPods)
    """How it runs and injects routers."""
    webhook: Webhook | None = None
    """None = sidecars come by `turnout inject`."""


def run(options: Options) -> int:
    """Run the operator until it is told to stop."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s", stream=sys.stderr)
    logging.getLogger("kopf").setLevel(logging.WARNING)  # it would log each event of each object
    try:
        _check(options)
        asyncio.run(_operate(options, options.namespaces or _own_namespace()))
    except (OperatorRefused, ApiError, OSError) as error:
        sys.stderr.write(f"turnout operator: {error}\n")
        return 1
    return 0


def _check(options: Options) -> None:
    if options.resync_s < _SHORTEST_RESYNC_S:
        raise OperatorRefused(f"--resync-interval must be at least {_SHORTEST_RESYNC_S:g}s")


def _own_namespace() -> tuple[str]:
    try:
        return ((SERVICE_ACCOUNT / "namespace").read_text(encoding="utf-8").strip(),)
    except OSError:
        raise OperatorRefused("outside a pod, name what to watch: --namespace NAME") from None


async def _operate(options: Options, namespaces: Sequence[str]) -> None:
    async with await Api.connect() as api, aiohttp.ClientSession() as session, AsyncExitStack() as down:
        judged: dict[str, Nodes] = {}
        workers: dict[str, Worker] = {}
        reader = Reader(session, api.secret_value, lambda namespace: workers[namespace].wake())
        nudger = Nudger(session, api.secret_value)
        rounds = Rounds(api, nudger, options.pods, reader=reader, judged=judged.__setitem__)
        if options.webhook is not None:
            injector = Injector(namespaces, options.pods, judged, rounds.look)
            await down.enter_async_context(_admitting(options.webhook, injector, api))
        workers |= {name: Worker(name, rounds.run, resync_s=options.resync_s) for name in namespaces}
        stale_s = _STALE_AFTER_RESYNCS * options.resync_s
        async with serve_health(
            list(workers.values()), host=options.health_host, port=options.health_port, stale_s=stale_s
        ) as port:
            log.info("watches %s, health on port %d", ", ".join(namespaces), port)
            await _until_kinds_are_served(api)
            reading = asyncio.create_task(reader.run(min(INTERVAL_S, options.resync_s)), name="reading of routers")
            try:
                await _work(workers)
            finally:
                reading.cancel()
                await asyncio.gather(reading, return_exceptions=True)


@asynccontextmanager
async def _admitting(webhook: Webhook, injector: Injector, api: Api) -> AsyncIterator[None]:
    """Serve the webhook until the end of the block."""
    context = server_context()
    keeper = Keeper(
        api,
        context,
        namespace=webhook.namespace,
        secret=webhook.secret,
        webhook=webhook.configuration,
        names=webhook.names,
    )
    async with serve_admission(injector, context, host=webhook.host, port=webhook.port) as port:
        log.info("webhook %s on port %d", webhook.configuration, port)
        task = asyncio.create_task(keeper.run(), name="certificates")
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def _work(workers: dict[str, Worker]) -> None:
    """Watch until a signal ends kopf, and the workers with it."""
    tasks = [asyncio.create_task(worker.run(), name=f"rounds of {name}") for name, worker in workers.items()]
    try:
        await watch(list(workers), lambda namespace: workers[namespace].wake(), ready=asyncio.Event())
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _until_kinds_are_served(api: Api) -> None:
    """Wait: kopf looks for the kinds once, at its start."""
    told: list[str] = []
    while missing := await api.missing_kinds():
        if missing != told:
            log.warning("waits for the CustomResourceDefinitions of %s", ", ".join(missing))
            told = missing
        await asyncio.sleep(_CRD_POLL_S)
