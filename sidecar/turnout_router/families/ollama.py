"""Ollama's requests, written as OpenAI's.

Problem: an Ollama client asks for a model whose backend speaks only OpenAI's API. Idea: a pure function from Ollama's
body to path and body of an OpenAI request; `ollama_answers` does the way back.

| Ollama | OpenAI |
|---|---|
| `/api/chat` | `/v1/chat/completions` |
| `/api/generate` | the same with one user message; `/v1/completions` when `raw` or `suffix` is given |
| `/api/embed`, `/api/embeddings` | `/v1/embeddings` |
| `messages[].images` | `image_url` parts with data URLs |
| `messages[].tool_calls` (arguments: an object) | the same with IDs (arguments: a string) |
| `options.num_predict`, `stop`, `seed`, `temperature`, … | top-level fields |
| `format` `"json"` or a schema | `response_format` |
| `think` | `chat_template_kwargs.enable_thinking`; a level is `reasoning_effort` |

Dropped, because an OpenAI backend has them fixed at its start or has no such notion: `keep_alive`, `template`,
`context`, `truncate`, `options.num_ctx` and the other load-time options.

Invariant: only InvalidBody is raised. A field of a wrong type goes to the backend as it is where it has a place there.
"""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

import orjson

from turnout_api.vocabulary import Family
from turnout_router.families.errors import InvalidBody
from turnout_router.families.paths import Endpoint, Operation

_Json = dict[str, object]

_LEGACY_EMBED_PATH = "/api/embeddings"

_OPTIONS = ("temperature", "top_p", "top_k", "min_p", "seed", "stop", "presence_penalty", "frequency_penalty")
_LLAMA_CPP_OPTIONS = ("typical_p", "repeat_last_n", "mirostat", "mirostat_tau", "mirostat_eta")
"""Sampling that llama.cpp's server takes by these names, and others do not know."""
_THINKING_TEMPLATES = frozenset({Family.LLAMA_CPP, Family.VLLM})
_WITHOUT_SUFFIX = frozenset({Family.LLAMA_CPP, Family.VLLM})
"""llama.cpp drops `suffix` silently (it has `/infill`), vLLM refuses it."""

_IMAGE_TYPES = (("/9j/", "jpeg"), ("iVBOR", "png"), ("R0lGOD", "gif"), ("UklGR", "webp"), ("Qk", "bmp"))
"""How the base64 of an image of this type begins."""


class AnswerForm(Enum):
    """How the answer is to be written."""

    CHAT = "chat"
    GENERATE = "generate"
    EMBED = "embed"
    EMBEDDINGS = "embeddings"
    """The older path: one vector."""


@dataclass(frozen=True, slots=True)
class Translated:
    """An OpenAI request, and the form in which its answer goes back."""

    path: str
    body: bytes
    form: AnswerForm


def answer_form(endpoint: Endpoint) -> AnswerForm:
    """The form of the answers of an Ollama path."""
    match endpoint.operation:
        case Operation.CHAT:
            return AnswerForm.CHAT
        case Operation.COMPLETION:
            return AnswerForm.GENERATE
        case _:
            return AnswerForm.EMBEDDINGS if endpoint.path == _LEGACY_EMBED_PATH else AnswerForm.EMBED


def is_load_only(endpoint: Endpoint, body: Mapping[str, object]) -> bool:
    """Whether a request only asks to load (or, with `keep_alive` 0, to unload) the model: it has nothing to answer."""
    match answer_form(endpoint):
        case AnswerForm.CHAT:
            return not body.get("messages")
        case AnswerForm.GENERATE:
            return not any(body.get(field) for field in ("prompt", "images", "suffix"))
        case AnswerForm.EMBED | AnswerForm.EMBEDDINGS:
            return False


def to_openai(
    endpoint: Endpoint, body: Mapping[str, object], *, model: str, stream: bool, family: Family, asks_usage: bool = True
) -> Translated:
    """Translate a request of one of Ollama's paths. `model` is written as the model. Raises InvalidBody.

    `asks_usage` = False for a backend that refuses to tell in a stream what it used.
    """
    form = answer_form(endpoint)
    translated: _Json
    match form:
        case AnswerForm.CHAT:
            path, translated = "/v1/chat/completions", {"messages": _messages(body.get("messages"))}
        case AnswerForm.GENERATE:
            path, translated = _generate(body, family)
        case AnswerForm.EMBED:
            path, translated = "/v1/embeddings", {"input": _text_to_embed(body, "input")}
        case AnswerForm.EMBEDDINGS:
            path, translated = "/v1/embeddings", {"input": _text_to_embed(body, "prompt")}
    translated["model"] = model
    if path == "/v1/embeddings":
        translated["encoding_format"] = "float"
        translated |= _present(body, ("dimensions",))
    else:
        translated |= _sampling(body.get("options"), family) | _shape_of_answer(body, family, path)
        if stream:
            translated |= {"stream": True} | ({"stream_options": {"include_usage": True}} if asks_usage else {})
    try:
        return Translated(path, orjson.dumps(translated), form)
    except orjson.JSONEncodeError:  # it reads 1,024 levels and writes 254
        raise InvalidBody("the body is nested too deep") from None


def _text_to_embed(body: Mapping[str, object], field: str) -> object:
    text = body.get(field)
    if text is None:
        raise InvalidBody(f"give the text in {field!r}", param=field)
    return text


