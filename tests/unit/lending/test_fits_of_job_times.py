"""The least squares behind every price: what they find, what they never give, and that removing is as good as refitting."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnout_router.lending.fits import Coefficients, Sums, solve

tokens = st.integers(0, 200_000).map(float)
seconds = st.floats(0.0, 10_000.0)
rows = st.tuples(tokens, tokens, seconds)
coefficient = st.floats(1e-6, 1.0)


def summed(samples) -> Sums:
    sums = Sums()
    for sample in samples:
        sums.add(*sample)
    return sums


def squared_error(found: Coefficients, samples) -> float:
    return sum((found.base + found.first * a + found.second * b - t) ** 2 for a, b, t in samples)


def by_descent(samples) -> Coefficients:
    """The same optimum, found another way: one coordinate at a time, on columns of length one."""
    columns = [[1.0 for _ in samples], [a for a, _, _ in samples], [b for _, b, _ in samples]]
    lengths = [sum(x * x for x in column) ** 0.5 or 1.0 for column in columns]
    columns = [[x / length for x in column] for column, length in zip(columns, lengths, strict=True)]
    x, left = [0.0, 0.0, 0.0], [t for _, _, t in samples]
    for _ in range(4000):
        for j, column in enumerate(columns):
            moved = max(0.0, x[j] + sum(c * r for c, r in zip(column, left, strict=True))) - x[j]
            x[j] += moved
            left = [r - moved * c for c, r in zip(column, left, strict=True)]
    return Coefficients(*(value / length for value, length in zip(x, lengths, strict=True)))


@given(base=coefficient, first=coefficient, second=coefficient, seed=st.integers(0, 1000))
def test_known_coefficients_are_found(base: float, first: float, second: float, seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 - made-up jobs
    work = [(float(rng.randint(1, 8000)), float(rng.randint(1, 800))) for _ in range(30)]
    found = solve(summed((a, b, base + first * a + second * b) for a, b in work))
    for a, b in work:
        assert found.base + found.first * a + found.second * b == pytest.approx(base + first * a + second * b, rel=1e-6)
    assert found.first == pytest.approx(first, rel=1e-3, abs=1e-9)
    assert found.second == pytest.approx(second, rel=1e-3, abs=1e-9)


@given(st.lists(rows, min_size=1, max_size=40))
def test_no_coefficient_is_negative(samples) -> None:
    assert min(solve(summed(samples))) >= 0.0


@settings(max_examples=30)
@given(st.lists(st.tuples(st.floats(0, 50), st.floats(0, 50), st.floats(0, 50)), min_size=4, max_size=8))
def test_no_other_coefficients_explain_the_samples_better(samples) -> None:
    ours, other = squared_error(solve(summed(samples)), samples), squared_error(by_descent(samples), samples)
    assert ours <= other * (1 + 1e-6) + 1e-6


def test_a_time_that_falls_with_the_input_is_explained_without_it() -> None:
    samples = [(float(a), float(b), 100.0 - a + 2.0 * b) for a, b in [(1, 10), (20, 11), (40, 12), (60, 30), (80, 5)]]
    found = solve(summed(samples))
    assert found.first == 0.0
    assert found.second > 0.0


def test_columns_that_cannot_be_told_apart_fall_back_to_fewer() -> None:
    found = solve(summed((float(n), 3.0 * n, 1.0 + 7.0 * n) for n in range(1, 30)))
    for n in (1, 12, 29, 60):
        assert found.base + found.first * n + found.second * 3.0 * n == pytest.approx(1.0 + 7.0 * n)
    assert 0.0 in (found.first, found.second)


def test_an_input_that_never_varies_counts_as_part_of_the_constant() -> None:
    found = solve(summed((500.0, float(b), 2.0 + 0.1 * b) for b in range(20)))
    assert found == pytest.approx((2.0, 0.0, 0.1))


def test_one_sample_is_its_own_mean() -> None:
    assert solve(summed([(10.0, 20.0, 7.0)])) == pytest.approx((7.0, 0.0, 0.0))


def test_columns_of_very_different_size_are_both_found() -> None:
    samples = [(pixels * 1e6, 0.0, 3.0 + pixels * 1e6 * 2e-8) for pixels in (5, 10, 20, 41, 80)]
    assert solve(summed(samples)) == pytest.approx((3.0, 2e-8, 0.0))


@given(st.lists(rows, min_size=3, max_size=60), st.data())
def test_removing_is_as_good_as_refitting(samples, data) -> None:
    cut = data.draw(st.integers(1, len(samples) - 1))
    sums, fresh = summed(samples), summed(samples[cut:])
    for sample in samples[:cut]:
        sums.remove(*sample)
    assert sums.n == fresh.n
    assert sums.aa == fresh.aa  # tokens are whole numbers: no rounding at all
    assert (sums.t, sums.ta, sums.tb) == pytest.approx((fresh.t, fresh.ta, fresh.tb), rel=1e-6, abs=1e-3)
