"""Every path that a client may call: one table.

Problem: what a path needs (which capability, where the model's name stands, what an error looks like, whether the
backend speaks it) is asked all over the request path. Idea: one row a path answers all of it; nothing else in the
router compares path strings.

Decisions that the table holds:

* `/v1/rerank` needs `Embedding`: a reranker is a pooling model, and the vocabulary of capabilities has no other word.
* Transcription, translation, speech and music belong to the text lane, videos to the image lane: the side of a node
  whose readiness they use.
* A request without a model is served on two kinds of path only: transcription (scheduling picks the node) and
  `/sdapi` (whose own API has one current model).
* A family that is documented not to serve a path is refused before any backend sees the request (`Way.REFUSE`). What
  an `OpenAI` or `Process` backend serves nobody has declared, so it is asked, and its answer "no such path" becomes
  `UnsupportedPath` (`refusals.refuses_path`).
* Ollama's own paths are translated to OpenAI's for every family that does not speak them; `/v1/messages` and
  `/v1/responses` are never translated.

Who serves what: llama.cpp `tools/server/server.cpp` (messages, responses, rerank, transcriptions; no translations, no
images), vLLM "Online Serving" (the same and translations), Ollama "OpenAI compatibility" and "Anthropic
compatibility" (messages, responses, embeddings).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import assert_never

from turnout_api.vocabulary import Capability, Family, Lane
from turnout_router.families.errors import ApiFamily, StreamKind, UnknownPath, UnsupportedMediaType, WrongMethod


class BodyKind(Enum):
    """How a request's body is written."""

    NONE = "none"
    JSON = "json"
    MULTIPART = "multipart"
    EITHER = "either"
    """The `Content-Type` decides: see `body_kind`."""


class ModelAt(Enum):
    """Where the name of the model stands."""

    NOWHERE = "nowhere"
    BODY = "body"
    """The top-level field `model`, in JSON or in a form."""
    BODY_OR_NAME = "body or name"
    """As BODY; Ollama's older clients write `name`."""
    SDAPI = "sdapi"
    """`model`, else `override_settings.sd_model_checkpoint`, else the only image model there is."""
    PATH = "path"
    """What follows the endpoint's path in the URL: `Match.model`."""


class Operation(StrEnum):
    """What is asked, apart from the API that it is asked in."""

    CHAT = "chat"
    COMPLETION = "completion"
    EMBEDDING = "embedding"
    RERANK = "rerank"
    IMAGE = "image"
    IMAGE_EDIT = "image_edit"
    TRANSCRIPTION = "transcription"
    TRANSLATION = "translation"
    SPEECH = "speech"
    MUSIC = "music"
    VIDEO = "video"
    # The gateway answers these itself.
    LIST_MODELS = "list_models"
    SHOW_MODEL = "show_model"
    LIST_LOADED = "list_loaded"
    VERSION = "version"


class Way(Enum):
    """How a request gets to a backend of some family."""

    PASS = "pass"  # noqa: S105 # no password
    TRANSLATE = "translate"
    """To OpenAI's API, and the answer back (`families.ollama`)."""
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One row."""

    method: str
    path: str
    api: ApiFamily
    operation: Operation
    capability: Capability | None = None
    """What the model must be able to do; None = the gateway answers by itself. `needs` adds Vision."""
    body: BodyKind = BodyKind.JSON
    model_at: ModelAt = ModelAt.BODY
    model_optional: bool = False
    stream: StreamKind = StreamKind.NONE
    """How a streamed answer is written."""
    stream_default: bool = False
    """What a missing `stream` means."""
    lane: Lane | None = Lane.TEXT
    native: frozenset[Family] = frozenset()
    """Families that take it as it is (OpenAI and Process: that may)."""
    translated: bool = False
    """The other families get it translated."""

    @property
    def is_local(self) -> bool:
        """The gateway answers it without a backend."""
        return self.capability is None

    @property
    def every_backend_serves_it(self) -> bool:
        """A 404 on it speaks of something else than the path, and passes as it is."""
        return self.path in _SERVED_BY_ALL


_SERVED_BY_ALL = frozenset({"/v1/chat/completions", "/v1/completions"})


@dataclass(frozen=True, slots=True)
class Match:
    """An endpoint, and the model's name where the URL holds it (`ModelAt.PATH`)."""

    endpoint: Endpoint
    model: str = ""


