"""What rules ask of a request's JSON body: images, tools, audio, how long the prompt is, how long the answer may be.

Problem: the router, the dry-run, route tests and the command line must see the same in a request, or a test says
nothing about traffic. Idea: one walk over the structure (never over text: an image is a content part or an `images`
list, not a word in a prompt), used by all of them.

Invariants:

* Nothing here raises, whatever the JSON value is; a field of a wrong type counts as absent.
* The size of a prompt does not depend on how the JSON was written (white space, order of keys, escapes).
"""

import json
from collections.abc import Iterator, Mapping
from hashlib import blake2b

import orjson

MAX_NESTED_CONTENT = 4
"""Levels of content within content (a tool's result that holds an image) that are looked at for media."""
MAX_NESTED_PROMPT = 32
"""Levels that are counted: a tool's schema is deeper than a message."""
AFFINITY_BYTES = 4096
"""Of each text that tells conversations apart; a longer one differs before that, or its rest hardly matters."""

MAX_TOKENS = 2**31 - 1
"""More than any model writes; what is above counts as this."""

_IMAGE_TYPES = ("image_url", "input_image", "image")
_AUDIO_TYPES = ("input_audio", "audio_url", "audio")
_PROMPT_FIELDS = (
    "messages",
    "prompt",
    "input",
    "system",
    "instructions",
    "tools",
    "functions",
    "suffix",
    "query",
    "documents",
)
"""Top-level fields whose text a model reads."""
_MEDIA_FIELDS = frozenset(
    {
        "image_url",
        "images",
        "image",
        "input_audio",
        "audio_url",
        "audio",
        "video_url",
        "file",
        "file_data",
        "file_url",
    }
)
"""Fields that hold media or point at it: their length says nothing about tokens."""
_OUTPUT_FIELDS = ("max_tokens", "max_completion_tokens", "max_output_tokens", "n_predict")
"""Where a client says how long the answer may be; the last is llama.cpp's."""
_ANSWERS_FIELDS = ("n", "best_of")
_INSTRUCTIONS = ("system", "developer")
"""Roles that stand before a conversation."""


def media_in(items: object, depth: int = 0) -> tuple[bool, bool]:
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
        images = images or kind in _IMAGE_TYPES or item.get("image_url") is not None or is_filled(item.get("images"))
        audio = audio or kind in _AUDIO_TYPES
        for field in ("content", "output"):
            inner = item.get(field)
            if isinstance(inner, list | dict):
                found = media_in(inner if isinstance(inner, list) else [inner], depth + 1)
                images, audio = images or found[0], audio or found[1]
    return images, audio


def is_filled(value: object) -> bool:
    """Whether it is a list with something in it."""
    return isinstance(value, list) and bool(value)


def asked_media(body: Mapping[str, object]) -> tuple[bool, bool]:
    """Whether there are images, and whether there is audio, in what a text model is asked."""
    messages, items = media_in(body.get("messages")), media_in(body.get("input"))
    return messages[0] or items[0] or is_filled(body.get("images")), messages[1] or items[1]


def offers_tools(body: Mapping[str, object]) -> bool:
    """Whether the model is offered tools."""
    return is_filled(body.get("tools")) or is_filled(body.get("functions"))


def asked_output_tokens(body: Mapping[str, object], *, ollama: bool = False) -> int | None:
    """The output tokens that the client asks for at most; None = it does not say.

    Which of several fields counts, and how a number may be written, differs by backend. The most that any of them could
    read counts: nobody gets past a rule by how he writes it.
    """
    if ollama:
        options = body.get("options")
        stated = [options.get("num_predict")] if isinstance(options, dict) else []
    else:
        stated = [body.get(field) for field in _OUTPUT_FIELDS]
    counts = [count for value in stated if (count := _count(value)) is not None]
    return min(max(counts) * _answers(body), MAX_TOKENS) if counts else None


def _answers(body: Mapping[str, object]) -> int:
    """How many answers are written to one prompt, each of which may be that long."""
    return max(1, *(_count(body.get(field)) or 1 for field in _ANSWERS_FIELDS))


