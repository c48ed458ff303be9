"""Bodies of Anthropic's `/v1/messages` and OpenAI's `/v1/responses`, as llama.cpp's server answers them."""

import orjson

from turnout_router.simbackend.openai_shapes import JSON, BadRequest, Prompt, Usage, chat_prompt, text_prompt


def messages_prompt(body: JSON) -> Prompt:
    """The prompt of `/v1/messages`: the system's text stands beside the messages. Raises BadRequest."""
    messages = body.get("messages")
    if not isinstance(messages, list):
        raise BadRequest("'messages' is required")
    system = [{"role": "system", "content": body["system"]}] if body.get("system") else []
    return chat_prompt({"messages": [*system, *messages]})


def responses_prompt(body: JSON) -> Prompt:
    """The prompt of `/v1/responses`: a text, or a list of messages. Raises BadRequest."""
    given = body.get("input")
    return chat_prompt({"messages": given}) if isinstance(given, list) else text_prompt(given, "input")


class Message:
    """An answer of `/v1/messages`. Meets `generation.Shape`."""

    content_type = "text/event-stream"

    def __init__(self, *, request_id: str, model: str, prompt_tokens: int) -> None:
        self._frame: JSON = {"id": f"msg_{request_id}", "type": "message", "role": "assistant", "model": model}
        self._prompt_tokens = prompt_tokens

    def whole(self, text: str, finish: str, usage: Usage) -> JSON:
        content = [{"type": "text", "text": text}]
        spent = {"cache_read_input_tokens": 0, "input_tokens": usage.prompt, "output_tokens": usage.completion}
        return {**self._frame, "content": content, **_stop(finish), "usage": spent}

    def opening(self) -> bytes:
        usage = {"cache_read_input_tokens": 0, "input_tokens": self._prompt_tokens, "output_tokens": 0}
        message = {**self._frame, "content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
        block = {"index": 0, "content_block": {"type": "text", "text": ""}}
        return _event("message_start", {"message": message}) + _event("content_block_start", block)

    def piece(self, text: str) -> bytes:
        return _event("content_block_delta", {"index": 0, "delta": {"type": "text_delta", "text": text}})

    def closing(self, finish: str, usage: Usage) -> bytes:
        end = {"delta": _stop(finish), "usage": {"output_tokens": usage.completion}}
        return _event("content_block_stop", {"index": 0}) + _event("message_delta", end) + _event("message_stop", {})


def _stop(finish: str) -> JSON:
    return {"stop_reason": "max_tokens" if finish == "length" else "end_turn", "stop_sequence": None}


class ResponseObject:
    """An answer of `/v1/responses`. Meets `generation.Shape`."""

    content_type = "text/event-stream"

    def __init__(self, *, request_id: str, model: str, created: int) -> None:
        self._frame: JSON = {"id": f"resp_{request_id}", "object": "response", "created_at": created, "model": model}
        self._item = f"msg_{request_id}"
        self._text = ""

    def whole(self, text: str, finish: str, usage: Usage) -> JSON:
        del finish
        content = [{"type": "output_text", "annotations": [], "logprobs": [], "text": text}]
        item = {"type": "message", "id": self._item, "role": "assistant", "status": "completed", "content": content}
        spent = {
            "input_tokens": usage.prompt,
            "output_tokens": usage.completion,
            "total_tokens": usage.prompt + usage.completion,
            "input_tokens_details": {"cached_tokens": 0},
        }
        return {**self._frame, "status": "completed", "output": [item], "usage": spent}

    def opening(self) -> bytes:
        return _event("response.created", {"response": {**self._frame, "status": "in_progress", "output": []}})

    def piece(self, text: str) -> bytes:
        self._text += text
        where = {"item_id": self._item, "output_index": 0, "content_index": 0}
        return _event("response.output_text.delta", {**where, "delta": text})

    def closing(self, finish: str, usage: Usage) -> bytes:
        return _event("response.completed", {"response": self.whole(self._text, finish, usage)})


def _event(kind: str, body: JSON) -> bytes:
    return b"event: " + kind.encode() + b"\ndata: " + orjson.dumps({"type": kind, **body}) + b"\n\n"
