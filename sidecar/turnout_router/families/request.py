"""What the router needs to know of a request's body, from one parse.

Problem: routing asks for the model, for `stream`, for images and more, and each API writes them elsewhere. Idea: one
`orjson` parse, then a walk over the structure (never over text: an image is a content part or an `images` list, not a
word in a prompt). The parsed body stays in the facts, so nothing parses it again.

Invariants:

* Whatever the bytes are, only InvalidBody or MissingModel is raised.
* `stream` is true, false or refused: what may be lent hangs on it, so it is never guessed.
* A field of a wrong type that only a backend reads is the backend's business; here it counts as absent.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import orjson

from turnout_router.families.errors import ApiFamily, InvalidBody, MissingModel
from turnout_router.families.multipart import Form, parse_form
from turnout_router.families.paths import Endpoint, ModelAt, Operation

MAX_MODEL_CHARS = 512
"""A public ID has at most 253; a longer name cannot exist."""
MAX_NESTED_CONTENT = 4
"""Levels of content within content (a tool's result that holds an image) that are looked at."""

_IMAGE_TYPES = ("image_url", "input_image", "image")
_AUDIO_TYPES = ("input_audio", "audio_url", "audio")


@dataclass(frozen=True, slots=True)
class RequestFacts:
    """What was read. Exactly one of `body` and `form` is set."""

    model: str
    """As the client wrote it; "" = it named none, where that is allowed."""
    stream: bool
    has_images: bool = False
    has_tools: bool = False
    has_audio: bool = False
    max_tokens: int | None = None
    """The output tokens that the client asks for at most."""
    body: dict[str, object] | None = None
    form: Form | None = None


def parse_json(body: bytes | bytearray | memoryview, endpoint: Endpoint) -> RequestFacts:
    """Read a JSON body. Raises InvalidBody and MissingModel."""
    try:
        parsed = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise InvalidBody(f"the body is not JSON: {error}") from None
    if type(parsed) is not dict:
        raise InvalidBody("the body must be a JSON object")
    has_images, has_audio = _media(parsed, endpoint.operation)
    return RequestFacts(
        model=_model(parsed, endpoint),
        stream=_stream(parsed, endpoint),
        has_images=has_images,
        has_tools=_filled(parsed.get("tools")) or _filled(parsed.get("functions")),
        has_audio=has_audio,
        max_tokens=_max_tokens(parsed, endpoint),
        body=parsed,
    )


def parse_multipart(body: bytes | bytearray, content_type: str, endpoint: Endpoint) -> RequestFacts:
    """Read a form. Raises InvalidBody and MissingModel."""
    form = parse_form(body, content_type)
    model = form.text(body, "model", MAX_MODEL_CHARS * 4)
    if not model and not endpoint.model_optional:
        raise MissingModel
    return RequestFacts(
        model=_bounded(model or ""),
        stream=_form_stream(form.text(body, "stream", 16)),
        has_images=endpoint.operation is Operation.IMAGE_EDIT,
        has_audio=endpoint.operation in {Operation.TRANSCRIPTION, Operation.TRANSLATION},
        form=form,
    )


def _model(body: Mapping[str, object], endpoint: Endpoint) -> str:
    model = body.get("model")
    if model is None:
        model = _model_elsewhere(body, endpoint.model_at)
    if model is None or model == "":
        if endpoint.model_optional:
            return ""
        raise MissingModel
    if not isinstance(model, str):
        raise MissingModel("'model' must be a string")
    return _bounded(model)


def _model_elsewhere(body: Mapping[str, object], where: ModelAt) -> object:
    match where:
        case ModelAt.BODY_OR_NAME:
            return body.get("name")
        case ModelAt.SDAPI:
            overrides = body.get("override_settings")
            return overrides.get("sd_model_checkpoint") if isinstance(overrides, dict) else None
        case _:
            return None


def _bounded(model: str) -> str:
    if len(model) > MAX_MODEL_CHARS:
        raise MissingModel(f"'model' is longer than {MAX_MODEL_CHARS} characters")
    return model


def _stream(body: Mapping[str, object], endpoint: Endpoint) -> bool:
    if endpoint.operation is Operation.SPEECH:
        return body.get("stream_format") == "sse"
    stream = body.get("stream")
    if stream is None:
        return endpoint.stream_default
    if isinstance(stream, bool):
        return stream
    raise InvalidBody("'stream' must be true or false", param="stream")


def _form_stream(value: str | None) -> bool:
    """A truth value as the servers behind read it in a form (pydantic's spellings)."""
    match (value or "").strip().lower():
        case "true" | "1" | "yes" | "on" | "t" | "y":
            return True
        case "" | "false" | "0" | "no" | "off" | "f" | "n":
            return False
        case _:
            raise InvalidBody("'stream' must be true or false", param="stream")


def _max_tokens(body: Mapping[str, object], endpoint: Endpoint) -> int | None:
    if endpoint.api is ApiFamily.OLLAMA:
        options = body.get("options")
        stated = options.get("num_predict") if isinstance(options, dict) else None
    else:
        stated = body.get("max_tokens")
        for other in ("max_completion_tokens", "max_output_tokens", "n_predict"):  # the last is llama.cpp's
            stated = body.get(other) if stated is None else stated
    return stated if type(stated) is int and stated >= 0 else None


def _filled(value: object) -> bool:
    return isinstance(value, list) and bool(value)


def _media(body: Mapping[str, object], operation: Operation) -> tuple[bool, bool]:
    """Whether there are images, and whether there is audio, in what a text model is asked."""
    if operation is Operation.CHAT or operation is Operation.COMPLETION:
        messages, items = _in_items(body.get("messages")), _in_items(body.get("input"))
        return messages[0] or items[0] or _filled(body.get("images")), messages[1] or items[1]
    return operation is Operation.IMAGE_EDIT, False


def _in_items(items: object, depth: int = 0) -> tuple[bool, bool]:
    """Images and audio in a list of messages, of input items or of content parts: all have one form here."""
    if not isinstance(items, list) or depth > MAX_NESTED_CONTENT:
        return False, False
    images = audio = False
    for item in items:
        if type(item) is not dict:
            continue
        if len(item) == 2 and "role" in item and type(item.get("content")) is str:
            continue  # nearly every message; it halves the time of the walk
        kind = item.get("type")
        # Tuples, not sets: a client may write a type that cannot be hashed.
        images = images or kind in _IMAGE_TYPES or item.get("image_url") is not None or _filled(item.get("images"))
        audio = audio or kind in _AUDIO_TYPES
        for field in ("content", "output"):
            inner = item.get(field)
            if isinstance(inner, list | dict):
                found = _in_items(inner if isinstance(inner, list) else [inner], depth + 1)
                images, audio = images or found[0], audio or found[1]
    return images, audio
