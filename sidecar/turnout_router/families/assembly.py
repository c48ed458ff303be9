"""A whole answer out of a stream: asked for as events, given as the one JSON document that the client wants.

Problem: llama.cpp does not notice that the client of a whole answer has left. It writes on to the end, and its slot is
busy all that time; the slot of a stream it frees at once (`docs/backends.md`). Idea: such a backend is only ever asked
for streams. `to_streaming` turns the request, `Assembler` turns the events back into what the server itself would have
answered.

How pieces join, wherever they stand in a choice:

* null says nothing; text is appended to text, a list's entries to the list's, an object's members to the object's;
* tool calls join by their `index`, which the whole answer does not have;
* `id`, `type`, `role`, `finish_reason`, numbers and whatever else there is: the last one counts.

Around the choices the last event counts, but `usage` and `timings` are those of the first choice: llama.cpp gives
each choice its own, and its whole answer has those of the first.

Invariants:

* The answer does not depend on how the stream was cut.
* A stream that reported an error, or that ended before it was complete, never becomes an answer: AssemblyFailed.
* What is held is bounded by what was fed, and that by `MAX_STREAM_BYTES`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

import orjson

from turnout_router.families import paths
from turnout_router.families.errors import GatewayError, StreamKind
from turnout_router.families.events import Event, EventReader
from turnout_router.families.paths import Operation
from turnout_router.families.refusals import message_of

MAX_STREAM_BYTES = 256 * 1024 * 1024
"""Of one stream: some 250 bytes a token, and up to 4,000 a token with the probabilities of twenty others."""
MAX_LEVELS = 8
"""Objects in objects that are joined; deeper ones are taken as they are."""

_ASK_FOR_STREAM = b'"stream":true,"stream_options":{"include_usage":true}}'
_ONCE = frozenset({"id", "type", "role", "finish_reason"})
"""Text that is not written in pieces."""
_FRAME = ("created", "model", "system_fingerprint", "id")
_OF_FIRST_CHOICE = ("usage", "timings")

_Object = dict[str, object]


class AssemblyFailed(Exception):
    """The stream is no whole answer; the message says why, in words for the router's log."""


class Form(Enum):
    """What is assembled; the value is its `object`."""

    CHAT = "chat.completion"
    COMPLETION = "text_completion"


def form_of(method: str, target: str) -> Form | None:
    """What the answer to this request would be assembled to; None = this path's answers are left alone.

    Only OpenAI's `data:` events are understood: the typed events of `/v1/responses` and `/v1/messages` are not.
    """
    try:
        endpoint = paths.find(method, target.partition("?")[0]).endpoint
    except GatewayError:
        return None
    if endpoint.stream is not StreamKind.SSE:
        return None
    return {Operation.CHAT: Form.CHAT, Operation.COMPLETION: Form.COMPLETION}.get(endpoint.operation)


def to_streaming(body: bytes) -> bytes | None:
    """The same request for a stream with usage. None when it must go as it is.

    That is: it asks for a stream already, it is nothing that can be understood (the backend says what is wrong with
    it), or it asks for probabilities beside tools, which llama.cpp refuses in a stream and only there
    (https://github.com/ggml-org/llama.cpp/issues/28478).
    """
    try:
        asked = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(asked, dict) or not (asked.get("stream") is None or asked["stream"] is False):
        return None
    options = asked.get("stream_options")
    if not (options is None or isinstance(options, dict)) or (asked.get("tools") and asked.get("logprobs")):
        return None
    if "stream" not in asked and "stream_options" not in asked:
        # spliced, not written anew: pictures make bodies of many megabytes
        return body.rstrip()[:-1] + (b"," if asked else b"") + _ASK_FOR_STREAM
    try:
        return orjson.dumps(asked | {"stream": True, "stream_options": (options or {}) | {"include_usage": True}})
    except orjson.JSONEncodeError:  # it reads 1,024 levels and writes 254
        return None


