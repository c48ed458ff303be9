"""What a stream used: asked for where the client did not, read, and taken out again.

Problem: OpenAI's chat and completions tell what a stream used only when they are asked (`stream_options.include_usage`), and
few clients ask. Who is metered would escape. Idea: the router asks in the client's place, and takes out of the events what
the client did not ask for: the event that only holds `usage`, and the member `usage` of any other event (null, in most).
Everything else passes as it came.

The other APIs tell it unasked: `/v1/messages` in `message_delta`, `/v1/responses` in `response.completed`, Ollama in its
last line. llama.cpp does so by `timings`, in the event that ends the answer or, when asked for usage, in that for usage.

Where a stream does not come to its end, or tells nothing, its events are counted: one that carries text is one token. What
frames the text (`_FRAMES`) is left out; an event of several tokens counts as one.
"""

import re
from collections.abc import Mapping
from typing import Final

import orjson

from turnout_router.families.errors import StreamKind
from turnout_router.families.names import SseRewriter
from turnout_router.families.paths import Endpoint, Operation

_ASKS: Final = b'"stream_options":{"include_usage":true}}'
_KEY: Final = b'"usage"'
_EVENT_END: Final = re.compile(rb"((?>\r\n|\n|\r)(?>\r\n|\n|\r))")
_DATA: Final = re.compile(rb"^data: ?", re.MULTILINE)
_MEMBER: Final = re.compile(rb'"usage"\s*:\s*(null|\{)')
_NULL: Final = re.compile(rb'"usage"\s*:\s*null')
_BRACE: Final = re.compile(rb"[{}]")

_EVENT: Final = b"\ndata:"
_LINE: Final = b"\n"
_FRAMES: Final = {
    # (before the text, after it)
    StreamKind.SSE: (1, 2),  # the role; the reason to end, [DONE]
    StreamKind.ANTHROPIC: (2, 3),  # message and block start; block stop, message_delta, message_stop
    StreamKind.RESPONSES: (4, 4),  # created, in progress, item and part added; text, part, item done, completed
    StreamKind.NDJSON: (0, 1),
}
_GENERATES: Final = frozenset({Operation.CHAT, Operation.COMPLETION})


def can_ask(path: Endpoint, body: Mapping[str, object]) -> bool:
    """Whether a streamed request can be made to ask. False where the client asks itself, the path tells it unasked, or
    the options are none that could be understood: the backend says what is wrong with them.
    """
    if path.stream is not StreamKind.SSE or path.operation not in _GENERATES:
        return False
    options = body.get("stream_options")
    return options is None or (isinstance(options, dict) and not options.get("include_usage"))


def asking(raw: bytes, body: Mapping[str, object]) -> bytes:
    """The body of a request that `can_ask`, so that its stream tells its usage."""
    if "stream_options" not in body:
        # spliced, not written anew: pictures make bodies of many megabytes
        return raw.rstrip()[:-1] + b"," + _ASKS
    options = body["stream_options"]
    asked = options if isinstance(options, dict) else {}
    try:
        return orjson.dumps({**body, "stream_options": {**asked, "include_usage": True}})
    except orjson.JSONEncodeError:  # it reads 1,024 levels and writes 254
        return raw


class WithoutUsage:
    """Events without the usage that the client did not ask for. Around `SseRewriter`, whose every piece is whole events."""

    def __init__(self, inner: SseRewriter) -> None:
        self._inner = inner
        self._line_goes_on = False
        """The end of what was taken out last was a CR, and the LF of it may be still to come."""
        self.took_more = False
        """`timings` went with an event that was taken out: asking this server costs the client something."""

    def feed(self, chunk: bytes) -> bytes:
        """What may be passed on now. Raises EventTooLong."""
        return self._strip(self._inner.feed(chunk))

    def flush(self) -> bytes:
        """The rest, at the end."""
        return self._strip(self._inner.flush())

    def _strip(self, block: bytes) -> bytes:
        if self._line_goes_on and block:
            block, self._line_goes_on = block.removeprefix(b"\n"), False
        at = block.rfind(_KEY)
        if at < 0:
            return block
        if (
            block.startswith(b"data: {")
            and block.find(b"\n") == len(block) - 2
            and (shorter := _without_null(block, at))
        ):
            return shorter
        kept = []
        if block.startswith(b"\n"):  # of the CRLF that ended the event before, which stayed
            kept, block = [b"\n"], block[1:]
        pieces = _EVENT_END.split(block)  # event, its end, event, its end, …, what follows
        for at in range(0, len(pieces), 2):
            event = self._stripped(pieces[at])
            if event is not None:
                kept += [event, *pieces[at + 1 : at + 2]]
            elif at + 3 == len(pieces) and not pieces[-1]:
                self._line_goes_on = pieces[at + 1].endswith(b"\r")
        return b"".join(kept)

    def _stripped(self, event: bytes) -> bytes | None:
        """None = nothing is left of it."""
        found = list(_DATA.finditer(event))
        if len(found) != 1 or event.find(_KEY) < 0:
            return event
        start = found[0].end()
        try:
            document = orjson.loads(event[start:])
        except orjson.JSONDecodeError:
            return event
        if not isinstance(document, dict) or "usage" not in document:
            return event
        if document.get("choices") == [] and document["usage"]:
            self.took_more = self.took_more or "timings" in document
            return None
        del document["usage"]
        return event[:start] + _without_member(event[start:], document)


def _without_null(event: bytes, at: int) -> bytes | None:
    """The usual event, without parsing: `"usage":null` belongs to the outermost object when only that one closes behind it.

    Braces inside strings only make the count larger. None = look closer.
    """
    member = _NULL.match(event, at)
    if member is None or event.count(b"}", member.end()) != 1 or event.find(_KEY) != at:
        return None
    before = event[:at].rstrip()
    return before[:-1] + event[member.end() :] if before.endswith(b",") else None


def _without_member(text: bytes, wanted: dict[str, object]) -> bytes:
    """The text of an object without its member `usage`, byte for byte where that can be proved to be `wanted`."""
    for match in _MEMBER.finditer(text):
        end = match.end() if match[1] == b"null" else _end_of_object(text, match.end() - 1)
        before, after = text[: match.start()].rstrip(), text[end:].lstrip()
        if after.startswith(b","):
            shorter = text[: match.start()] + after[1:].lstrip()
        else:
            shorter = before.removesuffix(b",") + text[end:]
        try:
            if orjson.loads(shorter) == wanted:
                return shorter
        except orjson.JSONDecodeError:
            continue
    return orjson.dumps(wanted)


def _end_of_object(text: bytes, at: int) -> int:
    depth = 0
    for brace in _BRACE.finditer(text, at):
        depth += 1 if brace[0] == b"{" else -1
        if not depth:
            return brace.end()
    return len(text)


class EventCount:
    """Events of a stream, counted in whatever pieces they come."""

    __slots__ = ("_before", "_frames", "_mark", "_seen")

    def __init__(self, kind: StreamKind) -> None:
        self._frames = _FRAMES[kind]
        self._mark = _LINE if kind is StreamKind.NDJSON else _EVENT
        self._before = b"" if kind is StreamKind.NDJSON else b"\n"
        self._seen = 0

    def feed(self, chunk: bytes) -> None:
        """The next bytes."""
        mark = self._mark
        window = self._before + chunk
        self._seen += window.count(mark)
        self._before = window[1 - len(mark) :] if len(mark) > 1 else b""

    def tokens(self, *, ended: bool) -> int:
        """Those that carried text; `ended`: the stream came to its end."""
        before, after = self._frames
        return max(0, self._seen - before - (after if ended else 0))
