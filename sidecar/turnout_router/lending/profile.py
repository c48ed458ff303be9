"""What a text model's own traffic says about sizes: bytes a token, and how long answers are.

Tokens are estimated, never counted: the size of the body is divided by a ratio that is measured. Two readings of it:

* what a job is likely to be (its price): the plain ratio, since drains and prices that are compared must not be biased;
* what a job may well be (does it fit a context window): fewer bytes a token by the ratio's own spread, so more tokens.

Answers: the mean of those to requests of about the same size. Sizes are cut into groups of equal count: quarters, and
more groups once there are enough answers. On the public conversation trace the error of a ten-job drain is 0.20 with one
group, 0.14 with four and 0.11 with sixteen; more than that gains nothing. `max_tokens` is a cap; it is a prediction only
where answers were seen to follow it.

Invariants: estimates come from what is in the window only; none is negative.
"""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from itertools import pairwise
from math import sqrt
from operator import mul

MIN_GROUPS = 4
MAX_GROUPS = 16
ANSWERS_A_GROUP = 20
"""What a group needs before there may be more than `MIN_GROUPS`."""
STALE_SHARE = 1 / 64
"""The groups may be out of date by so many of the answers: working them out anew costs as much as fifty answers do."""
EXPLAINED = 0.5
"""`max_tokens` predicts once it leaves at most this share of the squared error that the plain mean of answers has."""


@dataclass(slots=True)
class BytesPerToken:
    """The ratio, weighted by tokens: a prompt of one word is mostly JSON around it and says little about a long one."""

    count: int = 0
    _bytes: float = 0.0
    _tokens: float = 0.0
    _squares: float = 0.0
    """Σ bytes² ÷ tokens: with the other two, the weighted variance."""

    def add(self, body_bytes: float, tokens: float) -> None:
        self._shift(body_bytes, tokens, 1)

    def remove(self, body_bytes: float, tokens: float) -> None:
        self._shift(body_bytes, tokens, -1)

    def _shift(self, body_bytes: float, tokens: float, sign: int) -> None:
        self.count += sign
        self._bytes += sign * body_bytes
        self._tokens += sign * tokens
        self._squares += sign * body_bytes * body_bytes / tokens

    @property
    def mean(self) -> float:
        """Bytes a token; there must be a sample."""
        return self._bytes / self._tokens

    @property
    def conservative(self) -> float:
        """The mean less the spread. A token has a byte at least, so no spread pulls it below one."""
        mean = self.mean
        spread = sqrt(max(0.0, self._squares / self._tokens - mean * mean))
        return max(mean - spread, min(mean, 1.0))


@dataclass(slots=True)
class _Followed:
    """Whether answers follow `max_tokens`: least squares of answer = share × max_tokens."""

    n: int = 0
    _o: float = 0.0
    _oo: float = 0.0
    _om: float = 0.0
    _mm: float = 0.0

    def shift(self, output: float, max_tokens: float, sign: int) -> None:
        self.n += sign
        self._o += sign * output
        self._oo += sign * output * output
        self._om += sign * output * max_tokens
        self._mm += sign * max_tokens * max_tokens

    @property
    def share(self) -> float | None:
        """None = `max_tokens` says too little about the answers."""
        if self.n < 2 or self._mm <= 0.0:
            return None
        share = self._om / self._mm
        by_mean = self._oo - self._o * self._o / self.n
        by_share = max(0.0, self._oo - share * self._om)
        return share if by_share < EXPLAINED * by_mean else None


@dataclass(frozen=True, slots=True)
class _Group:
    mean: float
    high: float
    """Mean and spread."""


@dataclass(slots=True)
class AnswerLengths:
    """Output tokens of the samples in the window, by the size of the request's body."""

    _sizes: list[int] = field(default_factory=list)
    """Sorted; `_outputs` goes with it."""
    _outputs: list[float] = field(default_factory=list)
    _followed: _Followed = field(default_factory=_Followed)
    _bounds: list[int] = field(default_factory=list)
    _groups: list[_Group] = field(default_factory=list)
    _changes: int = 0
    """Since the groups were worked out."""

    def add(self, body_bytes: int, output: float, max_tokens: int | None) -> None:
        at = bisect_right(self._sizes, body_bytes)
        self._sizes.insert(at, body_bytes)
        self._outputs.insert(at, output)
        self._changes += 1
        if max_tokens:
            self._followed.shift(output, max_tokens, 1)

    def remove(self, body_bytes: int, output: float, max_tokens: int | None) -> None:
        """Take out a sample that was added; which of two equal ones does not matter."""
        first, last = bisect_left(self._sizes, body_bytes), bisect_right(self._sizes, body_bytes)
        at = self._outputs.index(output, first, last)
        del self._sizes[at], self._outputs[at]
        self._changes += 1
        if max_tokens:
            self._followed.shift(output, max_tokens, -1)

    def covers(self, body_bytes: int) -> bool:
        """Whether bodies as short and as long as this one were seen."""
        return bool(self._sizes) and self._sizes[0] <= body_bytes <= self._sizes[-1]

    def expected(self, body_bytes: int, max_tokens: int | None) -> float:
        """Output tokens to be expected; 0 without a history, whatever `max_tokens` is."""
        group = self._group(body_bytes)
        if group is None:
            return 0.0
        if max_tokens is None:
            return group.mean
        share = self._followed.share
        return min(group.mean if share is None else share * max_tokens, max_tokens)

    def high(self, body_bytes: int) -> float:
        """Output tokens that an answer without a stated limit may well have: the mean and the spread."""
        group = self._group(body_bytes)
        return group.high if group else 0.0

    def _group(self, body_bytes: int) -> _Group | None:
        if not self._sizes:
            return None
        if self._changes > len(self._sizes) * STALE_SHARE:
            self._groups, self._changes = self._measured(), 0
        return self._groups[bisect_right(self._bounds, body_bytes)]

    def _measured(self) -> list[_Group]:
        sizes, count = self._sizes, len(self._sizes)
        groups = max(MIN_GROUPS, min(MAX_GROUPS, count // ANSWERS_A_GROUP))
        self._bounds = [sizes[count * k // groups] for k in range(1, groups)]
        cuts = [0, *(bisect_left(sizes, bound) for bound in self._bounds), count]
        every = _measure(self._outputs)
        # equal sizes are never parted, so a group may be empty
        return [_measure(self._outputs[a:b]) if a < b else every for a, b in pairwise(cuts)]


def _measure(outputs: list[float]) -> _Group:
    mean = sum(outputs) / len(outputs)
    variance = sum(map(mul, outputs, outputs)) / len(outputs) - mean * mean
    return _Group(mean, mean + sqrt(max(0.0, variance)))
