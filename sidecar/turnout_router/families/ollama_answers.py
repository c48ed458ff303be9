"""OpenAI's answers, written as Ollama's: whole ones, and streams of events as lines of JSON.

Problem: OpenAI streams deltas (a tool call in pieces, usage in an event of its own, `[DONE]` at the end); Ollama streams
lines, the last of which has `done: true` with all the counts. Idea: a translator that is fed bytes in any cut and gives
lines; it remembers what the last line needs.

Invariants of `StreamTranslator`:

* The lines do not depend on how the bytes were cut.
* It ends exactly once: in a `done` line, or in an error line; what is fed later gives nothing.
* A stream that stopped without a sign of its end gives an error line, never `done`.
* The name in every line is the public one, whatever the backend wrote.

Durations are nanoseconds: llama.cpp's `timings` where there are any, else what was measured here (to the first token,
and from there to the end), since clients divide by them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import orjson

from turnout_router.families.errors import BackendBroke, GatewayError, StreamKind, stream_error
from turnout_router.families.events import Event, EventReader
from turnout_router.families.listing import timestamp
from turnout_router.families.ollama import AnswerForm
from turnout_router.families.refusals import backend_message, message_of

_Json = dict[str, object]

MAX_EVENT_BYTES = 16 * 1024 * 1024
"""A longer event is no event: the stream is given up."""
_NS = 1_000_000_000


def error_answer(body: bytes) -> bytes:
    """A backend's error in Ollama's shape; the status stays."""
    return orjson.dumps({"error": backend_message(body) or "the backend gave no reason"})


def load_answer(form: AnswerForm, model: str, now: float, *, unload: bool = False) -> bytes:
    """The answer to a request that only loads or unloads the model; also the one line of its stream."""
    line = _line(form, model, now, "")
    line |= {"done": True, "done_reason": "unload" if unload else "load"}
    return _written(line)


def answer(form: AnswerForm, body: bytes, *, model: str, started_at: float, now: float) -> bytes:
    """A whole answer; with its line end also right as a stream of one line. Raises BackendBroke.

    Times are wall clock, seconds since the epoch.
    """
    try:
        parsed = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise BackendBroke("the backend's answer is not JSON") from None
    if not isinstance(parsed, dict):
        raise BackendBroke("the backend's answer is no JSON object")
    clock = _Clock(started_at, started_at, now)
    match form:
        case AnswerForm.CHAT | AnswerForm.GENERATE:
            translated = _whole_text(form, parsed, model, clock)
        case AnswerForm.EMBED:
            counts = _counts(parsed, clock)
            translated = {"model": model, "embeddings": _vectors(parsed)}
            translated |= {name: counts[name] for name in ("total_duration", "load_duration", "prompt_eval_count")}
        case AnswerForm.EMBEDDINGS:
            translated = {"embedding": next(iter(_vectors(parsed)), [])}
    return _written(translated)


class StreamTranslator:
    """One streamed answer. `feed` what arrives, `flush` at its end, `fail` when it broke."""

    def __init__(self, form: AnswerForm, *, model: str, started_at: float) -> None:
        self.is_finished = False
        """The last line was given."""
        self._form = form
        self._model = model
        self._started_at = started_at
        self._first_at: float | None = None
        self._events = EventReader()
        self._calls = _CallPieces()
        self._finish_reason = ""
        self._final: _Json = {}  # usage and timings

    def feed(self, data: bytes, now: float) -> bytes:
        """The lines that `data` completes."""
        if self.is_finished:
            return b""
        written = b"".join([self._read(event, now) for event in self._events.feed(data)])
        if self._events.held_bytes > MAX_EVENT_BYTES:
            written += self.fail(BackendBroke("the backend sent an event without an end"))
        return written

    def flush(self, now: float) -> bytes:
        """The backend closed its answer: what is left, and the last line."""
        return self.feed(b"\n\n", now) + self._close(now)  # some servers leave out the last event's line ends

    def _close(self, now: float) -> bytes:
        if self.is_finished:
            return b""
        return self._end(now) if self._finish_reason else self.fail(BackendBroke("the backend's stream broke off"))

    def fail(self, error: GatewayError) -> bytes:
        """The stream broke: its last line says so."""
        if self.is_finished:
            return b""
        self.is_finished, self._events = True, EventReader()
        return stream_error(StreamKind.NDJSON, error)

    def _read(self, event: Event, now: float) -> bytes:
        if self.is_finished:
            return b""
        try:
            return self._take(event, now)
        except BackendBroke as error:
            return self.fail(error)

    def _take(self, event: Event, now: float) -> bytes:
        if event.data.strip() == b"[DONE]":
            return self._end(now)
        try:
            chunk = orjson.loads(event.data)
        except orjson.JSONDecodeError:
            raise BackendBroke("the backend sent an event that is not JSON") from None
        if not isinstance(chunk, dict):
            return b""
        if event.kind == b"error" or chunk.get("error"):
            raise BackendBroke(message_of(chunk) or "the backend reported an error")
        for field in ("usage", "timings"):
            if isinstance(chunk.get(field), dict):
                self._final[field] = chunk[field]
        choice = _first(chunk.get("choices"))
        return self._choice(choice, now) if choice else b""

    def _choice(self, choice: Mapping[str, object], now: float) -> bytes:
        text, thinking, calls = _said(choice, "delta")
        self._calls.add(calls)
        finish_reason = choice.get("finish_reason")
        if isinstance(finish_reason, str):
            self._finish_reason = finish_reason
        whole_calls = self._calls.take() if self._finish_reason else []
        if not (text or thinking or whole_calls):
            return b""
        if self._first_at is None:
            self._first_at = now
        line = (
            _line(self._form, self._model, now, text, thinking=thinking, calls=whole_calls)
            | {"done": False}
            | _logprobs(choice)
        )
        return _written(line)

    def _end(self, now: float) -> bytes:
        line = _line(self._form, self._model, now, "", calls=self._calls.take())
        line |= {"done": True, "done_reason": _done_reason(self._finish_reason)}
        line |= _counts(self._final, _Clock(self._started_at, self._first_at or self._started_at, now))
        self.is_finished = True
        return _written(line)


class _CallPieces:
    """Tool calls as they grow: OpenAI sends name and arguments in pieces, Ollama wants them whole."""

    def __init__(self) -> None:
        self._pieces: dict[int, tuple[list[str], list[str]]] = {}

    def add(self, deltas: object) -> None:
        """Take the `tool_calls` of a delta, or of a whole message (which have no `index`)."""
        for delta in deltas if isinstance(deltas, list) else []:
            function = delta.get("function") if isinstance(delta, dict) else None
            if not isinstance(function, dict):
                continue
            index = delta.get("index")
            key = index if isinstance(index, int) else len(self._pieces)
            names, arguments = self._pieces.setdefault(key, ([], []))
            name, piece = function.get("name"), function.get("arguments")
            if isinstance(name, str):
                names.append(name)
            if isinstance(piece, str):
                arguments.append(piece)
            elif isinstance(piece, dict):
                arguments.append(_written(piece).decode())  # some servers send them as Ollama does

    def take(self) -> list[_Json]:
        """The whole calls, once. Raises BackendBroke."""
        pieces, self._pieces = self._pieces, {}
        return [_call("".join(names), "".join(arguments)) for _, (names, arguments) in sorted(pieces.items())]


@dataclass(frozen=True, slots=True)
class _Clock:
    started_at: float
    first_at: float
    now: float


def _whole_text(form: AnswerForm, parsed: Mapping[str, object], model: str, clock: _Clock) -> _Json:
    choice = _first(parsed.get("choices"))
    if choice is None:
        raise BackendBroke("the backend's answer has no choice")
    text, thinking, deltas = _said(choice, "message")
    calls = _CallPieces()
    calls.add(deltas)
    translated = _line(form, model, clock.now, text, thinking=thinking, calls=calls.take())
    translated |= {"done": True, "done_reason": _done_reason(choice.get("finish_reason"))}
    return translated | _logprobs(choice) | _counts(parsed, clock)


def _line(
    form: AnswerForm, model: str, now: float, text: str, *, thinking: str = "", calls: Sequence[_Json] = ()
) -> _Json:
    """One line or answer, without `done`."""
    line: _Json = {"model": model, "created_at": timestamp(now)}
    if form is AnswerForm.GENERATE:
        line["response"] = text
        return line | ({"thinking": thinking} if thinking else {})
    message: _Json = {"role": "assistant", "content": text}
    if thinking:
        message["thinking"] = thinking
    if calls:
        message["tool_calls"] = calls
    line["message"] = message
    return line


def _said(choice: Mapping[str, object], field: str) -> tuple[str, str, object]:
    """Text, thinking and tool calls of a choice of a chat or a completion."""
    said = choice.get(field)
    if not isinstance(said, dict):
        return _text(choice.get("text")), "", None
    thinking = _text(said.get("reasoning_content")) or _text(said.get("reasoning"))
    return _text(said.get("content")), thinking, said.get("tool_calls")


def _written(line: _Json) -> bytes:
    try:
        return orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE)
    except orjson.JSONEncodeError:  # it reads 1,024 levels and writes 254
        raise BackendBroke("the backend's answer is nested too deep") from None


def _call(name: str, arguments: str) -> _Json:
    try:
        parsed = orjson.loads(arguments) if arguments.strip() else {}
    except orjson.JSONDecodeError:
        parsed = None
    if not isinstance(parsed, dict):
        raise BackendBroke(f"the model called the tool {name!r} with arguments that are no JSON object")
    return {"function": {"name": name, "arguments": parsed}}


def _counts(answered: Mapping[str, object], clock: _Clock) -> _Json:
    usage, timings = answered.get("usage"), answered.get("timings")
    usage = usage if isinstance(usage, dict) else {}
    timings = timings if isinstance(timings, dict) else {}
    prompt_ns = _milliseconds(timings.get("prompt_ms"), clock.first_at - clock.started_at)
    eval_ns = _milliseconds(timings.get("predicted_ms"), clock.now - clock.first_at)
    return {
        "total_duration": _nanoseconds(clock.now - clock.started_at),
        "load_duration": 0,
        "prompt_eval_count": _count(usage.get("prompt_tokens"), timings.get("prompt_n")),
        "prompt_eval_duration": prompt_ns,
        "eval_count": _count(usage.get("completion_tokens"), timings.get("predicted_n")),
        "eval_duration": eval_ns,
    }


def _vectors(parsed: Mapping[str, object]) -> list[object]:
    """The embeddings in the order of their inputs."""
    data = parsed.get("data")
    if not isinstance(data, list) or not all(isinstance(item, dict) and "embedding" in item for item in data):
        raise BackendBroke("the backend's answer has no embeddings")
    return [item["embedding"] for item in sorted(data, key=_index)]


def _index(item: Mapping[str, object]) -> int:
    index = item.get("index")
    return index if isinstance(index, int) else 0


def _logprobs(choice: Mapping[str, object]) -> _Json:
    logprobs = choice.get("logprobs")
    content = logprobs.get("content") if isinstance(logprobs, dict) else None
    return {"logprobs": content} if isinstance(content, list) and content else {}


def _done_reason(finish_reason: object) -> str:
    return "length" if finish_reason == "length" else "stop"


def _first(choices: object) -> dict[str, object] | None:
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        return choices[0]
    return None


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _count(*values: object) -> int:
    return next((value for value in values if isinstance(value, int) and value >= 0), 0)


def _milliseconds(stated: object, measured_s: float) -> int:
    return int(stated * 1_000_000) if isinstance(stated, int | float) and stated >= 0 else _nanoseconds(measured_s)


def _nanoseconds(seconds: float) -> int:
    return max(0, int(seconds * _NS))
