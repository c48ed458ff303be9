"""Answers that depend on the seed, the model and the prompt alone, so that a run can be repeated word for word."""

from collections.abc import Sequence
from hashlib import blake2b
from math import sqrt
from random import Random

_STORY = (
    "the track runs past a yard where trains wait for the line to clear and a switch sends one over to the other "
    "side while signals turn from red to green so that no engine stands idle when there is work at the next station"
)
_WORDS = _STORY.split()
_NATURAL_MINIMUM, _NATURAL_MAXIMUM = 16, 64
EMBEDDING_SIZE = 64


def source(seed: int, *parts: str) -> Random:
    """A generator that the same parts always start the same way."""
    digest = blake2b("\x00".join((str(seed), *parts)).encode(), digest_size=8).digest()
    return Random(int.from_bytes(digest))  # noqa: S311 (words of a stand-in, nothing secret)


def natural_length(seed: int, model: str, prompt: str) -> int:
    """Tokens of an answer that nobody limited."""
    return source(seed, "length", model, prompt).randint(_NATURAL_MINIMUM, _NATURAL_MAXIMUM)


def words(seed: int, model: str, prompt: str, count: int) -> list[str]:
    """`count` tokens; joined they are a text. A shorter answer is a prefix of a longer one."""
    random = source(seed, "words", model, prompt)
    return [(" " if index else "") + random.choice(_WORDS) for index in range(count)]


def embedding(seed: int, model: str, text: str) -> list[float]:
    """A vector of length 1."""
    random = source(seed, "embedding", model, text)
    vector = [random.gauss() for _ in range(EMBEDDING_SIZE)]
    length = sqrt(sum(value * value for value in vector))
    return [value / length for value in vector]


def relevance(query: str, documents: Sequence[str]) -> list[float]:
    """The share of the query's words that each document has."""
    asked = set(query.lower().split())
    return [len(asked & set(document.lower().split())) / max(1, len(asked)) for document in documents]
