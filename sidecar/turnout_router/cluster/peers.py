"""Calls from one router to another: JSON with the cluster token, over the upstream client.

A message or an answer is anything that pydantic reads and writes: the models of `turnout_api.wire`, the dataclasses of
`turnout_api.lending`.

Errors: `PeerFailed` with a reason that a person can act on; nothing else leaves this module.
"""

import asyncio
from dataclasses import replace
from typing import TypeVar

from pydantic import ValidationError

from turnout_api.wire import NODE_PREFIX, STAGE_HEADER, ErrorBody
from turnout_router.access import ClusterTokens
from turnout_router.cluster.messages import read, written
from turnout_router.upstream.interface import (
    BodyTooLarge,
    Origin,
    UpstreamClient,
    UpstreamError,
    UpstreamRequest,
    UpstreamResponse,
)

MAX_ANSWER_BYTES = 32 * 1024 * 1024
Answer = TypeVar("Answer")


class PeerFailed(Exception):
    """Another router could not be asked, or said no."""

    def __init__(self, reason: str, *, status: int = 0, code: str = "") -> None:
        super().__init__(reason)
        self.status = status
        self.code = code


class Peers:
    """The other routers of the cluster."""

    def __init__(self, client: UpstreamClient, tokens: ClusterTokens, *, timeout_s: float) -> None:
        self._client = client
        self.timeout_s = timeout_s
        """Of a call that says nothing else."""
        self._tokens = tokens

    async def get(self, url: str, path: str, answer: type[Answer], *, timeout_s: float | None = None) -> Answer:
        """`GET URL/router/v1/node/PATH`. `timeout_s` left out = the poll timeout. Raises PeerFailed."""
        limit = self.timeout_s if timeout_s is None else timeout_s
        return await self._call(url, UpstreamRequest("GET", f"{NODE_PREFIX}/{path}"), answer, limit)

    async def post(
        self, url: str, path: str, message: object, answer: type[Answer], *, timeout_s: float | None = -1
    ) -> Answer:
        """`POST URL/router/v1/node/PATH`. `timeout_s` None = no limit, left out = the poll timeout. Raises PeerFailed."""
        headers = [(b"Content-Type", b"application/json")]
        body = written(message)
        limit = self.timeout_s if timeout_s == -1 else timeout_s
        return await self._call(url, UpstreamRequest("POST", f"{NODE_PREFIX}/{path}", headers, body), answer, limit)

    async def _call(self, url: str, request: UpstreamRequest, answer: type[Answer], timeout_s: float | None) -> Answer:
        try:
            async with asyncio.timeout(timeout_s):
                status, body = await self._authorized(Origin.of(url), request)
        except TimeoutError as error:
            raise PeerFailed(f"no answer from {url} within {timeout_s:g}s") from error
        except (UpstreamError, BodyTooLarge) as error:
            raise PeerFailed(str(error)) from error
        if status != 200:
            raise _refusal(url, status, body)
        try:
            return read(answer, body)
        except ValidationError as error:
            raise PeerFailed(
                f"{url} is no Turnout router, or of a version that this one does not understand"
            ) from error

    async def _authorized(self, origin: Origin, request: UpstreamRequest) -> tuple[int, bytes]:
        status, body = 0, b""
        for authorization in authorizations(self._tokens):
            attempt = replace(request, headers=(*request.headers, authorization))
            response = await self._client.request(origin, attempt)
            try:
                status, body = response.status, await response.read_all(MAX_ANSWER_BYTES)
            finally:
                response.close()
            if status != 401:
                break
        return status, body


async def ask_with_token(
    client: UpstreamClient, tokens: ClusterTokens, origin: Origin, request: UpstreamRequest
) -> UpstreamResponse:
    """Have another router answer a request that it may run but once. Raises UpstreamError."""
    *first, last = authorizations(tokens)
    for authorization in first:
        response = await client.request(origin, replace(request, headers=(*request.headers, authorization)))
        if response.status != 401 or not response.header(STAGE_HEADER.encode()):
            return response
        response.close()  # the node itself refused the token, so nothing ran: it may know the previous one
    return await client.request(origin, replace(request, headers=(*request.headers, last)))


def authorizations(tokens: ClusterTokens) -> list[tuple[bytes, bytes]]:
    """The headers that may let this router in, to be tried in this order while the answer is 401."""
    return [(b"Authorization", b"Bearer " + token.encode()) for token in tokens.offered]


def _refusal(url: str, status: int, body: bytes) -> PeerFailed:
    try:
        error = read(ErrorBody, body)
    except ValidationError:
        return PeerFailed(f"{url} answered HTTP {status}", status=status)
    hint = ": do both routers have the same cluster token?" if status == 401 else ""
    return PeerFailed(
        f"{url} answered HTTP {status} {error.code}: {error.message}{hint}", status=status, code=error.code
    )
