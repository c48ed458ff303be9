"""Durations as people write them in manifests: `1.5s`, `3m`, `24h`, `500ms`.

Inside the program a duration is a float of seconds; at a border it is text. A bare number counts as seconds, so that a
hand-written configuration may say `10`.
"""

import re
from decimal import Decimal
from typing import Annotated

from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema

DURATION_PATTERN = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h)")
_WHOLE = re.compile(DURATION_PATTERN)
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def parse_duration(text: str) -> float:
    """Seconds of a duration such as `1m30s`. Raises ValueError that says how to write one."""
    if not _WHOLE.fullmatch(text):
        raise ValueError(f"{text!r} is no duration: write for example 500ms, 1.5s, 3m or 24h")
    return sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(text))


def format_duration(seconds: float) -> str:
    """The shortest single-unit text that `parse_duration` reads as the very same: 90 → `90s`, 180 → `3m`, 0.5 → `500ms`."""
    for unit, size in (("h", 3600), ("m", 60)):
        if seconds >= size and seconds % size == 0:
            return _plain(seconds / size) + unit
    in_ms = _plain(seconds * 1000) + "ms"
    return in_ms if 0 < seconds < 1 and parse_duration(in_ms) == seconds else _plain(seconds) + "s"


def _plain(number: float) -> str:
    """All digits and no exponent, which durations do not have."""
    text = f"{Decimal(repr(number)):f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _to_seconds(value: object) -> object:
    return parse_duration(value) if isinstance(value, str) else value


Duration = Annotated[
    float,
    BeforeValidator(_to_seconds),
    Field(ge=0, allow_inf_nan=False),
    PlainSerializer(format_duration, return_type=str, when_used="json"),
    WithJsonSchema({"type": "string", "pattern": DURATION_PATTERN, "maxLength": 32}),
]
"""Seconds inside, text such as `10s` in manifests and configuration files."""
