"""Hold: the second slot of a generating owner stays free for a request that the helper will have done sooner.

Each release has its scene. The helper has c and d; a has ended, b generates, and r is held.
"""

import pytest
from staging.setting import pair
from staging.stage import Stage
from staging.story import Story

from turnout_api.lending import Outcome

HELD = (Outcome.HELD_FOR_HELPER, Outcome.LENT, Outcome.LEASE_CLEARED)


async def _hold(stage: Stage, *, b: float, c: float, d: float, r: float, tired: bool = True) -> None:
    await stage.open(pair(helper_pace=0.5))
    await stage.measure("o/mine", "h/theirs")
    await stage.raise_curtain()
    await stage.send_all({"a": 10, "b": b, "c": c, "d": d, "r": r})
    if tired:  # the helper does not keep what is predicted
        await stage.tire("h")
    row = await stage.row(Outcome.HELD_FOR_HELPER)
    assert row.request_id == "r"
    assert row.owner_finish_s is not None
    assert row.owner_job_s is not None
    assert row.helper_job_s is not None
    assert row.helper_job_s < row.owner_job_s < row.owner_finish_s
    assert "r" not in (await _order(stage, "o"))


async def _order(stage: Stage, node: str) -> list[str]:
    return [run.request for run in await stage.look_at_runs() if run.node == node]


async def _close(stage: Stage) -> Story:
    await stage.dismiss(*"bcdr")
    return await stage.finish()


async def test_until_the_helper_takes_it(stage: Stage) -> None:
    await _hold(stage, b=400, c=30, d=20, r=20, tired=False)
    await stage.ended("r")
    await stage.dismiss("b")
    story = await stage.finish()
    assert story.order("h") == list("cdr")
    assert story.order("o") == list("ab")
    assert [entry[1:3] for entry in story.log(*HELD)][-3:-1] == [("held_for_helper", "r"), ("lent", "r")]


async def test_until_the_owner_would_idle(stage: Stage) -> None:
    await _hold(stage, b=20, c=20, d=40, r=40)  # by the timer it would be released at 20 + 20 + 40 or so
    await stage.running("r", on="o")
    story = await _close(stage)
    assert story.ends["b"].how == "served"
    assert story.order("o") == list("abr")
    assert story.lent == list("cd")


async def test_until_the_helper_is_later_than_predicted_by_one_job(stage: Stage) -> None:
    await _hold(stage, b=150, c=16, d=16, r=10)
    # nothing happens at the owner, at the helper or in between: it is the owner's own timer
    await stage.node("o", lambda state: not state.queues[0].held_count, "r is at the backend")
    mine = [line.row.outcome for line in await stage.look_at_lines() if line.node == "o"]
    assert mine[-1] is Outcome.HELD_FOR_HELPER
    if stage.exact:  # at 10 the helper was to need 8 more for d and 5 for r
        (held,) = [line.at for line in await stage.look_at_lines() if line.row.outcome is Outcome.HELD_FOR_HELPER]
        assert stage.now - held == pytest.approx(8 + 2 * 5)
    story = await _close(stage)
    assert story.lent == list("cd")


async def test_until_the_lease_is_cleared(stage: Stage) -> None:
    await _hold(stage, b=600, c=140, d=140, r=140)
    await stage.change(links=())
    await stage.node("o", lambda state: not any(queue.held_count for queue in state.queues), "r is at the backend")
    story = await _close(stage)
    assert [entry[1] for entry in story.log(*HELD)][-2:] == ["held_for_helper", "lease_cleared"]
    assert story.lent == list("cd")


async def test_until_the_setting_is_switched_off(stage: Stage) -> None:
    await _hold(stage, b=600, c=140, d=140, r=140)
    await stage.change(offload_hold_for_faster_helper=False)
    await stage.node("o", lambda state: not any(queue.held_count for queue in state.queues), "r is at the backend")
    story = await _close(stage)
    assert story.lent == list("cd")