def _count(value: object) -> int | None:
    """A count of tokens as the most lenient backend reads it: `9e5` and `"900000"` too; None = it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = min(float(value), MAX_TOKENS)
    except ValueError:
        return None
    except OverflowError:  # a whole number of hundreds of digits
        return MAX_TOKENS if isinstance(value, int) and value > 0 else None
    return int(number) if number >= 0 else None  # not a number is not at least 0


def prompt_size(body: Mapping[str, object]) -> tuple[int, int]:
    """UTF-8 bytes of the keys and texts that a model reads, and how many numbers (token IDs) stand among them.

    Media do not count. Keys do: `role` and `content` stand for the few tokens that a chat template adds to a message.
    """
    size = numbers = 0
    for field in _PROMPT_FIELDS:
        value = body.get(field)
        if value is not None:
            more = _size(value, 0)
            size, numbers = size + more[0], numbers + more[1]
    return size, numbers


def user_of(body: Mapping[str, object]) -> str | None:
    """The field `user`."""
    user = body.get("user")
    return user if isinstance(user, str) else None


def metadata_of(body: Mapping[str, object]) -> Mapping[str, str]:
    """The texts of the object `metadata`."""
    metadata = body.get("metadata")
    if type(metadata) is not dict:
        return {}
    return {key: value for key, value in metadata.items() if isinstance(value, str)}


def fingerprint(body: Mapping[str, object]) -> bytes:
    """A hash of the content: the same for every way to write the same JSON. Reads the whole body."""
    try:
        text = orjson.dumps(body, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # a number of more than 64 bits, which orjson reads but does not write
        text = json.dumps(body, sort_keys=True).encode(errors="surrogatepass")
    return blake2b(text, digest_size=16).digest()


def conversation_key(body: Mapping[str, object]) -> bytes:
    """What stays the same in each request of one conversation: instructions and the first message after them.

    A prompt without messages begins with what its cached prefix begins with. Empty = the body holds no prompt.
    """
    parts = list(_beginning(body))
    if not parts:
        return b""
    digest = blake2b(digest_size=16)
    for part in parts:
        text = part if isinstance(part, str) else json.dumps(part, sort_keys=True)
        digest.update(text[:AFFINITY_BYTES].encode(errors="surrogatepass") + b"\0")
    return digest.digest()


def _beginning(body: Mapping[str, object]) -> Iterator[object]:
    yield from (body[field] for field in ("system", "instructions") if body.get(field))
    for field in ("messages", "input", "prompt"):
        value = body.get(field)
        if isinstance(value, str) and value:
            yield value
        if isinstance(value, list):
            yield from _up_to_the_first_message(value)


def _up_to_the_first_message(items: list[object]) -> Iterator[object]:
    for item in items:
        yield item
        if type(item) is not dict or item.get("role") not in _INSTRUCTIONS:
            return


def _size(value: object, depth: int) -> tuple[int, int]:
    if isinstance(value, str):
        # `isascii` reads a flag, so a long text costs what a short one does
        return (len(value) if value.isascii() else len(value.encode(errors="surrogatepass"))), 0
    if isinstance(value, bool) or value is None or depth > MAX_NESTED_PROMPT:
        return 0, 0
    if isinstance(value, int | float):
        return 0, 1
    size = numbers = 0
    if isinstance(value, list):
        inner: Iterator[object] = iter(value)
    elif isinstance(value, dict):
        size = sum(len(key) for key in value)
        inner = (v for k, v in value.items() if k not in _MEDIA_FIELDS and not _is_binary(k, v))
    else:
        return 0, 0
    for part in inner:
        more = _size(part, depth + 1)
        size, numbers = size + more[0], numbers + more[1]
    return size, numbers


def _is_binary(key: str, value: object) -> bool:
    """`source` of Anthropic's images and documents, unless it is a text."""
    return key == "source" and type(value) is dict and value.get("type") != "text"
