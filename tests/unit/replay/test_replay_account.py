"""Every row of a replay ends exactly once."""

import pytest

from turnout_cli.replaying.account import Account, Entry, Outcome
from turnout_cli.replaying.summary import Spread, summarise
from turnout_cli.replaying.trace import TraceRow


@pytest.fixture
def closed() -> list[Entry]:
    return []


@pytest.fixture
def account(closed: list[Entry]) -> Account:
    rows = [TraceRow(number, number * 10.0, 5, 5) for number in range(4)]
    return Account(rows, run="abc", start=100.0, time_scale=10.0, on_closed=closed.append)


def test_rows_are_scheduled_by_the_time_scale_and_have_ids_of_their_own(account: Account) -> None:
    assert [entry.scheduled for entry in account.entries] == [100.0, 101.0, 102.0, 103.0]
    assert len({entry.id for entry in account.entries}) == 4


def test_a_row_that_ends_twice_is_an_error(account: Account) -> None:
    account.close(account.entries[0], Outcome.OK, 101.0)
    with pytest.raises(ValueError, match="row 0 ended twice"):
        account.close(account.entries[0], Outcome.ERROR, 102.0)


def test_a_stopped_replay_says_what_was_open_and_what_was_never_sent(account: Account, closed: list[Entry]) -> None:
    account.close(account.entries[0], Outcome.OK, 101.0)
    account.entries[1].sent = 101.0
    account.close_rest(102.0)
    assert [entry.outcome for entry in closed] == [Outcome.OK, Outcome.ABANDONED, Outcome.NOT_SENT, Outcome.NOT_SENT]
    summary = summarise(account.entries, most_open=1)
    assert (summary.rows, summary.answered, summary.good) == (4, 1, False)
    assert summary.outcomes == {"ok": 1, "abandoned": 1, "not_sent": 2}


def test_an_error_answer_is_an_answer(account: Account) -> None:
    for entry in account.entries:
        account.close(entry, Outcome.ERROR, 110.0)
    assert summarise(account.entries, most_open=1).good


def test_outcomes_add_up_to_the_rows_for_every_node(account: Account) -> None:
    for entry, node in zip(account.entries, ("a", "b", "a", "b"), strict=True):
        entry.sent, entry.node, entry.model, entry.completion_tokens = entry.scheduled + 0.5, node, "m", 7
        account.close(entry, Outcome.OK, entry.scheduled + 2.5)
    summary = summarise(account.entries, most_open=2)
    assert [(share.node, share.requests, share.completion_tokens) for share in summary.nodes] == [
        ("a", 2, 14),
        ("b", 2, 14),
    ]
    assert summary.sent_late_s.max == pytest.approx(0.5)
    assert summary.total_s.p50 == pytest.approx(2.0)


def test_a_spread_is_made_of_measured_values() -> None:
    spread = Spread.of([float(value) for value in range(1, 101)])
    assert (spread.p50, spread.p95, spread.p99, spread.max) == (50.0, 95.0, 99.0, 100.0)
    assert Spread.of([3.0]) == Spread(1, 3.0, 3.0, 3.0, 3.0)
    assert Spread.of([]).p50 is None
