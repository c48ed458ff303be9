"""What a backend means by an error: "this model cannot read images", "I do not serve this path", or something else.

Problem: servers say it in their own words, with their own status. Idea: a list of phrases by backend family, looked for
in the answer's body without regard to case; `cluster.refusal_patterns` replaces the list of a family.

Sources: llama.cpp `tools/server` ("image input is not supported - hint: …", 500, in newer versions 400), vLLM
("… is not a multimodal model", 400), Ollama ("this model is missing data required for image input", 500; "this model
does not support image input", 400), OpenAI ("image_url is only supported by certain models", 400).
"""

from collections.abc import Mapping, Sequence

import orjson

from turnout_api.vocabulary import Family

MAX_BODY_BYTES_READ = 64 * 1024
"""An error that takes longer to say is none of these."""
MAX_MESSAGE_CHARS = 2000

_LLAMA_CPP = ("image input is not supported", "does not support multimodal", "multimodal is not supported")
_VLLM = ("is not a multimodal model", "does not support multimodal", "at most 0 image(s) may be provided")
_OLLAMA = ("missing data required for image input", "does not support image")
_OPENAI = ("image_url is only supported by certain models", "does not support image", "images are not supported")
_ANY = tuple(dict.fromkeys(_OPENAI + _LLAMA_CPP + _VLLM + _OLLAMA))

DEFAULT_PATTERNS: Mapping[Family, Sequence[str]] = {
    Family.OPENAI: _ANY,  # any server may stand behind these two
    Family.PROCESS: _ANY,
    Family.LLAMA_CPP: _LLAMA_CPP,
    Family.VLLM: _VLLM,
    Family.OLLAMA: _OLLAMA,
    Family.KOBOLD: _LLAMA_CPP,
    Family.SD_CPP: (),
    Family.WHISPER: (),
}


def refuses_images(
    family: Family, status: int, body: bytes, configured: Mapping[Family, Sequence[str]] | None = None
) -> bool:
    """Whether an answer to a request with an image says that the model cannot read images."""
    if status not in {400, 500}:
        return False
    patterns = (configured or {}).get(family)
    text = body[:MAX_BODY_BYTES_READ].decode("utf-8", "replace").lower()
    return any(pattern.lower() in text for pattern in (DEFAULT_PATTERNS[family] if patterns is None else patterns))


def refuses_path(status: int, body: bytes) -> bool:
    """Whether an answer says that the backend does not serve the path at all.

    405 and 501 always do. A 404 does unless it speaks of a model: servers answer so to a name that they do not know.
    """
    return status in {405, 501} or (status == 404 and b"model" not in body[:MAX_BODY_BYTES_READ].lower())


def backend_message(body: bytes) -> str:
    """The text of a backend's error, whatever its shape; "" when there is none."""
    try:
        parsed = orjson.loads(body)
    except orjson.JSONDecodeError:
        return body[:MAX_MESSAGE_CHARS].decode("utf-8", "replace").strip()
    return message_of(parsed)[:MAX_MESSAGE_CHARS]


def message_of(parsed: object) -> str:
    """As `backend_message`, of a body that is parsed: OpenAI's and Anthropic's, Ollama's, FastAPI's shapes."""
    if isinstance(parsed, str):
        return parsed
    if isinstance(parsed, dict):
        for field in ("error", "message", "detail"):
            text = message_of(parsed.get(field))
            if text:
                return text
    return ""
