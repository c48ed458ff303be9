"""What the router needs to know of a request's body, from one parse.

Problem: routing asks for the model, for `stream`, for images and more, and each API writes them elsewhere. Idea: one
`orjson` parse, then a walk over the structure (`turnout_api.routing.body`, which a dry-run walks with too). The parsed
body stays in the facts, so nothing parses it again.

Invariants:

* Whatever the bytes are, only InvalidBody or MissingModel is raised.
* `stream` is true, false or refused: what may be lent hangs on it, so it is never guessed.
* A field of a wrong type that only a backend reads is the backend's business; here it counts as absent.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import orjson

from turnout_api.routing import body as bodies
from turnout_router.families.errors import ApiFamily, InvalidBody, MissingModel
from turnout_router.families.multipart import Form, parse_form
from turnout_router.families.paths import Endpoint, ModelAt, Operation

MAX_MODEL_CHARS = 512
"""A public ID has at most 253; a longer name cannot exist."""


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
        has_tools=bodies.offers_tools(parsed),
        has_audio=has_audio,
        max_tokens=bodies.asked_output_tokens(parsed, ollama=endpoint.api is ApiFamily.OLLAMA),
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


def _media(body: Mapping[str, object], operation: Operation) -> tuple[bool, bool]:
    """Whether there are images, and whether there is audio, in what a text model is asked."""
    if operation is Operation.CHAT or operation is Operation.COMPLETION:
        return bodies.asked_media(body)
    return operation is Operation.IMAGE_EDIT, False