_UNDECLARED = frozenset({Family.OPENAI, Family.PROCESS})
_NEWER_TEXT = _UNDECLARED | {Family.LLAMA_CPP, Family.VLLM, Family.OLLAMA}
_TEXT = _NEWER_TEXT | {Family.KOBOLD}
_RERANK = _UNDECLARED | {Family.LLAMA_CPP, Family.VLLM}
_IMAGE = _UNDECLARED | {Family.SD_CPP, Family.KOBOLD}
_TRANSCRIPTION = _UNDECLARED | {Family.LLAMA_CPP, Family.VLLM, Family.WHISPER, Family.KOBOLD}
_TRANSLATION = _UNDECLARED | {Family.VLLM, Family.WHISPER}
_SPEECH = _UNDECLARED | {Family.KOBOLD}
_OLLAMA = frozenset({Family.OLLAMA})


def _row(
    path: str,
    operation: Operation,
    capability: Capability,
    native: frozenset[Family],
    *,
    api: ApiFamily = ApiFamily.OPENAI,
    body: BodyKind = BodyKind.JSON,
    model_at: ModelAt = ModelAt.BODY,
    model_optional: bool = False,
    stream: StreamKind = StreamKind.NONE,
    lane: Lane = Lane.TEXT,
) -> Endpoint:
    return Endpoint(
        method="POST",
        path=path,
        api=api,
        operation=operation,
        capability=capability,
        body=body,
        model_at=model_at,
        model_optional=model_optional,
        stream=stream,
        lane=lane,
        native=native,
    )


def _ollama_row(path: str, operation: Operation, capability: Capability, *, streams: bool) -> Endpoint:
    return Endpoint(
        method="POST",
        path=path,
        api=ApiFamily.OLLAMA,
        operation=operation,
        capability=capability,
        stream=StreamKind.NDJSON if streams else StreamKind.NONE,
        stream_default=streams,
        native=_OLLAMA,
        translated=True,
    )


def _local_row(
    method: str, path: str, api: ApiFamily, operation: Operation, model_at: ModelAt = ModelAt.NOWHERE
) -> Endpoint:
    body = BodyKind.JSON if method == "POST" else BodyKind.NONE
    return Endpoint(method=method, path=path, api=api, operation=operation, body=body, model_at=model_at, lane=None)


_A, _O, _C, _B, _S = ApiFamily, Operation, Capability, BodyKind, StreamKind

ENDPOINTS: tuple[Endpoint, ...] = (
    _row("/v1/chat/completions", _O.CHAT, _C.TEXT, _TEXT, stream=_S.SSE),
    _row("/v1/completions", _O.COMPLETION, _C.TEXT, _TEXT, stream=_S.SSE),
    _row("/v1/responses", _O.CHAT, _C.TEXT, _NEWER_TEXT, stream=_S.RESPONSES),
    _row("/v1/messages", _O.CHAT, _C.TEXT, _NEWER_TEXT, api=_A.ANTHROPIC, stream=_S.ANTHROPIC),
    _row("/v1/embeddings", _O.EMBEDDING, _C.EMBEDDING, _TEXT),
    _row("/v1/rerank", _O.RERANK, _C.EMBEDDING, _RERANK),
    _row("/v1/images/generations", _O.IMAGE, _C.IMAGE, _IMAGE, stream=_S.SSE, lane=Lane.IMAGE),
    _row("/v1/images/edits", _O.IMAGE_EDIT, _C.IMAGE, _IMAGE, body=_B.EITHER, stream=_S.SSE, lane=Lane.IMAGE),
    _row(
        "/v1/audio/transcriptions",
        _O.TRANSCRIPTION,
        _C.TRANSCRIPTION,
        _TRANSCRIPTION,
        body=_B.MULTIPART,
        model_optional=True,
        stream=_S.SSE,
    ),
    _row("/v1/audio/translations", _O.TRANSLATION, _C.TRANSCRIPTION, _TRANSLATION, body=_B.MULTIPART),
    _row("/v1/audio/speech", _O.SPEECH, _C.SPEECH, _SPEECH, stream=_S.SSE),
    _row("/v1/audio/music", _O.MUSIC, _C.MUSIC, _SPEECH),
    _row("/v1/videos", _O.VIDEO, _C.VIDEO, _IMAGE, body=_B.EITHER, lane=Lane.IMAGE),
    _ollama_row("/api/chat", _O.CHAT, _C.TEXT, streams=True),
    _ollama_row("/api/generate", _O.COMPLETION, _C.TEXT, streams=True),
    _ollama_row("/api/embed", _O.EMBEDDING, _C.EMBEDDING, streams=False),
    _ollama_row("/api/embeddings", _O.EMBEDDING, _C.EMBEDDING, streams=False),
    _row(
        "/sdapi/v1/txt2img",
        _O.IMAGE,
        _C.IMAGE,
        _IMAGE,
        api=_A.SDAPI,
        model_at=ModelAt.SDAPI,
        model_optional=True,
        lane=Lane.IMAGE,
    ),
    _row(
        "/sdapi/v1/img2img",
        _O.IMAGE_EDIT,
        _C.IMAGE,
        _IMAGE,
        api=_A.SDAPI,
        model_at=ModelAt.SDAPI,
        model_optional=True,
        lane=Lane.IMAGE,
    ),
    _local_row("GET", "/v1/models", _A.OPENAI, _O.LIST_MODELS),
    _local_row("GET", "/v1/models/", _A.OPENAI, _O.SHOW_MODEL, ModelAt.PATH),
    _local_row("GET", "/api/tags", _A.OLLAMA, _O.LIST_MODELS),
    _local_row("POST", "/api/show", _A.OLLAMA, _O.SHOW_MODEL, ModelAt.BODY_OR_NAME),
    _local_row("GET", "/api/ps", _A.OLLAMA, _O.LIST_LOADED),
    _local_row("GET", "/api/version", _A.OLLAMA, _O.VERSION),
)

