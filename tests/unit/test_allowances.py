"""What API keys may use: sliding minutes, and budgets by day."""

from hypothesis import given
from hypothesis import strategies as st

from turnout_router.allowances import DAY_S, UNLIMITED, Allowances, KeyLimits, Spent, Taken

NOON = 20_000 * DAY_S + DAY_S / 2


def admit(
    allowances: Allowances, limits: KeyLimits, now: float, *, name: str = "ann", tokens: int = 0, wall: float = NOON
) -> Taken | Spent:
    return allowances.admit(name, limits, tokens=tokens, now=now, wall=wall)


def test_a_key_without_limits_is_always_let_in() -> None:
    allowances = Allowances()
    assert all(isinstance(admit(allowances, UNLIMITED, 0.0, tokens=10**9), Taken) for _ in range(1000))


def test_no_more_than_so_many_requests_are_let_in_and_it_is_told_how_long_to_wait() -> None:
    allowances, limits = Allowances(), KeyLimits(requests_per_minute=2)
    assert isinstance(admit(allowances, limits, 10.0), Taken)
    assert isinstance(admit(allowances, limits, 40.0), Taken)
    assert admit(allowances, limits, 50.5) == Spent("requests", 2, 20.5)
    assert isinstance(admit(allowances, limits, 50.5, name="bob"), Taken)
    assert isinstance(admit(allowances, limits, 71.0), Taken)
    assert admit(allowances, limits, 71.0) == Spent("requests", 2, 30.0)


@given(
    st.integers(1, 5),
    st.lists(st.floats(0, 20, allow_nan=False), min_size=1, max_size=200),
)
def test_in_no_minute_are_there_more_and_who_waits_as_told_is_let_in(most: int, gaps: list[float]) -> None:
    allowances, limits, now = Allowances(), KeyLimits(requests_per_minute=most), 0.0
    let_in: list[float] = []
    for gap in gaps:
        now += gap
        answer = admit(allowances, limits, now)
        if isinstance(answer, Spent):
            assert 0 < answer.wait_s <= 61
            now += answer.wait_s
            assert isinstance(admit(allowances, limits, now), Taken)
        let_in.append(now)
        assert sum(at > now - 60 for at in let_in) <= most


def test_tokens_count_as_estimated_until_the_end_and_then_as_they_were() -> None:
    allowances, limits = Allowances(), KeyLimits(tokens_per_minute=100)
    first = admit(allowances, limits, 0.0, tokens=90)
    assert isinstance(first, Taken)
    second = admit(allowances, limits, 1.0, tokens=90)
    assert isinstance(second, Taken), "something was left, so the last one may go over"
    assert admit(allowances, limits, 2.0, tokens=1) == Spent("tokens", 100, 59.0)
    allowances.ended(first, tokens=10, now=2.0)
    assert admit(allowances, limits, 2.0, tokens=1) == Spent("tokens", 100, 60.0)
    allowances.ended(second, tokens=20, now=3.0)
    assert isinstance(admit(allowances, limits, 3.0, tokens=1), Taken)


def test_a_request_that_no_backend_saw_has_used_no_tokens_and_one_that_nobody_counted_its_estimate() -> None:
    allowances, limits = Allowances(), KeyLimits(tokens_per_minute=100)
    for tokens, is_let_in in ((0, True), (None, False)):
        taken = admit(allowances, limits, 0.0, tokens=100)
        assert isinstance(taken, Taken)
        allowances.ended(taken, tokens=tokens, now=0.5)
        assert isinstance(admit(allowances, limits, 0.5, tokens=0), Taken) is is_let_in


def test_tokens_of_a_request_that_ran_for_longer_than_the_window_count_at_its_end() -> None:
    allowances, limits = Allowances(), KeyLimits(tokens_per_minute=100)
    taken = admit(allowances, limits, 0.0, tokens=50)
    assert isinstance(taken, Taken)
    allowances.ended(taken, tokens=1000, now=300.0)
    assert admit(allowances, limits, 301.0) == Spent("tokens", 100, 60.0)
    assert isinstance(admit(allowances, limits, 361.0), Taken)


def test_a_budget_is_for_a_day_of_utc() -> None:
    allowances, limits = Allowances(), KeyLimits(budget_micros_per_day=1000)
    assert isinstance(admit(allowances, limits, 0.0), Taken)
    allowances.paid("ann", 999, NOON)
    assert isinstance(admit(allowances, limits, 0.0), Taken)
    assert allowances.budget_used_percent("ann", limits, NOON) == 99.9
    allowances.paid("ann", 500, NOON)
    assert admit(allowances, limits, 0.0) == Spent("budget", 1000, DAY_S / 2)
    assert isinstance(admit(allowances, limits, 0.0, wall=NOON + DAY_S / 2), Taken)
    assert allowances.budget_used_percent("ann", limits, NOON + DAY_S / 2) == 0


def test_a_clock_that_is_set_back_gives_no_day_back() -> None:
    allowances, limits = Allowances(), KeyLimits(budget_micros_per_day=1000)
    allowances.paid("ann", 1000, NOON)
    assert isinstance(admit(allowances, limits, 0.0, wall=NOON - DAY_S), Spent)


def test_what_was_spent_before_a_restart_is_spent() -> None:
    allowances, limits = Allowances(), KeyLimits(budget_micros_per_day=1000)
    allowances.recall({"ann": 1000}, NOON)
    assert isinstance(admit(allowances, limits, 0.0), Spent)
    assert allowances.budget_used_percent("ann", UNLIMITED, NOON) is None


def test_the_limit_that_lasts_longest_is_told() -> None:
    allowances, limits = Allowances(), KeyLimits(requests_per_minute=1, budget_micros_per_day=1)
    admit(allowances, limits, 0.0)
    allowances.paid("ann", 1, NOON)
    told = admit(allowances, limits, 0.0)
    assert isinstance(told, Spent)
    assert told.limit == "budget"


def test_a_refused_request_does_not_count() -> None:
    allowances, limits = Allowances(), KeyLimits(requests_per_minute=1, tokens_per_minute=1000)
    admit(allowances, limits, 0.0)
    for second in range(1, 60):
        assert isinstance(admit(allowances, limits, float(second), tokens=900), Spent)
    assert isinstance(admit(allowances, limits, 61.0, tokens=900), Taken)


def test_a_window_takes_the_same_memory_for_every_limit() -> None:
    allowances, limits = Allowances(), KeyLimits(requests_per_minute=10**9)
    for number in range(2000):
        admit(allowances, limits, number / 10)
    assert len(allowances._used["ann"].requests.slots) <= 62
