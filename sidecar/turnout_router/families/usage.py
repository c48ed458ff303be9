"""How much work a request asks for, and how much its answer says was done.

Problem: lending prices jobs by tokens and pixels. A node sees a raw body and then the bytes of an answer, in the words
of any API. Idea: a request is parsed once; of an answer only its first and its last bytes are kept, and searched for the
few keys that count tokens. Backends write them at the end: in the last event of a stream, in the last line, after the
choices. Two write at the beginning: `/v1/messages` counts the prompt in its first event, and llama.cpp puts an
embedding's usage before its numbers.

A key is found as `"usage":`, which no text can imitate: a quote inside a JSON string is escaped.

Invariants:

* Nothing here raises on any bytes. What cannot be read is not known, and is never guessed.
* An answer costs the same memory whatever its length, and its work does not depend on how its bytes were cut.
* Prompt tokens are all of the prompt's, those that came from a cache too: they are what its bytes became.
"""

import re
from collections.abc import Callable

import orjson

from turnout_api.lending import Work
from turnout_api.vocabulary import Lane
from turnout_router.families import paths
from turnout_router.families.errors import ApiFamily, GatewayError, InvalidBody
from turnout_router.families.multipart import Buffer
from turnout_router.families.paths import BodyKind, Endpoint, Operation
from turnout_router.families.request import RequestFacts, parse_json, parse_multipart
from turnout_router.lending.job import Job

HEAD_BYTES = 2048
TAIL_BYTES = 8192
MAX_OBJECT_BYTES = 2048
"""Of one `usage` or `timings`; real ones have a few hundred."""
MAX_COUNT = 1e9

# What was not said counts the same for every request, so a wrong default changes no comparison between two of them.
DEFAULT_STEPS = 20
DEFAULT_SIDE = 1024
DEFAULT_SDAPI_SIDE = 512
DEFAULT_VIDEO_S = 4
MAX_SIDE, MAX_STEPS, MAX_IMAGES, MAX_VIDEO_S = 65_536, 10_000, 1_000, 3_600

_KEY = re.compile(rb'"(usage|timings|prompt_eval_count|eval_count)"\s*:\s*(?=[{\d])')  # many events say "usage": null
_BRACE = re.compile(rb"[{}]")
_DIGITS = re.compile(rb"\d{1,10}")
_SIZE = re.compile(r"\s*(\d{1,5})\s*[xX*×]\s*(\d{1,5})\s*")

_Fields = Callable[[str], object]


def job_of(path: str, body: bytes, content_type: str) -> Job:
    """The job that a raw request is. A body that cannot be read is a job that is not lent: its backend will say why.

    `path` may have its query.
    """
    try:
        endpoint = paths.find("POST", path.partition("?")[0]).endpoint
    except GatewayError:
        return Job(body_bytes=len(body), lendable=False)
    try:
        is_form = paths.body_kind(endpoint, content_type) is BodyKind.MULTIPART
        facts = parse_multipart(body, content_type, endpoint) if is_form else parse_json(body, endpoint)
    except GatewayError:
        return Job(endpoint.lane or Lane.TEXT, len(body), lendable=False)
    return job_of_facts(endpoint, facts, body)


def job_of_facts(endpoint: Endpoint, facts: RequestFacts, body: Buffer) -> Job:
    """The job of a request that was parsed already."""
    lane = endpoint.lane or Lane.TEXT
    generates = endpoint.operation not in {Operation.EMBEDDING, Operation.RERANK}
    return Job(
        lane,
        len(body),
        max_tokens=facts.max_tokens if generates else 0,
        pixel_steps=_pixel_steps(endpoint, _fields_of(facts, body)) if lane is Lane.IMAGE else 0.0,
        lendable=not facts.stream,
        # an image model takes its picture as it is: only a text model needs vision for it
        has_images=facts.has_images and lane is Lane.TEXT,
    )


class UsageReader:
    """Feed it an answer, decoded; at its end it tells the work that the backend says it did."""

    __slots__ = ("_head", "_tail")

    def __init__(self) -> None:
        self._head = bytearray()
        self._tail = bytearray()

    def feed(self, chunk: bytes) -> None:
        """The next bytes of the answer."""
        if len(self._head) < HEAD_BYTES:
            self._head += chunk[: HEAD_BYTES - len(self._head)]
        tail = self._tail
        tail += chunk[-TAIL_BYTES:]
        if len(tail) > 2 * TAIL_BYTES:  # not at each chunk: most are a few bytes
            del tail[:-TAIL_BYTES]

    def work(self) -> Work | None:
        """None = the answer does not say."""
        return usage_of(bytes(self._tail[-TAIL_BYTES:]), bytes(self._head))


def usage_of(tail: bytes, head: bytes = b"") -> Work | None:
    """The tokens that the end of an answer tells, or else its beginning; None = it does not say how long the prompt was."""
    counts = _Counts()
    for match in reversed(list(_KEY.finditer(tail))):
        if counts.take(tail, match):
            break
    else:
        for match in _KEY.finditer(head):
            if counts.take(head, match):
                break
    return counts.work()