_BY_PATH: Mapping[str, tuple[Endpoint, ...]] = {
    path: tuple(row for row in ENDPOINTS if row.path == path) for path in {row.path for row in ENDPOINTS}
}
_PREFIXES = tuple(row.path for row in ENDPOINTS if row.model_at is ModelAt.PATH)


def find(method: str, path: str) -> Match:
    """The row of a request. `path` is decoded and without its query. Raises UnknownPath or WrongMethod.

    HEAD is GET without a body.
    """
    rows, model = _BY_PATH.get(path, ()), ""
    for prefix in _PREFIXES:
        if path.startswith(prefix):
            rows, model = _BY_PATH[prefix], path[len(prefix) :]
            if not model:
                raise UnknownPath(f"no such path: {path}")
    if not rows:
        raise UnknownPath(f"no such path: {path[:200]}")
    wanted = "GET" if method == "HEAD" else method
    for row in rows:
        if row.method == wanted:
            return Match(row, model)
    raise WrongMethod(method, path, [row.method for row in rows])


def api_of(path: str) -> ApiFamily:
    """In whose shape an error is written for any path, known or not."""
    rows = _BY_PATH.get(path)
    if rows:
        return rows[0].api
    if path.startswith("/api/"):
        return ApiFamily.OLLAMA
    if path.startswith("/sdapi/"):
        return ApiFamily.SDAPI
    if path.startswith("/v1/messages/"):
        return ApiFamily.ANTHROPIC
    return ApiFamily.OPENAI


def way(endpoint: Endpoint, family: Family) -> Way:
    """How `endpoint` gets to a backend of this family."""
    if family in endpoint.native:
        return Way.PASS
    return Way.TRANSLATE if endpoint.translated else Way.REFUSE


def needs(endpoint: Endpoint, *, has_images: bool) -> frozenset[Capability]:
    """What the model must be able to do; empty = no model runs."""
    if endpoint.capability is None:
        return frozenset()
    if has_images and endpoint.capability is Capability.TEXT:
        return frozenset({Capability.TEXT, Capability.VISION})
    return frozenset({endpoint.capability})


def body_kind(endpoint: Endpoint, content_type: str) -> BodyKind:
    """How this request's body is to be read: NONE, JSON or MULTIPART. Raises UnsupportedMediaType.

    A JSON path takes every type but a form, as the servers behind it do: curl names urlencoded forms by default.
    """
    is_form = content_type[:20].lower().startswith("multipart/form-data")
    match endpoint.body:
        case BodyKind.NONE:
            return BodyKind.NONE
        case BodyKind.EITHER:
            return BodyKind.MULTIPART if is_form else BodyKind.JSON
        case BodyKind.JSON:
            if is_form:
                raise UnsupportedMediaType(f"{endpoint.path} takes application/json")
            return BodyKind.JSON
        case BodyKind.MULTIPART:
            if not is_form:
                raise UnsupportedMediaType(f"{endpoint.path} takes multipart/form-data")
            return BodyKind.MULTIPART
        case _:
            assert_never(endpoint.body)