def _generate(body: Mapping[str, object], family: Family) -> tuple[str, _Json]:
    prompt, suffix = body.get("prompt") or "", body.get("suffix")
    if body.get("raw") or suffix:
        if body.get("images"):
            raise InvalidBody("images cannot go with 'raw' or 'suffix' to this model's backend", param="images")
        if suffix and family in _WITHOUT_SUFFIX:
            raise InvalidBody("this model's backend does not serve 'suffix'", param="suffix")
        completion: _Json = {"prompt": prompt}
        return "/v1/completions", completion | ({"suffix": suffix} if suffix else {})
    user: _Json = {"role": "user", "content": prompt} | _present(body, ("images",))
    system: list[object] = [{"role": "system", "content": body["system"]}] if body.get("system") else []
    return "/v1/chat/completions", {"messages": _messages([*system, user])}


def _messages(messages: object) -> list[_Json]:
    if not isinstance(messages, list):
        raise InvalidBody("'messages' must be a list", param="messages")
    calls = _Calls()
    return [_message(message, calls) for message in messages]


class _Calls:
    """Ollama's older clients name no IDs: a tool's result answers the oldest open call of its name."""

    def __init__(self) -> None:
        self._ids: Iterator[str] = (f"call_{number}" for number in itertools.count(1))
        self._open: list[tuple[str, str]] = []

    def made(self, name: str, given: object) -> str:
        """The ID of a new call."""
        call_id = given if isinstance(given, str) and given else next(self._ids)
        self._open.append((call_id, name))
        return call_id

    def answered(self, name: object, given: object) -> str:
        """The ID of the call that a result answers."""
        for call in self._open:
            if call[0] == given or (not given and name in {None, "", call[1]}):
                self._open.remove(call)
                return call[0]
        return given if isinstance(given, str) and given else next(self._ids)


def _message(message: object, calls: _Calls) -> _Json:
    if not isinstance(message, dict):
        raise InvalidBody("a message must be an object", param="messages")
    translated: _Json = {"role": message.get("role"), "content": _content(message)}
    if message.get("thinking"):
        translated["reasoning_content"] = message["thinking"]
    made = message.get("tool_calls")
    if made:
        if not isinstance(made, list):
            raise InvalidBody("'tool_calls' must be a list", param="messages")
        translated["tool_calls"] = [_tool_call(call, calls) for call in made]
    if message.get("role") == "tool":
        name = message.get("tool_name") or message.get("name")
        if isinstance(name, dict | list):
            raise InvalidBody("'tool_name' must be a string", param="messages")
        translated["tool_call_id"] = calls.answered(name, message.get("tool_call_id"))
    return translated


def _content(message: Mapping[str, object]) -> object:
    """Text stays text; with images it becomes a list of parts."""
    content, images = message.get("content"), message.get("images")
    if not images:
        return "" if content is None else content
    if not isinstance(images, list):
        raise InvalidBody("'images' must be a list", param="images")
    text: list[object] = [{"type": "text", "text": content}] if content else []
    return text + [{"type": "image_url", "image_url": {"url": _data_url(image)}} for image in images]


def _data_url(image: object) -> str:
    if not isinstance(image, str):
        raise InvalidBody("an image must be a base64 string", param="images")
    if image.startswith("data:"):
        return image
    for start, kind in _IMAGE_TYPES:
        if image.startswith(start):
            return f"data:image/{kind};base64,{image}"
    return f"data:image/png;base64,{image}"


def _tool_call(call: object, calls: _Calls) -> _Json:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(call, dict) or not isinstance(function, dict) or not isinstance(function.get("name"), str):
        raise InvalidBody("a tool call must name its function", param="messages")
    arguments = function.get("arguments", {})
    try:
        text = arguments if isinstance(arguments, str) else orjson.dumps(arguments).decode()
    except orjson.JSONEncodeError:
        raise InvalidBody("the arguments of a tool call are nested too deep", param="messages") from None
    return {
        "id": calls.made(function["name"], call.get("id")),
        "type": "function",
        "function": {"name": function["name"], "arguments": text},
    }


def _sampling(options: object, family: Family) -> _Json:
    if not isinstance(options, dict):
        return {}
    translated = _present(options, _OPTIONS)
    limit = options.get("num_predict")
    if type(limit) is int and limit >= 0:  # -1 = no limit, which is OpenAI's default
        translated["max_tokens"] = limit
    penalty = options.get("repeat_penalty")
    if penalty is not None:
        translated["repetition_penalty" if family is Family.VLLM else "repeat_penalty"] = penalty
    if family is Family.LLAMA_CPP:
        translated |= _present(options, _LLAMA_CPP_OPTIONS)
    return translated


def _shape_of_answer(body: Mapping[str, object], family: Family, path: str) -> _Json:
    translated = _response_format(body.get("format"))
    if path == "/v1/completions":
        return translated
    translated |= _present(body, ("tools", "logprobs", "top_logprobs"))
    think = body.get("think")
    if isinstance(think, str) and think:
        translated["reasoning_effort"] = think
    elif isinstance(think, bool) and family in _THINKING_TEMPLATES:
        translated["chat_template_kwargs"] = {"enable_thinking": think}
    return translated


def _response_format(given: object) -> _Json:
    match given:
        case None | "":
            return {}
        case "json":
            return {"response_format": {"type": "json_object"}}
        case dict():
            schema = {"name": "answer", "strict": True, "schema": given}
            return {"response_format": {"type": "json_schema", "json_schema": schema}}
        case _:
            raise InvalidBody("'format' must be \"json\" or a JSON schema", param="format")


def _present(given: Mapping[str, object], names: tuple[str, ...]) -> _Json:
    return {name: given[name] for name in names if given.get(name) is not None}
