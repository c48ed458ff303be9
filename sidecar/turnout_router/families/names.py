"""Model names in bodies, replaced by splicing bytes: whatever else a body says stays as it was written.

Problem: the client knows a model by its public name, the backend by another. The name has to change in every request,
answer and event, and nothing else may: not the order of members, not escapes, not a `model` inside a tool's arguments.
Parsing and writing an event anew costs more than carrying it.

Idea: in most texts the key `"model"` stands exactly once. It is a member of the outermost object when the text before
it opened no other object, or the text behind it closes no other: two counts prove that without parsing. Braces inside
strings only make the counts larger, so they can only lead to the slow way: a scan that knows depth and strings.

Where a name is replaced in an answer, if it is a string: `model`, `response.model` (Responses API) and `message.model`
(Anthropic's message_start). In a request: `model`.

Invariants, for valid JSON: only those values differ; a text without them comes back as the same object. Text that is no
JSON object comes back unchanged (a document that breaks off may have been rewritten before it did).
"""

import re

import orjson

MAX_EVENT_BYTES = 32 * 1024 * 1024
"""An event or line that is longer ends the stream: it has to be whole to be rewritten, and memory is not without end."""

_MAX_HEAD_BYTES = 1024

_KEY = b'"model"'
_ESCAPED_LETTER = b"\\u006"
"""Every letter of "model" is U+006x: without this a key that is written with escapes cannot be there."""

_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_TOKEN = re.compile(_STRING + rb"|[{}\[\]]", re.DOTALL)
_MEMBER = re.compile(rb'"model"\s*:\s*(' + _STRING + rb")", re.DOTALL)
_AFTER_KEY = re.compile(rb"\s*:\s*(" + _STRING + rb")?", re.DOTALL)
_OBJECT = re.compile(rb"\s*\{")
_QUOTE, _SPACE, _BRACE = b'" {'
_OPENING = b"{["
_BEFORE_KEY = b"{,"
_DEEP = frozenset({b'"response"', b'"message"'})
_NOT_DEEP: frozenset[bytes] = frozenset()

Span = tuple[int, int]


class EventTooLong(Exception):
    """A stream holds an event of more than the limit: it cannot be rewritten and is not passed on."""


def rewrite_request_model(body: bytes, new: str) -> bytes:
    """A request's body, a JSON object, with another top-level model; every duplicate of it too."""
    return _Splicer(new, _NOT_DEEP).splice(body, 0)


class ModelNames:
    """Puts the public name into answers. One for each request: it remembers what the backend said last."""

    def __init__(self, public: str) -> None:
        self.splicer = _Splicer(public, _DEEP)

    def rewrite_json(self, body: bytes) -> bytes:
        """A JSON document with the public name in it."""
        return self.splicer.splice(body, 0)


