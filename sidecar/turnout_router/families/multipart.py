"""Forms (`multipart/form-data`): where the model's name stands in one, and the same form with another name.

Problem: an upload names its model in a field somewhere between files; the router must read it, and write the local ID,
without touching a byte of the files. Idea: one pass of `bytes.find` from delimiter to delimiter (RFC 2046, 5.1.1)
that keeps offsets, never copies; then a splice.

Invariants:

* Only InvalidBody is raised, whatever the bytes are.
* What two parsers could read in two ways is refused: `model` given twice, a delimiter line with something after it, a
  part without an end, an escape in the name, a transfer encoding. Else a backend might see another model than the router did.
* `with_model` changes the value of `model` and nothing else.
"""

import re
from dataclasses import dataclass

from turnout_router.families.errors import InvalidBody

MAX_PARTS = 1000
MAX_PART_HEADER_BYTES = 16 * 1024
MAX_BOUNDARY_CHARS = 70
"""RFC 2046, 5.1.1."""

_PARAMETER = re.compile(r';\s*([!#$%&\'*+.^_`|~0-9A-Za-z-]+)\s*=\s*("(?:[^"\\]|\\.)*"|[^\s;"]*)\s*')
_ESCAPE = re.compile(r"\\(.)")
_FOLD = re.compile(r"\r\n[ \t]+")
_BOUNDARY = re.compile(r"[0-9A-Za-z'()+_,./:=? -]*[0-9A-Za-z'()+_,./:=?-]")

Buffer = bytes | bytearray


@dataclass(frozen=True, slots=True)
class Part:
    """A part's value is `body[start:end]`."""

    name: str
    start: int
    end: int
    is_file: bool = False
    is_doubtful: bool = False
    """Its value is in a transfer encoding, or its name holds an escape: parsers differ on both."""


@dataclass(frozen=True, slots=True)
class Form:
    """The parts of a form, in order."""

    boundary: bytes
    first_delimiter: int
    """Offset of the dashes of the first delimiter."""
    parts: tuple[Part, ...]

    def text(self, body: Buffer, name: str, limit_bytes: int) -> str | None:
        """The value of the one text field `name`; None when there is none. Raises InvalidBody."""
        part = self._field(name)
        if part is None:
            return None
        if part.end - part.start > limit_bytes:
            raise InvalidBody(f"the form field {name!r} is longer than {limit_bytes} bytes", param=name)
        try:
            return bytes(body[part.start : part.end]).decode()
        except UnicodeDecodeError:
            raise InvalidBody(f"the form field {name!r} is not UTF-8", param=name) from None

    def with_model(self, body: Buffer, model: str) -> bytes:
        """The same form with `model` as its model: replaced in place, or as a first part where there was none."""
        if "\r" in model or "\n" in model:
            raise ValueError("a model name holds no line breaks")
        part, view = self._field("model"), memoryview(body)
        if part is not None:
            return b"".join((view[: part.start], model.encode(), view[part.end :]))
        head = b'\r\nContent-Disposition: form-data; name="model"\r\n\r\n'
        at = self.first_delimiter
        return b"".join((view[:at], b"--", self.boundary, head, model.encode(), b"\r\n", view[at:]))

    def _field(self, name: str) -> Part | None:
        found = [part for part in self.parts if part.name == name]
        if not found:
            return None
        if len(found) > 1 or found[0].is_file or found[0].is_doubtful:
            raise InvalidBody(f"the form field {name!r} must be there once, as plain text", param=name)
        return found[0]


def parse_form(body: Buffer, content_type: str) -> Form:
    """Find the parts of a form. Raises InvalidBody."""
    boundary = _boundary(content_type)
    delimiter = b"--" + boundary
    line = b"\r\n" + delimiter
    first = 0 if body.startswith(delimiter) else body.find(line) + 2
    if first == 1:
        raise InvalidBody("the form has no part: its boundary does not occur")
    parts: list[Part] = []
    at = first + len(delimiter)
    while not body.startswith(b"--", at):
        if len(parts) == MAX_PARTS:
            raise InvalidBody(f"the form has more than {MAX_PARTS} parts")
        start = _after_line(body, at)
        end = body.find(line, start)
        if end < 0:
            raise InvalidBody("the form breaks off: its closing boundary is missing")
        parts.append(_part(body, start, end))
        at = end + len(line)
    return Form(boundary, first, tuple(parts))


def _boundary(content_type: str) -> bytes:
    """The parameter `boundary` of a Content-Type."""
    values = [value for name, value in _parameters(content_type) if name == "boundary"]
    if len(values) != 1:
        raise InvalidBody("Content-Type must give one boundary")
    if len(values[0]) > MAX_BOUNDARY_CHARS or not _BOUNDARY.fullmatch(values[0]):
        raise InvalidBody("the boundary in Content-Type is malformed")
    return values[0].encode("ascii")


def _after_line(body: Buffer, at: int) -> int:
    """The offset after the rest of a delimiter's line, which may hold blanks only."""
    end = body.find(b"\r\n", at, at + 256)
    if end < 0 or body[at:end].strip(b" \t"):
        raise InvalidBody("the form has something after a boundary on its line")
    return end + 2


def _part(body: Buffer, start: int, end: int) -> Part:
    """The part whose headers begin at `start` and whose value ends at `end`."""
    head_end = body.find(b"\r\n\r\n", start, min(start + MAX_PART_HEADER_BYTES, end))
    if head_end < 0:
        raise InvalidBody("a part of the form has no headers, no value, or headers that are too long")
    disposition, is_encoded = _headers(bytes(body[start:head_end]))
    given = _parameters(disposition)
    names = [value for key, value in given if key in {"name", "name*"}]
    if len(names) != 1:
        raise InvalidBody("a part of the form must have one name")
    name = _ESCAPE.sub(r"\1", names[0])
    is_file = any(key in {"filename", "filename*"} for key, _ in given)
    return Part(name, head_end + 4, end, is_file, is_encoded or name != names[0])


def _headers(head: bytes) -> tuple[str, bool]:
    """Content-Disposition, and whether the value is encoded."""
    try:
        text = head.decode()
    except UnicodeDecodeError:
        text = head.decode("latin-1")
    dispositions, is_encoded = [], False
    for line in _FOLD.sub(" ", text).split("\r\n"):
        key, _, value = line.partition(":")
        match key.strip().lower():
            case "content-disposition":
                dispositions.append(value)
            case "content-transfer-encoding":
                is_encoded = value.strip().lower() not in {"", "7bit", "8bit", "binary"}
            case _:
                pass
    if len(dispositions) != 1:
        raise InvalidBody("a part of the form must have one Content-Disposition")
    return dispositions[0], is_encoded


def _parameters(value: str) -> list[tuple[str, str]]:
    """`type; a=b; c="d"` → [("a", "b"), ("c", "d")]; stops where the grammar is left.

    Backslashes stay in: browsers write them as they are, RFC 2045 as an escape.
    """
    found: list[tuple[str, str]] = []
    at = value.find(";")
    while at >= 0 and (match := _PARAMETER.match(value, at)):
        found.append((match[1].lower(), match[2].removeprefix('"').removesuffix('"')))
        at = match.end() if value.startswith(";", match.end()) else -1
    return found
