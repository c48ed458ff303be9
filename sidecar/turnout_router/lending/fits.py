"""Seconds of a job as a sum of what it asks for: non-negative least squares over sums that follow a window.

Problem: the fit is asked for at every decision and changes with every finished job, while a thousand samples are in the
window. Idea: keep the sums of the normal equations, add a sample to them when it comes and take it out when it leaves; a
solve is then a handful of divisions, however many samples there are.

With at most three columns the non-negative optimum is found by trying sets of columns: it is the plain least-squares
solution of one of them. Columns are scaled to length one first, since a job has one constant and a hundred thousand
tokens; a set whose columns cannot be told apart (determinant below `SINGULAR`) is left out, so that fewer columns
explain the samples.

Invariants: no coefficient is negative; the sums after adding and removing are those of the samples that are left, up to
rounding (`Window` in `measure.py` builds them anew before rounding can add up).
"""

from dataclasses import dataclass
from math import sqrt
from typing import NamedTuple

SINGULAR = 1e-9
"""Of columns of length one. Two of them that differ by less than 3e-5 of their length count as the same."""

DROWNED = 1e-6
"""What is left of a sum beside what was taken out: sixteen digits less six leave ten that are right."""


class Coefficients(NamedTuple):
    """seconds = base + first × a + second × b."""

    base: float
    first: float
    second: float


@dataclass(slots=True)
class Sums:
    """What least squares needs to know of samples (a, b, seconds)."""

    n: int = 0
    a: float = 0.0
    b: float = 0.0
    aa: float = 0.0
    ab: float = 0.0
    bb: float = 0.0
    t: float = 0.0
    ta: float = 0.0
    tb: float = 0.0

    def add(self, a: float, b: float, seconds: float) -> None:
        self.n += 1
        self._shift(a, b, seconds, 1.0)

    def remove(self, a: float, b: float, seconds: float) -> None:
        """Take out a sample that was added."""
        self.n -= 1
        self._shift(a, b, seconds, -1.0)

    def is_drowned_by(self, a: float, b: float) -> bool:
        """Whether so much was taken out with this sample that what is left may be its rounding."""
        return self.aa < DROWNED * a * a or self.bb < DROWNED * b * b

    def _shift(self, a: float, b: float, seconds: float, sign: float) -> None:
        self.a += sign * a
        self.b += sign * b
        self.aa += sign * a * a
        self.ab += sign * a * b
        self.bb += sign * b * b
        self.t += sign * seconds
        self.ta += sign * seconds * a
        self.tb += sign * seconds * b


class _Scaled(NamedTuple):
    """The normal equations with columns of length one: `gIJ` are their products, `vI` those with the seconds."""

    g01: float
    g02: float
    g12: float
    v0: float
    v1: float
    v2: float


def solve(sums: Sums) -> Coefficients:
    """The non-negative coefficients with the least squared error. There must be a sample."""
    # a column of nothing but zeros gets the length one: its products are zero, and so is its coefficient
    s0, s1, s2 = sqrt(sums.n), sqrt(max(0.0, sums.aa)) or 1.0, sqrt(max(0.0, sums.bb)) or 1.0
    scaled = _Scaled(
        sums.a / (s0 * s1), sums.b / (s0 * s2), sums.ab / (s1 * s2), sums.t / s0, sums.ta / s1, sums.tb / s2
    )
    found = _three(scaled) or _fewer(scaled)
    return Coefficients(found.base / s0, found.first / s1, found.second / s2)


def _three(q: _Scaled) -> Coefficients | None:
    """By all columns; None = they cannot be told apart, or one would be negative."""
    g01, g02, g12, v0, v1, v2 = q
    determinant = 1.0 + 2.0 * g01 * g02 * g12 - g01 * g01 - g02 * g02 - g12 * g12
    if determinant < SINGULAR:
        return None
    m01, m02, m12 = g02 * g12 - g01, g01 * g12 - g02, g01 * g02 - g12
    x0 = (1.0 - g12 * g12) * v0 + m01 * v1 + m02 * v2
    x1 = m01 * v0 + (1.0 - g02 * g02) * v1 + m12 * v2
    x2 = m02 * v0 + m12 * v1 + (1.0 - g01 * g01) * v2
    if x0 < 0.0 or x1 < 0.0 or x2 < 0.0:
        return None
    return Coefficients(x0 / determinant, x1 / determinant, x2 / determinant)


def _fewer(q: _Scaled) -> Coefficients:
    """By the two columns, or the one, that explain most. A tie goes to fewer columns, then to the constant."""
    candidates = [(q.v0 * q.v0, Coefficients(q.v0, 0.0, 0.0))]
    candidates += [(q.v1 * q.v1, Coefficients(0.0, q.v1, 0.0)), (q.v2 * q.v2, Coefficients(0.0, 0.0, q.v2))]
    if pair := _two(q.g01, q.v0, q.v1):
        candidates.append((pair[0], Coefficients(pair[1], pair[2], 0.0)))
    if pair := _two(q.g02, q.v0, q.v2):
        candidates.append((pair[0], Coefficients(pair[1], 0.0, pair[2])))
    if pair := _two(q.g12, q.v1, q.v2):
        candidates.append((pair[0], Coefficients(0.0, pair[1], pair[2])))
    best = candidates[0]
    for candidate in candidates[1:]:
        if candidate[0] > best[0] * (1.0 + SINGULAR):
            best = candidate
    return best[1]


def _two(g: float, v: float, w: float) -> tuple[float, float, float] | None:
    """What two columns explain of the squared seconds, and their coefficients."""
    determinant = 1.0 - g * g
    if determinant < SINGULAR:
        return None
    x, y = (v - g * w) / determinant, (w - g * v) / determinant
    return (x * v + y * w, x, y) if x >= 0.0 and y >= 0.0 else None
