"""`/healthz`, `/readyz` and `/metrics` of the operator.

`/healthz` asks for what a restart would mend: whether rounds come to an end. One that ends badly (an object that the API server
refuses, definitions that are too old) would end as badly in a new process; it is told in `trouble`, the log and the metrics. Nor does
one refused object make `/readyz` say no, which would take the webhooks from all others. An
operator without the Lease does no rounds, and a restart would not give it the Lease: it is well. One that waits while another
operator has it answers webhooks, so it is ready too.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from turnout_operator import metrics
from turnout_operator.metrics import Parts
from turnout_operator.worker import LONGEST_PAUSE_S

_STALE_AFTER = 5
_CLOSE_S = 1.0
"""Probes are answered at once: at the end nobody is waited for longer."""


def stale_after_s(resync_s: float) -> float:
    """For how long no round ends when one is stuck: rounds that end badly are up to `LONGEST_PAUSE_S` apart, however short the interval."""
    return _STALE_AFTER * max(resync_s, LONGEST_PAUSE_S)


@asynccontextmanager
async def serve_health(parts: Parts, *, host: str, port: int, stale_s: float) -> AsyncIterator[int]:
    """Serve until the end of the block; gives the port. `/healthz` is 503 once no round has ended for `stale_s`."""

    async def healthz(_request: web.Request) -> web.Response:
        stale = parts.leader.leads and any(worker.stuck_s() >= stale_s for worker in parts.workers)
        return _answer(parts, good=not stale)

    async def readyz(_request: web.Request) -> web.Response:
        return _answer(parts, good=parts.leader.waits or all(worker.completed for worker in parts.workers))

    async def shown(_request: web.Request) -> web.Response:
        return web.Response(body=metrics.text_of(parts), headers={"Content-Type": "text/plain; version=0.0.4"})

    app = web.Application()
    app.add_routes([web.get("/healthz", healthz), web.get("/readyz", readyz), web.get("/metrics", shown)])
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=_CLOSE_S)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


def _answer(parts: Parts, *, good: bool) -> web.Response:
    namespaces = {
        worker.namespace: {
            "rounds": worker.rounds,
            "writes": worker.writes,
            "age_s": round(worker.age_s(), 1),
            "trouble": worker.trouble,
        }
        for worker in parts.workers
    }
    leader = parts.leader
    facts = {"leads": leader.leads, "holder": leader.holder, "namespaces": namespaces}
    return web.json_response(facts, status=200 if good else 503)