class Assembler:
    """One answer. `feed` what arrives, then `finish`. After AssemblyFailed it is of no more use."""

    def __init__(self, form: Form, *, max_bytes: int = MAX_STREAM_BYTES) -> None:
        self._form = form
        self._max_bytes = max_bytes
        self._fed = 0
        self._events = EventReader()
        self._choices: dict[int, _Object] = {}
        self._frame: _Object = {}
        self._others: _Object = {}
        self._counts: dict[str, dict[int, object]] = {name: {} for name in _OF_FIRST_CHOICE}
        self._last_finished = 0
        self._said_done = False

    def feed(self, chunk: bytes) -> None:
        """Take what arrived. Raises AssemblyFailed."""
        self._fed += len(chunk)
        if self._fed > self._max_bytes:
            raise AssemblyFailed(f"the stream is longer than {self._max_bytes} bytes")
        for event in self._events.feed(chunk):
            self._take(event)

    def finish(self) -> bytes:
        """The whole answer, at the end of the stream. Raises AssemblyFailed."""
        for event in self._events.flush():
            self._take(event)
        if not self._is_complete:
            raise AssemblyFailed("the stream ended before it was complete")
        write = _message_choice if self._form is Form.CHAT else _text_choice
        answer: _Object = {"choices": [write(index, self._choices[index]) for index in sorted(self._choices)]}
        answer |= self._frame | {"object": self._form.value}
        answer |= {name: by_choice[min(by_choice)] for name, by_choice in self._counts.items() if by_choice}
        return _written(answer | self._others)

    @property
    def _is_complete(self) -> bool:
        """Every choice has said why it ended, and `[DONE]` came: without it, another choice may not have begun."""
        choices = self._choices.values()
        return self._said_done and bool(choices) and all(choice.get("finish_reason") for choice in choices)

    def _take(self, event: Event) -> None:
        if self._said_done:
            return
        if event.data.strip() == b"[DONE]":
            self._said_done = True
            return
        try:
            chunk = orjson.loads(event.data)
        except orjson.JSONDecodeError:
            chunk = event.data
        if event.kind == b"error" or (isinstance(chunk, dict) and chunk.get("error")):
            raise AssemblyFailed(f"the backend reported an error: {message_of(chunk) or 'no reason given'}")
        if chunk is None:
            return  # llama.cpp, while the second of several prompts waits for its slot
        if not isinstance(chunk, dict):
            raise AssemblyFailed("an event is no JSON object")
        self._take_chunk(chunk)

    def _take_chunk(self, chunk: _Object) -> None:
        choices = chunk.pop("choices", None)
        choices = [choice for choice in choices if isinstance(choice, dict)] if isinstance(choices, list) else []
        for choice in choices:
            self._take_choice(choice)
        about = _index(choices[0]) if choices else self._last_finished
        for name, value in ((name, chunk.pop(name, None)) for name in _OF_FIRST_CHOICE):
            if value is not None:
                self._counts[name][about] = value
        self._frame |= {name: chunk.pop(name) for name in _FRAME if name in chunk}
        self._others = chunk
        chunk.pop("object", None)

    def _take_choice(self, choice: _Object) -> None:
        index = _index(choice)
        _join(self._choices.setdefault(index, {}), _without_index(choice), MAX_LEVELS)
        if choice.get("finish_reason"):
            self._last_finished = index


def _message_choice(index: int, held: _Object) -> _Object:
    """A choice of a chat, from what its deltas came to."""
    choice = _plain_object(held)
    delta = choice.pop("delta", None)
    message: _Object = {"role": "assistant", "content": None}
    if isinstance(delta, dict):
        message |= delta
    if message["content"] is None and not (message.get("tool_calls") or message.get("function_call")):
        message["content"] = ""  # null says "there is a call instead"
    return {"finish_reason": choice.pop("finish_reason", None), "index": index, "message": message} | choice


def _text_choice(index: int, held: _Object) -> _Object:
    """A choice of a text completion."""
    return {"text": "", "index": index, "logprobs": None, "finish_reason": None} | _plain_object(held)


# Pieces


@dataclass(frozen=True, slots=True)
class _Text:
    pieces: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _List:
    """Entries as they are written, with commas between: a token's probabilities as objects take ten times the room."""

    pieces: list[bytes] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Calls:
    by_index: dict[int, _Object] = field(default_factory=dict)


def _join(held: _Object, delta: Mapping[str, object], levels: int) -> None:
    for name, value in delta.items():
        held[name] = _joined(name, held.get(name), value, levels)


def _joined(name: str, held: object, value: object, levels: int) -> object:
    match value:
        case None:
            return held
        case str() if name not in _ONCE:
            text = held if isinstance(held, _Text) else _Text()
            text.pieces.append(value)
            return text
        case list():
            return _joined_list(name, held, value, levels)
        case dict() if levels:
            members = held if isinstance(held, dict) else {}
            _join(members, value, levels - 1)
            return members
        case dict():
            return orjson.Fragment(_written(value))
        case _:
            return value


def _joined_list(name: str, held: object, value: list[object], levels: int) -> object:
    if name == "tool_calls" and levels:
        calls = held if isinstance(held, _Calls) else _Calls()
        _join_calls(calls.by_index, value, levels - 1)
        return calls
    entries = held if isinstance(held, _List) else _List()
    if value:
        entries.pieces.append(_written(value)[1:-1])
    return entries


def _join_calls(held: dict[int, _Object], deltas: list[object], levels: int) -> None:
    for delta in deltas:
        if isinstance(delta, dict):
            index = _index(delta, len(held))
            _join(held.setdefault(index, {}), _without_index(delta), levels)


def _plain(piece: object) -> object:
    match piece:
        case _Text():
            return "".join(piece.pieces)
        case _List():
            return orjson.Fragment(b"[" + b",".join(piece.pieces) + b"]")
        case _Calls():
            return [_plain_object(piece.by_index[index]) for index in sorted(piece.by_index)]
        case dict():
            return _plain_object(piece)
        case _:
            return piece


def _plain_object(held: Mapping[str, object]) -> _Object:
    return {name: _plain(piece) for name, piece in held.items()}


def _index(item: Mapping[str, object], otherwise: int = 0) -> int:
    index = item.get("index")
    return index if isinstance(index, int) else otherwise


def _without_index(item: Mapping[str, object]) -> _Object:
    return {name: value for name, value in item.items() if name != "index"}


def _written(value: object) -> bytes:
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:
        raise AssemblyFailed("the backend's answer is nested too deep") from None
