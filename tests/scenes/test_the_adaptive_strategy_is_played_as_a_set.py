"""`offloadStrategy: Adaptive`: what it does otherwise than the text's rules, which some scenes play beside it (`CLASSIC`)."""

import pytest
from staging.setting import Link, Model, Node, Setting, pair
from staging.stage import Stage

from turnout_api.lending import Outcome

ADAPTIVE = {"offload_strategy": "Adaptive"}
CLASSIC = pytest.mark.parametrize("stage", ["pure"], indirect=True)
LENGTHS = (4, 8, 12)
"""Beats: long enough to be measured on a busy machine."""
LOAD = 45


def _two_helpers(**settings: str) -> Setting:
    """Both are faster than the owner."""
    return Setting(
        nodes=(
            Node("o", (Model("mine"),)),
            Node("h", (Model("theirs", 0.5),)),
            Node("k", (Model("spare", 0.6),)),
        ),
        links=(Link("o/mine", "h/theirs"), Link("o/mine", "k/spare")),
        settings=settings,
    )


async def _send_long(stage: Stage, names: str) -> None:
    for name in names:
        await stage.send(name, beats=400)


async def test_one_at_each_backend_all_helpers_at_once_and_one_in_their_routers_that_own_work_sends_back(
    stage: Stage,
) -> None:
    await stage.open(_two_helpers(**ADAPTIVE))
    await stage.measure("o/mine", "h/theirs", "k/spare", lengths=LENGTHS)
    await stage.raise_curtain()
    await _send_long(stage, "ab")
    await stage.running("b", on="h")
    await _send_long(stage, "c")
    await stage.running("c", on="k")
    await _send_long(stage, "defghi")
    assert len([line for line in await stage.look_at_lines() if line.says(Outcome.LENT, {"out": 2})]) == 0
    await _send_long(stage, "j")  # seven wait for three places: a second one there costs nothing now
    await stage.node("h", lambda state: [job.running for job in state.borrowed] == [True, False], "b runs, d waits")
    await stage.node("k", lambda state: [job.running for job in state.borrowed] == [True, False], "c runs, e waits")
    assert [run.request for run in await stage.look_at_runs() if run.node == "o" and run.request in "abcdefghij"] == [
        "a"
    ]

    await stage.send("x", "h/theirs", beats=10)
    await stage.row(Outcome.RETURNED, request_id="d")
    await stage.leave("b")
    await stage.ended("x")
    await stage.dismiss(*"jihgfedca")
    story = await stage.finish()

    assert story.lent[:4] == list("bcde")
    assert story.order("h")[:2] == ["b", "x"]
    assert story.returned["d"] == "offload_returned"
    (back,) = story.rows(Outcome.BORROWED_RETURNED, helper_node="h")
    assert (back.request_id, back.reason) == ("d", "own_work_arrived")
    (waited,) = story.rows(Outcome.NATIVE_WAITED_BEHIND_BORROWED)
    assert (waited.request_id, waited.borrowed_in_backend) == ("x", 1)
    assert "d" not in story.lent[4:]
    assert story.rows(Outcome.SKIPPED, reason="outranked") == []


@CLASSIC
async def test_classic_locks_a_second_one_in_everywhere_and_has_one_helper_at_a_time(stage: Stage) -> None:
    await stage.open(_two_helpers())
    await stage.measure("o/mine", "h/theirs", "k/spare", lengths=LENGTHS)
    await stage.raise_curtain()
    await _send_long(stage, "abcdefghij")
    for helper in "hk":
        state = await stage.look_at(helper)
        assert state is not None
        assert [job.running for job in state.borrowed] == [True, True]
    await stage.dismiss(*"jihgfedcba")
    story = await stage.finish()
    assert story.lent[0] == "c"  # b was in the owner's pipe
    assert story.rows(Outcome.SKIPPED, reason="outranked")


async def _send_a_long_one_among_short_ones(stage: Stage, **settings: str) -> None:
    await stage.open(pair(helper_pace=2.2, **settings))
    await stage.measure("o/mine", "h/theirs", lengths=LENGTHS)
    await stage.raise_curtain()
    for name, beats in {"a": 100, "b": 100, "c": 300, "d": 100, "e": 100}.items():
        await stage.send(name, beats=beats)
        if name == "d" and settings:
            await stage.running("d", on="h")


async def test_the_first_that_gains_is_lent_not_the_oldest(stage: Stage) -> None:
    await _send_a_long_one_among_short_ones(stage, **ADAPTIVE)
    await stage.dismiss(*"edcba")
    story = await stage.finish()
    # b: 200 beats at home against 220; c: 500 against 660; d: 600 against 220
    assert story.lent[0] == "d"
    assert story.order("h")[0] == "d"
    assert story.rows(Outcome.LENT)[0].slots == 1  # the helper is slower


@CLASSIC
async def test_classic_lends_the_oldest(stage: Stage) -> None:
    await _send_a_long_one_among_short_ones(stage)
    await stage.running("c", on="h")
    await stage.dismiss(*"edcba")
    story = await stage.finish()
    assert story.lent[0] == "c"  # 660 beats at the helper, and it would have been done after 500 at home


async def _send_what_does_not_pay_for_the_way_back(stage: Stage, **settings: object) -> None:
    """The helper has had no request of its own: only loads are measured."""
    await stage.open(pair(load=LOAD, **settings))
    await stage.measure("o/mine", lengths=LENGTHS)
    await stage.load("h", "theirs")
    await stage.load("h", "other")
    await stage.idle("h", 3 * LOAD)  # not recently busy by the rule of Classic, either
    await stage.raise_curtain()
    for name, beats in {"a": 60, "b": 15, "c": 5}.items():
        await stage.send(name, beats=beats)


async def test_the_way_back_costs_what_its_own_work_would_suffer_and_is_taken_after_as_long_as_a_load(
    stage: Stage,
) -> None:
    # how likely own work is, has a scene of its own; a setting given by hand wins over the strategy's
    await _send_what_does_not_pay_for_the_way_back(stage, offload_switch_hazard=1.0, **ADAPTIVE)
    await stage.ended("b")
    await stage.loads("h", "theirs", "other")
    back = stage.now
    story = await stage.finish()
    assert story.server("b") == "h"
    granted = story.rows(Outcome.GRANTED)[0]
    assert granted.restore_s == 0
    assert granted.switch_s >= LOAD * stage.beat_s
    if stage.exact:
        last = max(run.ended for run in story.runs if run.node == "h" and run.ended is not None)
        assert back == pytest.approx(last + LOAD + LOAD)


@CLASSIC
async def test_classic_prices_the_way_back_in_full(stage: Stage) -> None:
    await _send_what_does_not_pay_for_the_way_back(stage)
    story = await stage.finish()
    assert story.servers("abc") == "ooo"
    assert {row.reason for row in story.rows(Outcome.SKIPPED)} == {"cost_rejected"}
    assert {row.restore_s for row in story.rows(Outcome.SKIPPED)} == {LOAD}