class SseRewriter:
    """Events through whatever chunking. An event leaves in the same call in which its blank line came, not before.

    A reader of events acts at the blank line, so holding a line until then costs nothing, and a document that is spread
    over several `data` lines can be rewritten. Line ends are CRLF, LF and CR. After EventTooLong it is of no more use.
    """

    def __init__(self, names: ModelNames, *, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self._splicer = names.splicer
        self._max_event_bytes = max_event_bytes
        self._held = bytearray()

    def feed(self, chunk: bytes) -> bytes:
        """What may be passed on now. Raises EventTooLong."""
        held = self._held
        if not held and chunk.endswith(b"\n\n"):
            return self._rewrite(chunk)
        searched = len(held)
        held += chunk
        end = _end_of_last_event(held, searched)
        if len(held) - end > self._max_event_bytes:
            raise EventTooLong(f"more than {self._max_event_bytes} bytes without an end of the event")
        if not end:
            return b""
        block = bytes(memoryview(held)[:end])
        del held[:end]
        return self._rewrite(block)

    def flush(self) -> bytes:
        """The rest at the end of the stream, which has no blank line."""
        rest = bytes(self._held)
        self._held.clear()
        return self._rewrite(rest)

    def _rewrite(self, block: bytes) -> bytes:
        """A block of whole events."""
        splicer = self._splicer
        if block.startswith(splicer.head) and (block.find(b"\\") < 0 or block.find(_ESCAPED_LETTER) < 0):
            size = len(splicer.head)
            if block.find(_KEY, size) < 0:
                return splicer.new_head + block[size:]
            again = b"\n\n" + splicer.head
            if block.count(_KEY) == block.count(again) + 1:
                return splicer.new_head + block[size:].replace(again, b"\n\n" + splicer.new_head)
        if block.startswith(b"data: {") and block.find(b"\n") == len(block) - 2 and block.find(b"\r") < 0:
            return splicer.splice(block, 6)
        if _names_nothing(block):
            return block
        if block.find(b"\r") >= 0:
            return b"".join([self._rewrite_event(event) for event in _BLANK_LINE.split(block)])
        return b"\n\n".join([self._rewrite_event(event) for event in block.split(b"\n\n")])

    def _rewrite_event(self, event: bytes) -> bytes:
        if event.startswith(b"data: {") and event.find(b"\n") < 0 and event.find(b"\r") < 0:
            return self._splicer.splice(event, 6)
        if _names_nothing(event):
            return event
        parts = _LINE_END.split(event)
        data = [(index, match.end()) for index, part in enumerate(parts) if (match := _DATA.match(part))]
        values = self._splicer.splice_lines([parts[index][start:] for index, start in data])
        for (index, start), value in zip(data, values, strict=True):
            parts[index] = parts[index][:start] + value
        return b"".join(parts)


class NdjsonRewriter:
    """Lines of JSON (Ollama) through whatever chunking. After EventTooLong it is of no more use."""

    def __init__(self, names: ModelNames, *, max_line_bytes: int = MAX_EVENT_BYTES) -> None:
        self._splice = names.splicer.splice
        self._max_line_bytes = max_line_bytes
        self._held = bytearray()

    def feed(self, chunk: bytes) -> bytes:
        """The lines that are whole now. Raises EventTooLong."""
        held = self._held
        if not held and chunk.endswith(b"\n"):
            return self._rewrite(chunk)
        end = chunk.rfind(b"\n") + 1
        if len(chunk) - end + (0 if end else len(held)) > self._max_line_bytes:
            raise EventTooLong(f"a line of more than {self._max_line_bytes} bytes")
        if not end:
            held += chunk
            return b""
        block = bytes(held) + chunk[:end]
        self._held = bytearray(chunk[end:])
        return self._rewrite(block)

    def flush(self) -> bytes:
        """The last line, if nothing ended it."""
        rest = bytes(self._held)
        self._held.clear()
        return self._rewrite(rest)

    def _rewrite(self, block: bytes) -> bytes:
        if _names_nothing(block):
            return block
        if block.find(b"\n") == len(block) - 1:
            return self._splice(block, 0)
        return b"\n".join([self._splice(line, 0) for line in block.split(b"\n")])


# Events


def _names_nothing(text: bytes) -> bool:
    return text.find(_KEY) < 0 and text.find(_ESCAPED_LETTER) < 0


_LINE_END = re.compile(rb"(\r\n|\n|\r)")
_BLANK_LINE = re.compile(rb"((?>\r\n|\n|\r)(?>\r\n|\n|\r))")
_DATA = re.compile(rb"(?:\xef\xbb\xbf)?data(?:: ?|$)")


def _end_of_last_event(held: bytearray, searched: int) -> int:
    """The index behind the last blank line, 0 if there is none; up to `searched` there was none."""
    while searched and held[searched - 1] in b"\r\n":
        searched -= 1
    if held.find(b"\r", searched) < 0:
        return held.rfind(b"\n\n", searched) + 2 if held.find(b"\n\n", searched) >= 0 else 0
    end = 0
    for blank in _BLANK_LINE.finditer(held, searched):
        end = blank.end()
    return end


# JSON


class _Splicer:
    """Puts one name where models are named. `deep`: keys, with quotes, of members that name a model inside."""

    def __init__(self, name: str, deep: frozenset[bytes]) -> None:
        self._name = name
        self._raw = orjson.dumps(name)
        self._deep = deep
        # The member that was seen last, byte for byte, and what replaces it: a stream says the same thing each time.
        self._member = b"\0"
        self._replacement = b""
        self._unchanged = False
        # The last event as far as the member, if no other object was opened before it, and what replaces it. The same
        # bytes prove the same depth, so an event that begins with them needs no other look.
        self.head = b"\0"
        self.new_head = b""

    def splice(self, text: bytes, start: int) -> bytes:
        at = text.find(_KEY, start)  # `find` throughout: `in` takes twice as long on bytes
        if text.find(b"\\") < 0 or text.find(_ESCAPED_LETTER) < 0:
            if at < 0:
                return text
            if text.find(_KEY, at + 7) < 0 and (text.startswith(self._member, at) or self._learn(text, at)):
                end = at + len(self._member)
                if _is_member(text, start, at):
                    if text.count(b"{", start, at) == 1:
                        return self._splice_head(text, start, at, end)
                    if _closes_all(text, start, at, end):
                        return text if self._unchanged else text[:at] + self._replacement + text[end:]
        return self._replace(text, self._scan(text, start))

    def _splice_head(self, text: bytes, start: int, at: int, end: int) -> bytes:
        new_head = text[:end] if self._unchanged else text[:at] + self._replacement
        if start and end <= _MAX_HEAD_BYTES:
            self.head = text[:end]
            self.new_head = new_head
        return text if self._unchanged else new_head + text[end:]

    def splice_lines(self, values: list[bytes]) -> list[bytes]:
        if len(values) == 1:
            return [self.splice(values[0], 0)]
        spans = self._scan(b"\n".join(values), 0)
        result = []
        offset = 0
        for value in values:
            inside = [(a - offset, b - offset) for a, b in spans if offset <= a and b <= offset + len(value)]
            result.append(self._replace(value, inside))
            offset += len(value) + 1
        return result

    def _learn(self, text: bytes, at: int) -> bool:
        match = _MEMBER.match(text, at)
        if match is None:
            return False
        self._member = match[0]
        self._replacement = match[0][: match.start(1) - at] + self._raw
        self._unchanged = self._says_it_already(match[1])
        return True

    def _says_it_already(self, raw: bytes) -> bool:
        if raw == self._raw:
            return True
        try:
            return b"\\" in raw and bool(orjson.loads(raw) == self._name)
        except orjson.JSONDecodeError:
            return False

    def _replace(self, text: bytes, spans: list[Span]) -> bytes:
        pieces: list[bytes] = []
        done = 0
        for start, end in spans:
            if not self._says_it_already(text[start:end]):
                pieces += (text[done:start], self._raw)
                done = end
        return b"".join([*pieces, text[done:]]) if pieces else text

    def _scan(self, text: bytes, start: int) -> list[Span]:
        """Where models are named, depth by depth. Nothing, if brackets do not close or something follows."""
        if not _OBJECT.match(text, start):
            return []
        spans: list[Span] = []
        depth = 0
        deep = False
        for token in _TOKEN.finditer(text, start):
            first = text[token.start()]
            if first in _OPENING:
                depth += 1
            elif first != _QUOTE:
                depth -= 1
                if depth <= 0:
                    return spans if not depth and not text[token.end() :].strip() else []
            elif (depth == 1 or (deep and depth == 2)) and (after := _AFTER_KEY.match(text, token.end())):
                key = _plain(token[0])
                if depth == 1:
                    deep = key in self._deep
                if key == _KEY and after[1] is not None:
                    spans.append(after.span(1))
        return []


def _is_member(text: bytes, start: int, at: int) -> bool:
    """Whether the string at `at` is a key, not a value or part of a string, and `text[start:]` is an object."""
    before = text[at - 1]
    if before == _SPACE:
        before = text[at - 2]
    return before in _BEFORE_KEY and text[start] == _BRACE


def _closes_all(text: bytes, start: int, at: int, end: int) -> bool:
    """Whether the member `text[at:end]` belongs to the outermost object: told from the shorter side of it."""
    if text.count(b"}", end) == 1:
        return True
    if at - start < len(text) - end:
        return _opened(text, start, at) == 1
    return _opened(text, end, len(text)) == -1


def _opened(text: bytes, start: int, end: int) -> int:
    """Brackets that open less those that close, between two places outside strings."""
    opened = 0
    for token in _TOKEN.finditer(text, start, end):
        first = text[token.start()]
        if first != _QUOTE:
            opened += 1 if first in _OPENING else -1
    return opened


def _plain(key: bytes) -> bytes:
    """A key with its quotes and without escapes that it does not need."""
    if b"\\" not in key:
        return key
    try:
        return orjson.dumps(orjson.loads(key))
    except orjson.JSONDecodeError:
        return key
