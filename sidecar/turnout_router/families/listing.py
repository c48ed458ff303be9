"""Lists of models in each API's shape: `/v1/models`, `/api/tags`, `/api/ps`, `/api/show`, `/api/version`.

Problem: clients ask what there is before they ask for it, and each API tells it differently. Idea: the gateway makes one
small record a public name from what the cluster knows; these functions write the records down.

What nobody measured (sizes on disk, quantisation) is 0 or "", never invented.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

import orjson

from turnout_api.vocabulary import Capability

OLLAMA_VERSION = "0.12.0"
"""The Ollama release whose API these answers follow: clients compare it before they use a feature."""

_OLLAMA_CAPABILITIES = {
    Capability.TEXT: ("completion", "tools"),  # whether it calls tools is declared nowhere; unsaid, no client would try
    Capability.VISION: ("vision",),
    Capability.EMBEDDING: ("embedding",),
}


@dataclass(frozen=True, slots=True)
class ListedModel:
    """A public name, as a client sees it."""

    name: str
    created_at: float
    """Wall clock: when the name was first known."""
    capabilities: frozenset[Capability]
    context_window: int | None = None
    digest: str = ""
    """Weights hash, or another hash that changes when the model does."""
    backend_family: str = ""
    loaded: bool = False
    """On any node."""


def openai_models(models: Iterable[ListedModel]) -> bytes:
    """`GET /v1/models`."""
    return orjson.dumps({"object": "list", "data": [_openai(model) for model in models]})


def openai_model(model: ListedModel) -> bytes:
    """`GET /v1/models/NAME`."""
    return orjson.dumps(_openai(model))


def ollama_tags(models: Iterable[ListedModel]) -> bytes:
    """`GET /api/tags`."""
    return orjson.dumps({"models": [_tag(model) for model in models]})


def ollama_ps(models: Iterable[ListedModel], now: float) -> bytes:
    """`GET /api/ps`: what is loaded. Nothing here expires, so each one says "now"."""
    listed = []
    for model in models:
        if model.loaded:
            tag = _tag(model) | {"expires_at": timestamp(now), "size_vram": 0}
            del tag["modified_at"]
            listed.append(tag | ({"context_length": model.context_window} if model.context_window else {}))
    return orjson.dumps({"models": listed})


def ollama_show(model: ListedModel) -> bytes:
    """`POST /api/show`."""
    info: dict[str, object] = {"general.architecture": "unknown", "general.basename": model.name}
    if model.context_window is not None:
        info["unknown.context_length"] = model.context_window  # clients look for ARCHITECTURE.context_length
    capabilities = [word for key, words in _OLLAMA_CAPABILITIES.items() if key in model.capabilities for word in words]
    return orjson.dumps(
        {
            "license": "",
            "modelfile": "",
            "parameters": "",
            "template": "",
            "modified_at": timestamp(model.created_at),
            "details": _details(model),
            "model_info": info,
            "capabilities": capabilities,
        }
    )


def ollama_version() -> bytes:
    """`GET /api/version`."""
    return orjson.dumps({"version": OLLAMA_VERSION})


def _openai(model: ListedModel) -> dict[str, object]:
    return {"id": model.name, "object": "model", "created": int(model.created_at), "owned_by": "turnout"}


def _tag(model: ListedModel) -> dict[str, object]:
    return {
        "name": model.name,
        "model": model.name,
        "modified_at": timestamp(model.created_at),
        "size": 0,
        "digest": model.digest.removeprefix("sha256:"),
        "details": _details(model),
    }


def _details(model: ListedModel) -> dict[str, object]:
    family = model.backend_family.lower()
    return {
        "parent_model": "",
        "format": "",
        "family": family,
        "families": [family] if family else [],
        "parameter_size": "",
        "quantization_level": "",
    }


def timestamp(seconds: float) -> str:
    """A moment of the wall clock, as Ollama writes it."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
