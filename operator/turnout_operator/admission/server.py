"""`POST /inject` and `POST /validate` over HTTPS: what the API server asks before it takes a pod, or one of Turnout's objects."""

import json
import logging
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from turnout_operator.admission.injector import Injector
from turnout_operator.admission.review import NoReview
from turnout_operator.admission.validator import Validator
from turnout_operator.api import ApiError
from turnout_operator.state import StateError

INJECT_PATH, VALIDATE_PATH = "/inject", "/validate"
MAX_REVIEW_BYTES = 8 * 1024 * 1024
"""An object has at most 1.5 MiB; a review holds two."""
_Answer = Callable[[object], Awaitable[dict[str, Any]]]

log = logging.getLogger(__name__)


@asynccontextmanager
async def serve_admission(
    injector: Injector, validator: Validator, context: ssl.SSLContext, *, host: str, port: int
) -> AsyncIterator[int]:
    """Serve until the end of the block; gives the port."""
    app = web.Application(client_max_size=MAX_REVIEW_BYTES)
    app.add_routes(
        [web.post(INJECT_PATH, _handler(injector.answer)), web.post(VALIDATE_PATH, _handler(validator.answer))]
    )
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port, ssl_context=context).start()
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


def _handler(answer: _Answer) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def handle(request: web.Request) -> web.Response:
        try:
            return web.json_response(await answer(json.loads(await request.read())))
        except (NoReview, ValueError) as error:
            return web.Response(status=400, text=f"{error}\n")
        except (ApiError, StateError) as error:  # the failurePolicy decides
            log.warning("%s could not be answered: %s", request.path, error)
            return web.Response(status=503, text=f"{error}\n")

    return handle
