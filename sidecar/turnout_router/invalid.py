"""What is wrong with a file, in words for the person who wrote it.

pydantic's own text shows what stands in the file, and that may be a key; these lines say where and why, and nothing of it.
"""

from pydantic import ValidationError

_WORDS = {"extra_forbidden": "no such key", "missing": "this key is missing"}


def what_is_wrong(error: ValidationError) -> list[str]:
    """A line for each mistake: its place, then what it is."""
    return [
        f"{'.'.join(map(str, one['loc'])) or 'the file'}: {_WORDS.get(one['type']) or one['msg'].removeprefix('Value error, ')}"
        for one in error.errors(include_url=False, include_context=False, include_input=False)
    ]
