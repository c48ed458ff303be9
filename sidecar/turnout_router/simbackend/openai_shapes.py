"""Bodies of the OpenAI API, as llama.cpp and vLLM write them: requests read leniently, answers written exactly."""

from collections.abc import Sequence
from dataclasses import dataclass

import orjson

from turnout_router.simbackend.timing import IMAGE_PROMPT_TOKENS, MESSAGE_TOKENS, tokens_of

JSON = dict[str, object]
DONE = b"data: [DONE]\n\n"


class BadRequest(Exception):
    """What the caller wrote cannot be understood."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a request asks to be read."""

    text: str
    tokens: int
    images: int = 0


def chat_prompt(body: JSON) -> Prompt:
    """The prompt of a chat. Raises BadRequest in llama.cpp's words."""
    messages = body.get("messages")
    if messages is None:
        raise BadRequest("'messages' is required")
    if not isinstance(messages, list):
        raise BadRequest("Expected 'messages' to be an array")
    texts: list[str] = []
    images = 0
    for message in messages:
        if not isinstance(message, dict):
            raise BadRequest("Expected each message to be an object")
        found, pictures = _content(message.get("content"))
        texts.append(found)
        images += pictures
    tokens = sum(tokens_of(text) + MESSAGE_TOKENS for text in texts) + images * IMAGE_PROMPT_TOKENS
    return Prompt("\n".join(texts), tokens, images)


def _content(content: object) -> tuple[str, int]:
    if isinstance(content, str):
        return content, 0
    parts = [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []
    texts = [text for part in parts if isinstance(text := part.get("text"), str)]
    # `image` is Anthropic's name, `input_image` that of the Responses API.
    images = sum(part.get("type") in {"image_url", "image", "input_image"} for part in parts)
    return " ".join(texts), images


def text_prompt(value: object, name: str) -> Prompt:
    """A prompt of text, of tokens, or a list of texts. Raises BadRequest."""
    match value:
        case str():
            return Prompt(value, tokens_of(value))
        case [*items] if items and all(isinstance(item, int) for item in items):
            return Prompt(" ".join(map(str, items)), len(items))
        case [*items] if items and all(isinstance(item, str) for item in items):
            texts = [str(item) for item in items]
            return Prompt("\n".join(texts), sum(map(tokens_of, texts)))
    raise BadRequest(f'"{name}" must be a string, an array of strings or an array of tokens')


def text_prompts(value: object, name: str) -> list[Prompt]:
    """One prompt for each text (or list of tokens) of a batch."""
    if isinstance(value, list) and value and not isinstance(value[0], int):
        return [text_prompt(item, name) for item in value]
    return [text_prompt(value, name)]


def whole(body: JSON, *names: str) -> int | None:
    """The first of these fields that holds a whole number."""
    for name in names:
        value = body.get(name)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    return None


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens read and written."""

    prompt: int
    completion: int

    def body(self) -> JSON:
        return {
            "completion_tokens": self.completion,
            "prompt_tokens": self.prompt,
            "total_tokens": self.prompt + self.completion,
            "prompt_tokens_details": {"cached_tokens": 0},
        }


class Completion:
    """One chat or text completion, whole or as server-sent events. Meets `generation.Shape`."""

    content_type = "text/event-stream"

    def __init__(self, *, request_id: str, model: str, created: int, chat: bool, include_usage: bool) -> None:
        self._chat = chat
        self._include_usage = include_usage
        self._frame: JSON = {
            "created": created,
            "id": f"{'chatcmpl' if chat else 'cmpl'}-{request_id}",
            "model": model,
            "system_fingerprint": "sim",
        }

    def whole(self, text: str, finish: str, usage: Usage) -> JSON:
        """The answer in one piece."""
        choice: JSON = {"finish_reason": finish, "index": 0}
        if self._chat:
            choice["message"] = {"role": "assistant", "content": text}
        else:
            choice |= {"text": text, "logprobs": None}
        kind = "chat.completion" if self._chat else "text_completion"
        return {"choices": [choice], **self._frame, "object": kind, "usage": usage.body()}

    def opening(self) -> bytes:
        """What comes with the first token, before it."""
        return self._event({"delta": {"role": "assistant", "content": None}}) if self._chat else b""

    def piece(self, text: str) -> bytes:
        """One token."""
        return self._event({"delta": {"content": text}} if self._chat else {"text": text, "logprobs": None})

    def closing(self, finish: str, usage: Usage) -> bytes:
        """What comes after the last token: a chat's usage is an event of its own, without choices."""
        spent: JSON = {"usage": usage.body()} if self._include_usage else {}
        if not self._chat:
            return self._event({"text": "", "logprobs": None}, finish, spent) + DONE
        last = self._event({"delta": {}}, finish)
        if spent:
            last += sse({"choices": [], **self._frame, "object": "chat.completion.chunk", **spent})
        return last + DONE

    def _event(self, choice: JSON, finish: str | None = None, more: JSON | None = None) -> bytes:
        kind = "chat.completion.chunk" if self._chat else "text_completion"
        choices = [{"finish_reason": finish, "index": 0, **choice}]
        return sse({"choices": choices, **self._frame, "object": kind, **(more or {})})


class Transcript:
    """What was said, whole (JSON or plain text) or as server-sent events. Meets `generation.Shape`."""

    content_type = "text/event-stream"

    def __init__(self, *, plain: bool) -> None:
        self._plain = plain
        self._text = ""

    def whole(self, text: str, finish: str, usage: Usage) -> JSON | str:
        del finish
        spent = {"type": "tokens", "input_tokens": usage.prompt, "output_tokens": usage.completion}
        return text + "\n" if self._plain else {"text": text, "usage": spent}

    def opening(self) -> bytes:
        return b""

    def piece(self, text: str) -> bytes:
        self._text += text
        return sse({"type": "transcript.text.delta", "delta": text})

    def closing(self, finish: str, usage: Usage) -> bytes:
        del finish, usage
        return sse({"type": "transcript.text.done", "text": self._text}) + DONE


def sse(event: JSON) -> bytes:
    """One server-sent event."""
    return b"data: " + orjson.dumps(event) + b"\n\n"


def model_list(models: Sequence[str], created: int) -> JSON:
    """`GET /v1/models`."""
    data = [{"id": model, "object": "model", "created": created, "owned_by": "sim"} for model in models]
    return {"object": "list", "data": data}


def unknown_model(model: str) -> JSON:
    """404, as vLLM writes it."""
    message = f"The model `{model}` does not exist."
    return {"error": {"message": message, "type": "NotFoundError", "param": "model", "code": 404}}
