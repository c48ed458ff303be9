"""What is wrong with a file, in words for the person who wrote it.

pydantic's own text shows what stands in the file, and that may be a key; these lines say where and why, and nothing of it.
"""

from pydantic import ValidationError

_WORDS = {
    "extra_forbidden": "no such key",
    "missing": "this key is missing",
    "dict_type": "must be a mapping",
    "model_type": "must be a mapping",
    "list_type": "must be a list",
    "string_type": "must be a text",
}
"""Of pydantic's types of errors. Its own words are about Python, and name our classes."""


def what_is_wrong(error: ValidationError) -> list[str]:
    """A line for each mistake: its place, then what it is."""
    return [
        f"{'.'.join(map(str, one['loc'])) or 'the file'}: {_WORDS.get(one['type']) or _plain(one['msg'])}"
        for one in error.errors(include_url=False, include_context=False, include_input=False)
    ]


def _plain(message: str) -> str:
    return message.removeprefix("Value error, ").replace("Input should", "must", 1)
