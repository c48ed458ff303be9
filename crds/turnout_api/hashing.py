"""Hashes that say whether two models are the same.

`config_hash` covers what changes a model's answers or the way it takes work: family, context window, parallelism and
sampling options. Not the URL, price or capabilities: two nodes may reach one checkpoint differently and still be one
model. Unset equals unset, and never a set value.
"""

import hashlib
from collections.abc import Iterable, Mapping

import orjson


def config_hash(
    *, family: str, context_window: int | None, parallel: int | None, sampling: Mapping[str, object] | None = None
) -> str:
    """`sha256:…` over the options that make two configurations of one checkpoint differ."""
    return _digest(
        {"family": family, "contextWindow": context_window, "parallel": parallel, "sampling": dict(sampling or {})}
    )


def identity_hash(*, config: str, weights: str | None, assets: Iterable[str]) -> str:
    """`sha256:…` of a model's identity: same public ID and same identity = one model."""
    return _digest({"config": config, "weights": weights, "assets": sorted(assets)})


def _digest(value: Mapping[str, object]) -> str:
    return "sha256:" + hashlib.sha256(orjson.dumps(value, option=orjson.OPT_SORT_KEYS)).hexdigest()
