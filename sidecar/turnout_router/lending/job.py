"""What the queue knows of a request, and what is known once it ran. No text of it, ever."""

from dataclasses import dataclass

from turnout_api.lending import ModelRef, Work
from turnout_api.vocabulary import Lane


@dataclass(frozen=True, slots=True)
class Job:
    """A request as it arrives."""

    lane: Lane = Lane.TEXT
    body_bytes: int = 0
    max_tokens: int | None = None
    """What the client allows for the answer; None = it does not say."""
    pixel_steps: float = 0.0
    """Image lane: pixels × steps × images."""
    lendable: bool = True
    """Not streaming, and its body can be sent again."""
    has_images: bool = False


@dataclass(frozen=True, slots=True)
class Borrow:
    """What makes a request borrowed work on its helper."""

    lease: str
    may_load: bool
    """The link's `loadIfUnloaded`."""
    restore: bool
    """The link's `restoreAfterBorrow`."""
    owner: ModelRef | None = None
    """None when the caller did not say."""


@dataclass(frozen=True, slots=True)
class Done:
    """How a request that had a slot ended."""

    ok: bool
    """Complete and without an error: only such a job is a sample."""
    work: Work | None = None
    """What the backend said it did (tokens of its usage, or the image's size); None = it did not say."""
