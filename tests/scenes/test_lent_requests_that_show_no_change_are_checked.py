"""Stall: after offload_lent_stall_timeout without a change the master asks the helper whether it still runs them."""

from staging.setting import pair
from staging.stage import IN_ONE_PROCESS, Stage
from staging.story import How

STALL = 25


async def test_a_helper_that_cannot_be_asked_loses_them_to_their_owner(stage: Stage) -> None:
    await stage.open(pair(helper_pace=0.5, offload_lent_stall_timeout=STALL))
    await stage.measure("o/mine", "h/theirs")
    await stage.raise_curtain()
    await stage.send_all({"a": 15, "b": 15, "c": 24, "d": 24})
    await stage.node("h", lambda state: {job.id for job in state.borrowed} == {"c", "d"}, "it has c and d")
    await stage.freeze("h")
    await stage.ended("a", "b", "c", "d")
    await stage.thaw("h")
    story = await stage.finish()

    assert {end.how for end in story.ends.values()} == {How.SERVED}
    assert story.returned == {"c": "stalled", "d": "stalled"}
    assert story.order("o") == list("abcd")
    assert story.lent == ["c", "d"]


@IN_ONE_PROCESS
async def test_a_helper_that_runs_them_keeps_its_large_ones(stage: Stage) -> None:
    await stage.open(pair(helper_pace=0.9, offload_lent_stall_timeout=STALL))
    await stage.measure("o/mine", "h/theirs")
    await stage.raise_curtain()
    await stage.send_all({"a": 400, "b": 400, "c": 3 * STALL})
    await stage.ended("c")
    await stage.dismiss("a", "b")
    story = await stage.finish()

    assert story.server("c") == "h"
    assert story.returned == {}
