"""YAML text → JSON values and the line of each, with scalars read as kubectl reads them.

PyYAML and Go's YAML both follow YAML 1.1, and differ: PyYAML takes `22:00` for 1320, `2026-01-01` for a date and `1e3` for
a text, Go does not, and Go takes `y` for true. A file must mean the same here and in a cluster, so scalars are read here,
by Go's rules; tests/kube holds them against kubectl.

JSON is YAML but for some white space and characters, which kubectl takes in a JSON file and YAML does not: tabs as indents,
and characters beyond U+FFFF as two escapes, as `json.dumps` of Python writes them. So these are written otherwise first,
each in its line.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import orjson
import yaml

Path = tuple[str | int, ...]
JSON = dict[str, "JSON"] | list["JSON"] | str | int | float | bool | None

_PREFIX = "tag:yaml.org,2002:"
_PLAIN = "plain"
_WORDS: dict[str, bool | None] = (
    {form: True for word in ("y", "yes", "true", "on") for form in (word, word.capitalize(), word.upper())}
    | {form: False for word in ("n", "no", "false", "off") for form in (word, word.capitalize(), word.upper())}
    | dict.fromkeys(("", "~", "null", "Null", "NULL"))
)
_INTEGER = re.compile(r"([-+]?)(?:0b([01]+)|0x([0-9a-fA-F]+)|0o?([0-7]+)|(0|[1-9][0-9]*))")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")

_NOT_IN_YAML = re.compile(r"[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
"""Stand in texts of JSON as they are; YAML refuses them, or takes them for the end of a line."""
_PAIR = re.compile(r"\\(?:u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|.)", re.DOTALL)
"""An escape of JSON, of one character; that of a character beyond U+FFFF is two, which are told apart here."""
_HALF = re.compile(r"[\ud800-\udfff]")

_TOO_DEEP = "too deep or too large, as when an alias (*name) repeats what it is part of"
_MAX_DEPTH = 64
_MAX_VALUES = 1_000_000
"""Aliases make a small text large; a real file of 2,000 objects has about 100,000 values."""


class Unreadable(Exception):
    """The text is no YAML from `line` on."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


@dataclass(slots=True)
class Composed:
    """One document: its value, the line of every path in it, and what kubectl would refuse in it."""

    value: JSON = None
    lines: dict[Path, int] = field(default_factory=dict)
    problems: list[tuple[int, str]] = field(default_factory=list)


def compose(text: str) -> Iterator[Composed]:
    """The documents of a text, empty ones left out. Raises Unreadable where the text stops being YAML."""
    loader = _Loader(_as_yaml(text))
    try:
        while loader.check_node():
            node = loader.get_node()
            if node is None or (isinstance(node, yaml.ScalarNode) and node.tag == _PLAIN and not node.value):
                continue
            yield _Walk(loader).document(node)
    except yaml.MarkedYAMLError as error:
        raise _unreadable(error) from error
    except RecursionError as error:
        raise Unreadable(loader.line + 1, _TOO_DEEP) from error
    except yaml.YAMLError as error:  # a character that YAML does not have
        raise Unreadable(1, f"no YAML: {error}") from error
    finally:
        loader.dispose()


def scalar(text: str) -> JSON:
    """The value of a plain (unquoted) scalar. Raises ValueError for what JSON cannot say."""
    if text in _WORDS:
        return _WORDS[text]
    if _NOT_FINITE.fullmatch(text):
        raise ValueError(f"{text} is no number that a manifest may hold")
    digits = text.replace("_", "")
    if not text.startswith("_") and (whole := _INTEGER.fullmatch(digits)):
        sign, binary, hexadecimal, octal, decimal = whole.groups()
        value = next(
            int(part, base) for part, base in ((binary, 2), (hexadecimal, 16), (octal, 8), (decimal, 10)) if part
        )
        return -value if sign == "-" else value
    if not text.startswith("_") and _FLOAT.fullmatch(digits):
        number = float(digits)
        if math.isinf(number):
            raise ValueError(f"{text} is too large a number")
        return int(number) if number.is_integer() else number
    return text


