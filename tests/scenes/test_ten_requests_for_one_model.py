"""The example of "What is lent": an owner receives ten requests, and its helper, which is faster, is idle.

It is the scene for both lanes.
"""

import pytest
from staging.setting import pair
from staging.stage import Stage
from staging.story import How

from turnout_api.lending import DecisionRow, Outcome
from turnout_api.vocabulary import Lane

TEN = "abcdefghij"
LENGTHS = dict.fromkeys(TEN, 16) | {"a": 18}
"""Beats. The first is longer, so that no two results come at the same time."""


@pytest.mark.parametrize("lane", list(Lane))
async def test_two_go_to_the_backend_two_are_lent_and_each_result_brings_the_next(stage: Stage, lane: Lane) -> None:
    await stage.open(pair(owner_pace=1.0, helper_pace=0.86, lane=lane, processes=True))
    await stage.measure("o/mine", "h/theirs", lengths=(3, 2, 1))
    await stage.raise_curtain()
    await stage.send_all(LENGTHS)
    story = await stage.finish()
    of_all = await stage.look_at_lines_of_all()

    assert {story.how(name) for name in TEN} == {How.SERVED}
    assert story.order("o") == list("abfhj")  # a and b at once, then it is topped up with each result of its own
    assert story.order("h") == list("cdegi")  # c and d at once, then one more for each result
    assert story.completed == list("cadbefghij")
    assert story.servers(TEN) == "oohhhohoho"

    assert [(row.request_id, row.out) for row in story.rows(Outcome.LENT)] == [
        ("c", 1), ("d", 2), ("e", 2), ("g", 2), ("i", 2),
    ]  # fmt: skip
    others = set(Outcome) - {
        Outcome.GRANTED,
        Outcome.SKIPPED,
        Outcome.LENT,
        Outcome.LEASE_UPDATED,
        Outcome.LEASE_CLEARED,
    }
    assert story.log(*others) == []
    assert {row.slots for row in story.rows(Outcome.LEASE_UPDATED, Outcome.LEASE_CLEARED)} == {2}
    granted = story.rows(Outcome.GRANTED)
    assert {row.trigger for row in granted} == {"enqueued", "completed", "borrowed_completed"}
    for row in granted:
        assert (row.lane, row.slots, row.service_source, row.switch_s) == (lane, 2, "helper", 0)
        assert (row.owner_node, row.owner_model, row.helper_node, row.helper_model) == ("o", "mine", "h", "theirs")
        assert row.owner_drain_s > row.borrowed_s + row.service_s
    assert {_essence(line.row) for line in story.lines} <= {_essence(line.row) for line in of_all}
    if stage.exact:
        start = story.ends["a"].at - LENGTHS["a"]
        at = {name: end.at - start for name, end in story.ends.items()}
        helper = 16 * 0.86
        assert at == pytest.approx(
            {"a": 18, "b": 34, "f": 50, "h": 66, "j": 82} | {name: helper * (n + 1) for n, name in enumerate("cdegi")}
        )


def _essence(row: DecisionRow) -> tuple[object, ...]:
    return row.ts, row.outcome, row.trigger, row.request_id
