"""`POST /inject` over HTTPS: what the API server asks before it takes a pod."""

import json
import logging
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from turnout_operator.admission.injector import Injector
from turnout_operator.admission.review import NoReview
from turnout_operator.api import ApiError

PATH = "/inject"
MAX_REVIEW_BYTES = 8 * 1024 * 1024
"""An object has at most 1.5 MiB; a review holds two."""

log = logging.getLogger(__name__)


@asynccontextmanager
async def serve_admission(injector: Injector, context: ssl.SSLContext, *, host: str, port: int) -> AsyncIterator[int]:
    """Serve until the end of the block; gives the port."""

    async def injected(request: web.Request) -> web.Response:
        try:
            answer = await injector.answer(json.loads(await request.read()))
        except (NoReview, ValueError) as error:
            return web.Response(status=400, text=f"{error}\n")
        except ApiError as error:  # the failurePolicy decides
            log.warning("a pod could not be judged: %s", error)
            return web.Response(status=503, text=f"{error}\n")
        return web.json_response(answer)

    app = web.Application(client_max_size=MAX_REVIEW_BYTES)
    app.add_routes([web.post(PATH, injected)])
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port, ssl_context=context).start()
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()
