"""The request as an endpoint gets it: path, headers, and the body under the name that the endpoint knows."""

from collections.abc import Callable

from aiohttp import web

from turnout_router.cluster.table import Endpoint
from turnout_router.families import headers, paths
from turnout_router.families.multipart import parse_form
from turnout_router.families.names import rewrite_request_model
from turnout_router.families.ollama import to_openai
from turnout_router.families.paths import Way
from turnout_router.families.request import RequestFacts
from turnout_router.families.sdapi import with_checkpoint
from turnout_router.families.stream_usage import asking
from turnout_router.gateway.attempt import Outgoing


def build(
    request: web.BaseRequest,
    path: paths.Endpoint,
    facts: RequestFacts,
    body: bytes,
    *,
    endpoint: Endpoint,
    request_id: str,
    asks_usage: bool = False,
) -> Outgoing:
    """What `endpoint` is sent. `asks_usage`: its stream is to tell what it used, though the client did not ask.

    Raises InvalidBody for an Ollama request that has no form in OpenAI's API.
    """
    passed = headers.to_backend(request.raw_headers)
    if paths.way(path, endpoint.family) is Way.TRANSLATE:
        assert facts.body is not None  # noqa: S101 - Ollama's paths take JSON only
        translated = to_openai(
            path, facts.body, model=facts.model, stream=facts.stream, family=endpoint.family, asks_usage=asks_usage
        )
        body_for = _renamed(facts.model, facts, translated.body)
        return Outgoing(request.method, translated.path, passed, body_for, request_id)
    if asks_usage and facts.body is not None:
        body = asking(body, facts.body)
    return Outgoing(request.method, _target(request, path), passed, _renamed(facts.model, facts, body), request_id)


def _target(request: web.BaseRequest, path: paths.Endpoint) -> str:
    """The path as the table spells it, with the query as the client did.

    What was judged is what is sent: a client may write escapes, dot segments or a whole URL for the same path.
    """
    query = request.raw_path.partition("?")[2].partition("#")[0]
    return f"{path.path}?{query}" if query else path.path


def renamed(content_type: str, body: bytes, named: str) -> Callable[[str], bytes]:
    """The body of a request that another router has read, under any name; its model is `named` now ("" = not known)."""

    def body_for(name: str) -> bytes:
        if name == named:
            return body
        if content_type.startswith("multipart/"):
            return parse_form(body, content_type).with_model(body, name)
        changed = rewrite_request_model(body, name)
        return with_checkpoint(body, name) if changed is body else changed

    return body_for


def _renamed(named: str, facts: RequestFacts, body: bytes) -> Callable[[str], bytes]:
    def body_for(name: str) -> bytes:
        if name == named:
            return body
        if facts.form:
            return facts.form.with_model(body, name)
        if facts.body is not None and facts.body.get("model") is not None:
            return rewrite_request_model(body, name)
        return with_checkpoint(body, name)

    return body_for
