"""The process of the operator: `turnout operator`, or `python -m turnout_operator`.

It serves webhooks, health and metrics from start to end; watches and rounds only while it holds the Lease. SIGTERM or Ctrl-C ends it;
a round that is cut off is made good by the next one. Exit code 1 = it cannot run, or did not stop in time.
"""

import asyncio
import faulthandler
import gc
import logging
import os
import signal
import socket
import sys
import threading
import uuid
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

import aiohttp

from turnout_operator import schemas
from turnout_operator.admission.injector import Injector
from turnout_operator.admission.serve import Webhook, admitting
from turnout_operator.admission.validator import Validator
from turnout_operator.api import SERVICE_ACCOUNT, Api, ApiError
from turnout_operator.children import RouterPods
from turnout_operator.fleet import Fleet
from turnout_operator.health import serve_health, stale_after_s
from turnout_operator.hearing import Hearing
from turnout_operator.known import Known
from turnout_operator.leader import Leader
from turnout_operator.metrics import Parts
from turnout_operator.nudge import Nudger
from turnout_operator.reader import INTERVAL_S, Reader
from turnout_operator.rights import Rights
from turnout_operator.rounds import Rounds
from turnout_operator.tokens import Tokens
from turnout_operator.watch import WATCH_S, streams, watch
from turnout_operator.worker import Worker

_LEASE_NAMESPACE = "default"
"""Of an operator outside a pod that was given no namespace."""
LEASE_S = 15.0
"""How long the others wait for an operator that died. One whose API server is away for two thirds of it stops writing."""
RESYNC_S = 60.0
"""A round without any event: mends what was changed by hand, and tells routers that could not be reached."""
_SHORTEST_S = 1.0
_CRD_POLL_S = 2.0
_CRD_LOOKS = 5
_COLLECTS = (50_000, 10, 10)
"""Thousands of objects are half a million living ones here: by default they are all walked several times in a round, a third of its time."""
_STOP_S = 20.0
"""A pod is killed after 30 s: whatever hangs, it ends before, and says where it was."""

log = logging.getLogger(__name__)


class OperatorRefused(Exception):
    """It cannot run like this; the message says what to change."""


@dataclass(frozen=True, slots=True)
class LeaseOptions:
    """By which one of several operators is chosen: the others wait."""

    name: str = "turnout"
    namespace: str = ""
    """Empty = that of the pod; outside a pod, the first that is watched."""
    duration_s: float = LEASE_S


@dataclass(frozen=True, slots=True)
class Options:
    """How the operator runs."""

    namespaces: tuple[str, ...]
    """Each is a cluster of its own. Empty = that of the pod."""
    all_namespaces: bool = False
    """Every namespace in which something is declared, instead."""
    resync_s: float = RESYNC_S
    watch_s: float = WATCH_S
    lease: LeaseOptions = field(default_factory=LeaseOptions)
    health_host: str = "127.0.0.1"
    health_port: int = 8080
    pods: RouterPods = field(default_factory=RouterPods)
    """How it runs and injects routers."""
    webhook: Webhook | None = None
    """None = sidecars come by `turnout inject`, and writes are judged after they were made."""


