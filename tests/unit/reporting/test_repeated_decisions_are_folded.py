"""Rows that say the same of one pair become one line with how often and from when to when."""

from turnout_router.lending.folding import SILENCE_S, fold


def told(runs):
    return [(run.row.outcome.value, run.count, run.since, run.until) for run in runs]


def test_repeated_rows_are_one_line_with_count_and_time_span(row):
    rows = [row("skipped", 10.0 + n, reason="cost_rejected") for n in range(4)]
    assert told(fold(reversed(rows))) == [("skipped", 4, 10.0, 13.0)]


def test_the_newest_row_stands_for_its_run_with_every_variable(row):
    rows = [row("skipped", 1.0 + n, reason="cost_rejected", owner_drain_s=10.0 * n, backlog=n) for n in range(3)]
    (run,) = fold(rows)
    assert run.row == rows[2]


def test_another_reason_ends_a_run_and_the_newest_run_comes_first(row):
    reasons = ["cost_rejected", "cost_rejected", "outranked", "cost_rejected"]
    runs = fold(row("skipped", float(n), reason=reason) for n, reason in enumerate(reasons))
    assert [(run.row.reason, run.count) for run in runs] == [
        ("cost_rejected", 1),
        ("outranked", 1),
        ("cost_rejected", 2),
    ]


def test_rows_of_other_pairs_between_them_do_not_end_a_run(row):
    rows = [row("skipped", float(n), helper_node="bc"[n % 2], reason="cost_rejected") for n in range(6)]
    assert [(run.row.helper_node, run.count) for run in fold(rows)] == [("c", 3), ("b", 3)]


def test_after_a_long_silence_the_same_word_is_news(row):
    later = 5.0 + SILENCE_S + 1.0
    assert told(fold([row("lent", 5.0), row("lent", later)])) == [("lent", 1, later, later), ("lent", 1, 5.0, 5.0)]


def test_a_run_says_what_made_the_master_decide_and_how_often(row):
    (run,) = fold(row("granted", float(n), trigger=trigger) for n, trigger in enumerate(["tick", "enqueued", "tick"]))
    assert run.triggers == {"tick": 2, "enqueued": 1}
