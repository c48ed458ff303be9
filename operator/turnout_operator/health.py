"""`/healthz` and `/readyz` of the operator: how old the last good round of each namespace is."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from aiohttp import web

from turnout_operator.worker import Worker


@asynccontextmanager
async def serve_health(workers: Sequence[Worker], *, host: str, port: int, stale_s: float) -> AsyncIterator[int]:
    """Serve until the end of the block; gives the port. `/healthz` is 503 once a last good round is older than `stale_s`."""

    async def healthz(_request: web.Request) -> web.Response:
        return _answer(workers, good=all(worker.age_s() < stale_s for worker in workers))

    async def readyz(_request: web.Request) -> web.Response:
        return _answer(workers, good=all(worker.rounds for worker in workers))

    app = web.Application()
    app.add_routes([web.get("/healthz", healthz), web.get("/readyz", readyz)])
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


def _answer(workers: Sequence[Worker], *, good: bool) -> web.Response:
    facts = {
        worker.namespace: {
            "rounds": worker.rounds,
            "writes": worker.writes,
            "age_s": round(worker.age_s(), 1),
            "trouble": worker.trouble,
        }
        for worker in workers
    }
    return web.json_response({"namespaces": facts}, status=200 if good else 503)
