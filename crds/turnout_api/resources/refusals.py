"""What the types refuse, in words for the person who wrote the manifest.

pydantic says what is wrong with a value; a person wants to know which field it is, what to write instead, and for a
misspelt field which one was meant.
"""

import difflib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from turnout_api.durations import DURATION_PATTERN
from turnout_api.resources.common import LABEL_PATTERN, MODEL_PATTERN, SUBDOMAIN_PATTERN
from turnout_api.urls import BACKEND_URL_PATTERN, ROUTER_URL_PATTERN

Path = tuple[str | int, ...]
"""Where in a manifest: `("spec", "models", 0, "id")`, in YAML names."""

_SHAPES = {
    LABEL_PATTERN: "must be one DNS label: a-z, 0-9 and -, beginning and ending with a letter or digit",
    SUBDOMAIN_PATTERN: "must be a name of Kubernetes: a-z, 0-9, - and ., beginning and ending with a letter or digit",
    MODEL_PATTERN: "must be a model's name: letters, digits and - . _ : / @ +, beginning with a letter or digit",
    ROUTER_URL_PATTERN: "must be the URL of a router, such as http://10.0.0.7:8900: no user, path or query",
    BACKEND_URL_PATTERN: "must be an URL, such as http://127.0.0.1:8081: no user, no query",
    DURATION_PATTERN: "must be a duration, such as 500ms, 1.5s, 3m or 24h",
}
"""Patterns of the types in words."""

_SUBJECT = re.compile(r"^(Input|String|Value|List|Dictionary) should\b")
"""With which pydantic begins: the field's name stands before what is said."""

_SAID = {
    "missing": "is required",
    "bool_type": "must be true or false, without quotes",
    "int_type": "must be a whole number, without quotes",
    "model_type": "must be a mapping of fields",
    "dict_type": "must be a mapping",
    "list_type": "must be a list",
}
"""pydantic's type of an error → what is said."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """One thing that the types refuse."""

    path: Path
    message: str
    """What is the matter and what to do, beginning with the field."""
    rule: str
    """The rule's name, or pydantic's type of the error."""

    def __str__(self) -> str:
        return self.message


def refusals(kind: type[BaseModel], error: ValidationError) -> list[Refusal]:
    """The errors of `kind.parse`, or of another type in YAML names, in the order of the fields."""
    return [_refusal(kind, details) for details in error.errors(include_url=False)]


def shown(path: Path) -> str:
    """`spec.models[0].id`."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else str(step)
    return text


def nearest(word: str, known: Iterable[str]) -> str:
    """The one of `known` that was probably meant; empty = none is near."""
    by_folded = {name.replace("_", "").lower(): name for name in known}
    return next(
        (by_folded[near] for near in difflib.get_close_matches(word.replace("_", "").lower(), by_folded, n=1)), ""
    )


def _refusal(kind: type[BaseModel], details: ErrorDetails) -> Refusal:
    path = tuple(details["loc"])
    said = _said(kind, path, details)
    return Refusal(path, f"{shown(path)}: {said}" if path else said, details["type"])


def _said(kind: type[BaseModel], path: Path, details: ErrorDetails) -> str:
    error, given, context = details["type"], details["input"], details.get("ctx", {})
    if error in _SAID:
        return _SAID[error]
    match error:
        case "extra_forbidden":
            near = nearest(str(path[-1]), _field_names(kind, path[:-1]))
            said = f"no such field; did you mean {near}?" if near else "no such field: remove it"
        case "string_type":
            said = _no_text(given)
        case "enum" | "literal_error":
            said = _choice(given, str(context["expected"]))
        case "string_pattern_mismatch":
            said = _SHAPES.get(context["pattern"], f"must match {context['pattern']}")
        case "too_short":
            said = f"must have at least {context['min_length']}, and has {context['actual_length']}"
        case "too_long":
            said = f"may have at most {context['max_length']}, and has {context['actual_length'] or 'more'}"
        case _:
            said = _SUBJECT.sub("must", details["msg"].removeprefix("Value error, "))
    return said


def _no_text(given: object) -> str:
    if isinstance(given, bool):
        return "must be a text: YAML reads yes, no, on, off, y, n, true and false as true or false, so quote it"
    return f'must be a text: write "{given}"' if isinstance(given, int | float) else "must be a text"


def _choice(given: object, expected: str) -> str:
    words = expected.replace("'", "")
    near = nearest(str(given), words.replace(" or ", ", ").split(", "))
    return f"must be {words}" + (f"; did you mean {near}?" if near else "")


def _field_names(kind: type[BaseModel], path: Path) -> list[str]:
    """YAML names of the fields of the type at `path`; empty where there is none."""
    at: type[BaseModel] | None = kind
    for step in path:
        if at is None or isinstance(step, int):
            continue
        fields = {info.alias or name: info for name, info in at.model_fields.items()}
        at = next(_types_in(fields[step].annotation), None) if step in fields else at
    return [] if at is None else [info.alias or name for name, info in at.model_fields.items()]


def _types_in(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _types_in(inner)
