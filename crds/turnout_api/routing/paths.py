"""What a client's path says about its request: which capability it needs, and where its facts stand.

The router's own table of paths (`turnout_router.families.paths`) says more; a test holds the two together.
"""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from turnout_api.vocabulary import Capability


class Media(Enum):
    """Where images and audio of a request are."""

    NONE = "none"
    """The path takes none."""
    ASKED = "asked"
    """In the messages, where there are some."""
    IMAGE = "image"
    """The request is about an image that it brings."""
    AUDIO = "audio"
    """The request is about audio that it brings."""


@dataclass(frozen=True, slots=True)
class PathFacts:
    """One row."""

    capability: Capability | None = None
    """What the model must be able to do; None = unknown path."""
    media: Media = Media.NONE
    ollama: bool = False
    """Fields are those of Ollama's own API."""
    stream_default: bool = False
    """What a missing `stream` means."""
    speech: bool = False
    """A stream is asked for by `stream_format`."""
    sdapi: bool = False
    """The model may stand in `override_settings`."""
    model_optional: bool = False
    """A request may name no model."""


_C, _M = Capability, Media
_TEXT = PathFacts(_C.TEXT, _M.ASKED)
_OLLAMA_TEXT = PathFacts(_C.TEXT, _M.ASKED, ollama=True, stream_default=True)
_OLLAMA_EMBEDDING = PathFacts(_C.EMBEDDING, ollama=True)

PATHS: Mapping[str, PathFacts] = {
    "/v1/chat/completions": _TEXT,
    "/v1/completions": _TEXT,
    "/v1/responses": _TEXT,
    "/v1/messages": _TEXT,
    "/v1/embeddings": PathFacts(_C.EMBEDDING),
    "/v1/rerank": PathFacts(_C.EMBEDDING),
    "/v1/images/generations": PathFacts(_C.IMAGE),
    "/v1/images/edits": PathFacts(_C.IMAGE, _M.IMAGE),
    "/v1/audio/transcriptions": PathFacts(_C.TRANSCRIPTION, _M.AUDIO, model_optional=True),
    "/v1/audio/translations": PathFacts(_C.TRANSCRIPTION, _M.AUDIO),
    "/v1/audio/speech": PathFacts(_C.SPEECH, speech=True),
    "/v1/audio/music": PathFacts(_C.MUSIC),
    "/v1/videos": PathFacts(_C.VIDEO),
    "/api/chat": _OLLAMA_TEXT,
    "/api/generate": _OLLAMA_TEXT,
    "/api/embed": _OLLAMA_EMBEDDING,
    "/api/embeddings": _OLLAMA_EMBEDDING,
    "/sdapi/v1/txt2img": PathFacts(_C.IMAGE, sdapi=True, model_optional=True),
    "/sdapi/v1/img2img": PathFacts(_C.IMAGE, _M.IMAGE, sdapi=True, model_optional=True),
}
"""By path, decoded and without its query."""


def did_you_mean(path: str) -> str:
    """`; did you mean …?` of a path that no row names; empty = none is near."""
    near = difflib.get_close_matches(path.partition("?")[0], PATHS, n=1)
    return f"; did you mean {near[0]}?" if near else ""


def needs(capability: Capability | None, *, has_images: bool) -> frozenset[Capability]:
    """What the model must be able to do; empty = nothing is known."""
    if capability is None:
        return frozenset()
    if has_images and capability is Capability.TEXT:
        return frozenset({Capability.TEXT, Capability.VISION})
    return frozenset({capability})