def _as_yaml(text: str) -> str:
    """A JSON text as YAML has it; any other as it is."""
    try:
        if text.lstrip("\ufeff \t\r\n").startswith("{"):  # by which kubectl tells the two apart
            orjson.loads(text.removeprefix("\ufeff"))
            return _NOT_IN_YAML.sub(_escape, _PAIR.sub(_one_character, text.removeprefix("\ufeff").replace("\t", " ")))
    except orjson.JSONDecodeError:
        pass
    return text


def _escape(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"


def _one_character(found: re.Match[str]) -> str:
    """What two escapes stand for; any other escape stays."""
    if not found[1]:
        return found[0]
    return bytes.fromhex(found[1] + found[2]).decode("utf-16-be")


class _Loader(yaml.SafeLoader):
    """Gives nodes only, and leaves plain scalars unread."""

    def resolve(self, kind: type[yaml.Node], value: str | None, implicit: tuple[bool, bool] | bool) -> str:
        """The tag of a node that has none. `implicit` of a scalar: whether it is plain, and whether it is quoted."""
        if kind is yaml.ScalarNode and isinstance(implicit, tuple) and implicit[0]:
            return _PREFIX + "merge" if value == "<<" else _PLAIN
        return str(super().resolve(kind, value, implicit))  # type: ignore[no-untyped-call] # the stubs have no types here


@dataclass(slots=True)
class _Walk:
    """One walk over the nodes of one document."""

    loader: _Loader
    out: Composed = field(default_factory=Composed)
    values: int = 0

    def document(self, node: yaml.Node) -> Composed:
        self.out.lines[()] = _line(node)
        self.out.value = self._value(node, ())
        return self.out

    def _value(self, node: yaml.Node, path: Path) -> JSON:
        self.values += 1
        if len(path) > _MAX_DEPTH or self.values > _MAX_VALUES:
            raise Unreadable(_line(node), _TOO_DEEP)
        match node:
            case yaml.MappingNode():
                return self._mapping(node, path)
            case yaml.SequenceNode():
                return [self._at(inner, (*path, index), _line(inner)) for index, inner in enumerate(node.value)]
            case _:
                return self._scalar(node)

    def _mapping(self, node: yaml.MappingNode, path: Path) -> JSON:
        self._refuse_twice(node)
        self.loader.flatten_mapping(node)
        mapping: dict[str, JSON] = {}
        for key_node, value_node in node.value:
            key = self._key(key_node)
            mapping[key] = self._at(value_node, (*path, key), _line(key_node))
        return mapping

    def _at(self, node: yaml.Node, path: Path, line: int) -> JSON:
        self.out.lines[path] = line
        return self._value(node, path)

    def _refuse_twice(self, node: yaml.MappingNode) -> None:
        """Kubectl refuses a key that is there twice; a YAML loader silently takes the last."""
        seen: dict[str, int] = {}
        for key_node, _ in node.value:
            if key_node.tag == _PREFIX + "merge":
                continue
            key, line = self._key(key_node), _line(key_node)
            if key in seen:
                self.out.problems.append((line, f"{key} is there twice, first in line {seen[key]}: remove one"))
            seen.setdefault(key, line)

    def _key(self, node: yaml.Node) -> str:
        if not isinstance(node, yaml.ScalarNode):
            raise Unreadable(_line(node), "a key must be a text")
        value = self._scalar(node)
        return value if isinstance(value, str) else "null" if value is None else str(value).lower()

    def _scalar(self, node: yaml.Node) -> JSON:
        tag, text = node.tag, str(node.value)
        if tag == _PREFIX + "str":
            if _HALF.search(text):
                self.out.problems.append(
                    (_line(node), "\\ud800 to \\udfff are no characters: write the character itself")
                )
                return None
            return text
        if tag in {_PLAIN, *(_PREFIX + word for word in ("int", "float", "bool", "null"))}:
            try:
                return scalar(text)
            except ValueError as error:
                self.out.problems.append((_line(node), str(error)))
                return None
        self.out.problems.append(
            (_line(node), f"the tag {tag.replace(_PREFIX, '!!')} has no meaning in a manifest: remove it")
        )
        return None


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


def _unreadable(error: yaml.MarkedYAMLError) -> Unreadable:
    mark = error.problem_mark or error.context_mark
    said = ", ".join(part for part in (error.context, error.problem) if part)
    hint = ": YAML indents with spaces" if "\\t" in said else ""
    return Unreadable(1 if mark is None else mark.line + 1, f"no YAML: {said}{hint}")