def run(options: Options) -> int:
    """Run the operator until it is told to stop."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s", stream=sys.stderr)
    # it would log each event and each attempt: `hearing` and `watch` say what cannot be watched and why, once
    logging.getLogger("kopf").setLevel(logging.CRITICAL)
    gc.set_threshold(*_COLLECTS)
    try:
        _check(options)
        asyncio.run(_operate(options, _served(options)))
    except (OperatorRefused, ApiError, OSError) as error:
        sys.stderr.write(f"turnout operator: {error}\n")
        return 1
    return 0


def _check(options: Options) -> None:
    for name, seconds in (
        ("resync-interval", options.resync_s),
        ("watch-renewal", options.watch_s),
        ("lease-duration", options.lease.duration_s),
    ):
        if seconds < _SHORTEST_S:
            raise OperatorRefused(f"--{name} must be at least {_SHORTEST_S:g}s")


def _served(options: Options) -> tuple[str, ...]:
    """Empty = all namespaces."""
    if options.all_namespaces and options.namespaces:
        raise OperatorRefused("--all-namespaces and --namespace exclude each other")
    return () if options.all_namespaces else options.namespaces or _own_namespace()


def _own_namespace() -> tuple[str]:
    own = _pods_namespace()
    if not own:
        raise OperatorRefused("outside a pod, name what to watch: --namespace NAME")
    return (own,)


def _pods_namespace() -> str:
    """Empty outside a pod."""
    try:
        return (SERVICE_ACCOUNT / "namespace").read_text(encoding="utf-8").strip()
    except OSError:
        return ""


async def _operate(options: Options, namespaces: Sequence[str]) -> None:
    """Until SIGTERM or Ctrl-C."""
    told = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, _stop, told)
    work = asyncio.create_task(_serve(options, namespaces), name="operator")
    stop = asyncio.create_task(told.wait(), name="signals")
    await asyncio.wait({work, stop}, return_when=asyncio.FIRST_COMPLETED)
    stop.cancel()
    if work.done():
        await work  # raises
    work.cancel()
    await asyncio.wait({work})


def _stop(told: asyncio.Event) -> None:
    """In order; and if that hangs, anyway."""
    if not told.is_set():
        log.info("told to stop")
        last_resort = threading.Timer(_STOP_S, _give_up)
        last_resort.daemon = True
        last_resort.start()
    told.set()


def _give_up() -> None:
    sys.stderr.write(f"turnout operator: it did not stop within {_STOP_S:g}s; this is where it is:\n")
    faulthandler.dump_traceback(file=sys.stderr)
    os._exit(1)


async def _serve(options: Options, namespaces: Sequence[str]) -> None:
    rights = Rights(everywhere=not namespaces)
    async with await Api.connect(rights) as api, aiohttp.ClientSession() as session, AsyncExitStack() as down:
        leader = _leader(options, namespaces, api)
        judged: dict[str, Known] = {}
        tokens = Tokens(api.secret_value)
        reader = Reader(session, tokens, lambda name: fleet.wake(name))  # noqa: PLW0108 - it comes below
        nudger = Nudger(session, tokens, on_late=lambda name: fleet.wake(name))  # noqa: PLW0108 - as above
        rounds = Rounds(
            api.only_while(lambda: leader.leads),
            nudger,
            options.pods,
            reader=reader,
            judged=judged.__setitem__,
            reread_s=options.resync_s,
            pressing=lambda name: fleet.pressing(name),  # noqa: PLW0108 - as above
        )
        if options.webhook is not None:
            injector = Injector(namespaces, options.pods, judged, rounds.look)
            validator = Validator(namespaces, judged, rounds.look)
            await down.enter_async_context(
                admitting(options.webhook, injector, validator, api, look_s=options.resync_s)
            )
        else:
            log.info(
                "serves no webhooks: sidecars come by `turnout inject`, and what is wrong is said in statuses only"
            )
        fleet = Fleet(
            lambda name: Worker(name, rounds.run, resync_s=options.resync_s, stays=bool(namespaces)),
            namespaces,
            lambda name: judged.pop(name, None),
        )
        hearing = Hearing(streams(namespaces))
        parts = Parts(fleet.workers, hearing, leader, api)
        stale_s = stale_after_s(options.resync_s)
        async with serve_health(parts, host=options.health_host, port=options.health_port, stale_s=stale_s) as port:
            log.info("watches %s, health on port %d", ", ".join(namespaces) or "all namespaces", port)

            async def lead() -> None:
                try:
                    await _until_kinds_are_served(api)
                    reading = reader.run(min(INTERVAL_S, options.resync_s))
                    looking = _complain_of_old_kinds(api)
                    async with fleet.running(), _running(reading, "reading of routers"), _running(looking, "kinds"):
                        await watch(namespaces, fleet.wake, hearing, rights, watch_s=options.watch_s)
                finally:  # another operator goes on: what this one knew gets old
                    await nudger.stop()
                    rounds.forget()
                    judged.clear()

            await leader.run(lead)


def _leader(options: Options, namespaces: Sequence[str], api: Api) -> Leader:
    return Leader(
        api,
        name=options.lease.name,
        namespace=options.lease.namespace or _pods_namespace() or (*namespaces, _LEASE_NAMESPACE)[0],
        me=f"{socket.gethostname()}_{uuid.uuid4().hex[:8]}",
        duration_s=options.lease.duration_s,
    )


@asynccontextmanager
async def _running(work: Coroutine[None, None, None], name: str) -> AsyncIterator[None]:
    """It runs until the end of the block."""
    task = asyncio.create_task(work, name=name)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _until_kinds_are_served(api: Api) -> None:
    """Wait: kopf looks for the kinds once, at its start."""
    told = ""
    while waits_for := await _missing(api):
        if waits_for != told:
            log.warning("waits for %s", waits_for)
            told = waits_for
        await asyncio.sleep(_CRD_POLL_S)


async def _complain_of_old_kinds(api: Api) -> None:
    """Once, when the kinds that are served lose fields: nobody else would tell."""
    told = ""
    for _ in range(_CRD_LOOKS):  # what was applied a moment ago is published a moment later
        try:
            told = schemas.complaint(await api.openapi())
        except ApiError as error:
            log.debug("cannot see how the kinds are served: %s", error)
        if not told:
            return
        await asyncio.sleep(_CRD_POLL_S)
    log.error("%s", told)


async def _missing(api: Api) -> str:
    """What keeps it from watching; empty = nothing."""
    try:
        kinds = await api.missing_kinds()
    except ApiError as error:
        return f"the API server: {error}"
    return f"the CustomResourceDefinitions of {', '.join(kinds)}" if kinds else ""
