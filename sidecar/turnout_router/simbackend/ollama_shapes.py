"""Bodies of Ollama's API, after its documentation (`docs/api.md` of ollama/ollama): NDJSON, durations in nanoseconds."""

import time
from collections.abc import Iterable
from datetime import UTC, datetime

import orjson

from turnout_router.simbackend.openai_shapes import JSON, BadRequest, Prompt, Usage
from turnout_router.simbackend.timing import IMAGE_PROMPT_TOKENS, MESSAGE_TOKENS, tokens_of

_SIZE_BYTES = 98_000_000
_MODIFIED = "2026-01-01T00:00:00Z"


def chat_prompt(body: JSON) -> Prompt:
    """The prompt of `/api/chat`; pictures stand in `images` of a message. Raises BadRequest."""
    messages = body.get("messages") or []
    if not isinstance(messages, list) or not all(isinstance(message, dict) for message in messages):
        raise BadRequest("messages must be an array of objects")
    texts = [str(message.get("content") or "") for message in messages]
    images = sum(len(message.get("images") or ()) for message in messages)
    tokens = sum(tokens_of(text) + MESSAGE_TOKENS for text in texts) + images * IMAGE_PROMPT_TOKENS
    return Prompt("\n".join(texts), tokens, images)


def generate_prompt(body: JSON) -> Prompt:
    """The prompt of `/api/generate`."""
    text = "\n".join(str(body[name]) for name in ("system", "prompt") if body.get(name))
    pictures = body.get("images")
    images = len(pictures) if isinstance(pictures, list) else 0
    return Prompt(text, tokens_of(text) + images * IMAGE_PROMPT_TOKENS, images)


def now_text() -> str:
    """The present, as Ollama writes it."""
    return datetime.now(UTC).isoformat().replace("+00:00", "Z")


class Generation:
    """An answer of `/api/chat` or `/api/generate`. Meets `generation.Shape`."""

    content_type = "application/x-ndjson"

    def __init__(self, *, model: str, chat: bool) -> None:
        self._model, self._chat = model, chat
        self._started = time.monotonic_ns()

    def whole(self, text: str, finish: str, usage: Usage) -> JSON:
        return self._entry(text) | self._end(finish, usage)

    def opening(self) -> bytes:
        return b""

    def piece(self, text: str) -> bytes:
        return _line(self._entry(text) | {"done": False})

    def closing(self, finish: str, usage: Usage) -> bytes:
        return _line(self._entry("") | self._end(finish, usage))

    def without_work(self, reason: str) -> JSON:
        """The answer to a request that only loads or unloads."""
        return self._entry("") | {"done": True, "done_reason": reason}

    def _entry(self, text: str) -> JSON:
        said: JSON = {"message": {"role": "assistant", "content": text}} if self._chat else {"response": text}
        return {"model": self._model, "created_at": now_text(), **said}

    def _end(self, finish: str, usage: Usage) -> JSON:
        return {
            "done": True,
            "done_reason": finish,
            "total_duration": time.monotonic_ns() - self._started,
            "load_duration": 0,
            "prompt_eval_count": usage.prompt,
            "prompt_eval_duration": 0,
            "eval_count": usage.completion,
            "eval_duration": time.monotonic_ns() - self._started,
        }


def _line(entry: JSON) -> bytes:
    return orjson.dumps(entry) + b"\n"


def _entry(model: str) -> JSON:
    name = model if ":" in model else f"{model}:latest"
    return {"name": name, "model": name, "size": _SIZE_BYTES, "digest": "0" * 64, "details": details()}


def details() -> JSON:
    """What a model is made of."""
    return {
        "parent_model": "",
        "format": "gguf",
        "family": "sim",
        "families": ["sim"],
        "parameter_size": "135M",
        "quantization_level": "Q4_1",
    }


def tags(models: Iterable[str]) -> JSON:
    """`GET /api/tags`."""
    return {"models": [_entry(model) | {"modified_at": _MODIFIED} for model in models]}


def ps(models: Iterable[str], context_window: int) -> JSON:
    """`GET /api/ps`: what is loaded."""
    loaded = {"expires_at": "2318-01-01T00:00:00Z", "size_vram": _SIZE_BYTES, "context_length": context_window}
    return {"models": [_entry(model) | loaded for model in models]}


def show(context_window: int, *, vision: bool) -> JSON:
    """`POST /api/show`."""
    return {
        "modelfile": "",
        "parameters": f"num_ctx {context_window}",
        "template": "",
        "details": details(),
        "model_info": {"general.architecture": "sim", "sim.context_length": context_window},
        "capabilities": ["completion", "vision"] if vision else ["completion"],
        "modified_at": _MODIFIED,
    }


def embeddings(model: str, vectors: list[list[float]], tokens: int) -> JSON:
    """`POST /api/embed`."""
    return {"model": model, "embeddings": vectors, "total_duration": 0, "load_duration": 0, "prompt_eval_count": tokens}


def error(body: JSON) -> JSON:
    """Ollama's errors are a text."""
    inner = body.get("error")
    return {"error": str(inner["message"]) if isinstance(inner, dict) else str(inner)}
