"""An Ollama request to a backend that speaks OpenAI's API: the answer's way back."""

import time

from multidict import CIMultiDict

from turnout_router.families import ollama_answers, paths
from turnout_router.families.errors import JSON, NDJSON
from turnout_router.families.ollama import AnswerForm, answer_form
from turnout_router.families.ollama_answers import StreamTranslator
from turnout_router.gateway.relay import Plan, broken_off
from turnout_router.upstream.interface import UpstreamResponse

_OF_THE_BACKENDS_FORMAT = ("Content-Type", "Content-Length", "Cache-Control")


def plan(
    path: paths.Endpoint,
    upstream: UpstreamResponse,
    headers: CIMultiDict[str],
    *,
    model: str,
    stream: bool,
    began: float,
) -> Plan:
    """How OpenAI's answer becomes Ollama's. `began`: wall clock of the request, for the durations that Ollama tells."""
    form = answer_form(path)
    for name in _OF_THE_BACKENDS_FORMAT:
        headers.popall(name, None)
    if upstream.status >= 400:
        headers["Content-Type"] = JSON
        return Plan(upstream.status, headers, whole=ollama_answers.error_answer)
    headers["Content-Type"] = NDJSON if stream else JSON
    if upstream.header(b"content-type").startswith(b"text/event-stream"):
        lines = _Lines(form, model, began)
        return Plan(upstream.status, headers, transform=lines, broken=lines.broken)

    def whole(body: bytes) -> bytes:
        return ollama_answers.answer(form, body, model=model, started_at=began, now=time.time())

    return Plan(upstream.status, headers, whole=whole)


class _Lines:
    """`StreamTranslator` with the wall clock that its lines tell."""

    def __init__(self, form: AnswerForm, model: str, began: float) -> None:
        self._translator = StreamTranslator(form, model=model, started_at=began)

    def feed(self, chunk: bytes) -> bytes:
        return self._translator.feed(chunk, time.time())

    def flush(self) -> bytes:
        return self._translator.flush(time.time())

    def broken(self) -> bytes:
        return self._translator.fail(broken_off())