class _Counts:
    """What was found so far; the first that was found stays."""

    def __init__(self) -> None:
        self._input: float | None = None
        self._output: float | None = None
        self._timed: Work | None = None

    def take(self, data: bytes, match: re.Match[bytes]) -> bool:
        """Read the value after a key. True = nothing is missing now."""
        match match[1]:
            case b"prompt_eval_count":
                self._add(_digits_at(data, match.end()), None)
            case b"eval_count":
                self._add(None, _digits_at(data, match.end()))
            case b"timings":
                self._timed = self._timed or _timings(_object_at(data, match.end()))
            case _:
                self._add(*_usage(_object_at(data, match.end())))
        return self._input is not None and self._output is not None

    def work(self) -> Work | None:
        if self._input is None:
            return self._timed
        return Work(self._input, self._output or 0.0)

    def _add(self, input_tokens: float | None, output_tokens: float | None) -> None:
        # a prompt has tokens: zero is how an event that only counts the answer fills the field
        self._input = self._input or input_tokens or None
        self._output = output_tokens if self._output is None else self._output


def _usage(told: dict[str, object]) -> tuple[float | None, float | None]:
    """Input and output tokens of a `usage`, as OpenAI's two APIs and Anthropic's write it."""
    output = _count(told.get("completion_tokens"))
    output = _count(told.get("output_tokens")) if output is None else output
    prompt = _count(told.get("prompt_tokens"))
    if prompt is None:
        # Anthropic's input_tokens leave out what the cache had; OpenAI's have no such fields beside them
        prompt = _sum(told, "input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    total = _count(told.get("total_tokens"))
    if prompt is None and total is not None:
        prompt = total - (output or 0.0)
    return prompt, output


def _timings(told: dict[str, object]) -> Work | None:
    prompt = _sum(told, "prompt_n", "cache_n")
    return Work(prompt, _count(told.get("predicted_n")) or 0.0) if prompt else None


def _sum(told: dict[str, object], needed: str, *others: str) -> float | None:
    first = _count(told.get(needed))
    return None if first is None else first + sum(_count(told.get(name)) or 0.0 for name in others)


def _count(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MAX_COUNT:
        return None
    return float(value)


def _digits_at(data: bytes, at: int) -> float | None:
    found = _DIGITS.match(data, at)
    return _count(int(found[0])) if found else None


def _object_at(data: bytes, at: int) -> dict[str, object]:
    """The JSON object that begins there; empty when there is none, or it was cut off."""
    depth = 0
    if data[at : at + 1] == b"{":
        for brace in _BRACE.finditer(data, at, at + MAX_OBJECT_BYTES):
            depth += 1 if brace[0] == b"{" else -1
            if depth == 0:
                try:
                    found: dict[str, object] = orjson.loads(data[at : brace.end()])
                except orjson.JSONDecodeError:
                    break
                return found
    return {}


def _pixel_steps(endpoint: Endpoint, field: _Fields) -> float:
    """Pixels × steps × images of an image request; of a video, times its seconds."""
    if endpoint.api is ApiFamily.SDAPI:
        width = _whole(field("width"), DEFAULT_SDAPI_SIDE, MAX_SIDE)
        height = _whole(field("height"), DEFAULT_SDAPI_SIDE, MAX_SIDE)
        images = _whole(field("batch_size"), 1, MAX_IMAGES) * _whole(field("n_iter"), 1, MAX_IMAGES)
    else:
        width, height = _sides(field("size"))
        images = _whole(field("n"), 1, MAX_IMAGES)
    if endpoint.operation is Operation.VIDEO:
        images *= _whole(field("seconds"), DEFAULT_VIDEO_S, MAX_VIDEO_S)
    steps = _whole(field("steps"), 0, MAX_STEPS) or _whole(field("num_inference_steps"), DEFAULT_STEPS, MAX_STEPS)
    return float(width * height * steps * images)


def _sides(size: object) -> tuple[int, int]:
    found = _SIZE.fullmatch(size) if isinstance(size, str) else None
    if found is None:  # "auto", or nothing
        return DEFAULT_SIDE, DEFAULT_SIDE
    return _whole(found[1], DEFAULT_SIDE, MAX_SIDE), _whole(found[2], DEFAULT_SIDE, MAX_SIDE)


def _whole(value: object, default: int, most: int) -> int:
    """A positive whole number, as JSON or as the text of a form; `default` when it is none."""
    if isinstance(value, str) and len(value) <= 10 and value.isascii() and value.isdigit():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
        return default
    return min(value, most)


def _fields_of(facts: RequestFacts, body: Buffer) -> _Fields:
    """Reads a field of the request, whichever way it is written."""
    form = facts.form
    if form is None:
        return (facts.body or {}).get

    def read(name: str) -> object:
        try:
            return form.text(body, name, 32)
        except InvalidBody:
            return None

    return read
