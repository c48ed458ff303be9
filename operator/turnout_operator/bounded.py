"""Lists in a status, cut so that the whole of it stays small. Pure.

Problem: etcd refuses an object above 1.5 MiB, and an object whose status grew past that can not be written any more, not even
to say so. Idea: each list has its share of `MAX_STATUS_BYTES`, counted as the API server stores it; what does not fit is left out
and counted. The full lists are at the master (`GET /router/v1/node/status`).
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

MAX_STATUS_BYTES: Final = 64 * 1024
LIST_BYTES: Final = 20 * 1024
"""Of `instances`, and of `models`. The conditions take the rest, at most four times `MESSAGE_BYTES` and what surrounds it."""
MESSAGE_BYTES: Final = 4096
LIST_ENTRIES: Final = 128
"""As the schema has it."""

Entry = Mapping[str, Any]


def fitting(entries: Sequence[Entry]) -> list[Entry]:
    """The first of them that fit."""
    kept: list[Entry] = []
    left = LIST_BYTES
    for entry in entries[:LIST_ENTRIES]:
        left -= size_of(entry) + 1
        if left < 0:
            break
        kept.append(entry)
    return kept


def size_of(value: object) -> int:
    """Bytes, as the API server stores it."""
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())


def cut(text: str, max_bytes: int = MESSAGE_BYTES) -> str:
    """The text, or its beginning and `…`."""
    encoded = text.encode()
    return text if len(encoded) <= max_bytes else encoded[: max_bytes - 3].decode(errors="ignore") + "…"
