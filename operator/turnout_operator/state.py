"""What the operator remembers of a namespace, as data of a Secret. Pure.

Problem: the last accepted spec of an object, who was first to have a public name, and the generation that a router was
given last cannot be read from the objects, and must outlive the operator. Idea: one Secret holds all three, written
before anything that follows from it, with the resourceVersion that was read: of two operators, the second one's write is
refused. It is a Secret since specs may hold what a person would not print.

Invariant: text that cannot be read stops the round. Taking it for empty would rename models and serve refused edits.
"""

import base64
import binascii
import gzip
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from turnout_api.resolve import Key, dump_accepted, load_accepted
from turnout_api.resources import Resource
from turnout_operator.names import STATE_SECRET

STATE_KEY = "state.json.gz"
MAX_STATE_BYTES = 1_000_000
"""Of the compressed text: etcd takes 1.5 MiB a request, a Secret 1 MiB."""


_LEVEL = 4
"""Of gzip: a third of the default's time, for a tenth more bytes."""


class StateError(Exception):
    """The remembered state cannot be read or kept; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Issued:
    """The configuration that a router was given: its generation, and the hash of all else in it."""

    generation: int
    hash: str


@dataclass(frozen=True, slots=True)
class Kept:
    """What is remembered of a namespace."""

    last_accepted: Mapping[Key, Resource] = field(default_factory=dict)
    ledger: Mapping[str, list[str]] = field(default_factory=dict)
    routers: Mapping[str, Issued] = field(default_factory=dict)
    """By name of RouterNode."""


@dataclass(slots=True)
class Texts:
    """Of accepted objects: what was made, and what was read. With thousands of them nearly all are as they were a round ago."""

    made: dict[Key, tuple[Resource, dict[str, Any]]] = field(default_factory=dict)
    """The manifest of a resource. It is another one's when it is not this very resource."""
    read: dict[str, tuple[Mapping[str, Any], dict[Key, Resource]]] = field(default_factory=dict)
    """By `KIND/NAME`: a manifest, and what became of it."""


def document(kept: Kept, texts: Texts | None = None) -> dict[str, Any]:
    """Equal states have equal documents. `texts` is brought up to date."""
    routers = {name: {"generation": i.generation, "hash": i.hash} for name, i in sorted(kept.routers.items())}
    return {"accepted": _made(kept.last_accepted, texts or Texts()), "ledger": dict(kept.ledger), "routers": routers}


def same(one: Kept, other: Kept, texts: tuple[Texts, Texts]) -> bool:
    """Whether their documents are equal."""
    return document(one, texts[0]) == document(other, texts[1])


def dump(kept: Kept, texts: Texts | None = None) -> dict[str, str]:
    """The `data` of the Secret. Raises StateError for what no Secret can hold."""
    packed = gzip.compress(json.dumps(document(kept, texts), sort_keys=True).encode(), _LEVEL, mtime=0)
    if len(packed) > MAX_STATE_BYTES:
        raise StateError(
            f"the accepted objects take {len(packed)} bytes compressed, of {MAX_STATE_BYTES} that Secret {STATE_SECRET} holds: "
            "make them smaller, or two clusters of them"
        )
    return {STATE_KEY: base64.b64encode(packed).decode()}


def load(data: Mapping[str, str], texts: Texts | None = None) -> Kept:
    """The reverse. Raises StateError."""
    try:
        text = json.loads(gzip.decompress(base64.b64decode(data[STATE_KEY], validate=True)))
        return Kept(
            last_accepted=_read(text["accepted"], texts or Texts()),
            ledger={str(name): list(map(str, hashes)) for name, hashes in text["ledger"].items()},
            routers={str(n): Issued(int(i["generation"]), str(i["hash"])) for n, i in text["routers"].items()},
        )
    except (KeyError, TypeError, ValueError, AttributeError, OSError, EOFError, binascii.Error, zlib.error) as error:
        raise StateError(
            f"Secret {STATE_SECRET} cannot be read ({error!r}): restore it; or delete it, and what was accepted last is "
            "forgotten and suffixed names are given out anew"
        ) from error


def _made(accepted: Mapping[Key, Resource], texts: Texts) -> list[dict[str, Any]]:
    found: dict[Key, tuple[Resource, dict[str, Any]]] = {}
    for key in sorted(accepted):
        resource, made = accepted[key], texts.made.get(key)
        found[key] = made if made and made[0] is resource else (resource, dump_accepted({key: resource})[0])
    texts.made = found
    return [manifest for _, manifest in found.values()]


def _read(accepted: list[Mapping[str, Any]], texts: Texts) -> dict[Key, Resource]:
    found = {}
    for manifest in accepted:
        name = f"{manifest.get('kind')}/{(manifest.get('metadata') or {}).get('name')}"
        read = texts.read.get(name)
        found[name] = read if read and read[0] == manifest else (manifest, load_accepted([manifest]))
    texts.read = found
    return {key: resource for _, resources in found.values() for key, resource in resources.items()}
