"""relay_refused: a helper's router is killed with lent requests in it."""

from staging.setting import pair
from staging.stage import Stage
from staging.story import How

from turnout_api.lending import Outcome


async def test_what_a_killed_helper_had_is_run_by_its_owner_in_its_old_order(stage: Stage) -> None:
    await stage.open(pair(helper_pace=0.5))
    await stage.measure("o/mine", "h/theirs")
    await stage.raise_curtain()
    await stage.send_all({"a": 400, "b": 400, "c": 30, "d": 6})
    await stage.node("h", lambda state: {job.id for job in state.borrowed} == {"c", "d"}, "it has c and d")
    await stage.crash("h")
    await stage.row(Outcome.RETURNED, request_id="c")
    await stage.row(Outcome.RETURNED, request_id="d")
    await stage.dismiss("a", "b")
    story = await stage.finish()

    assert {story.how(name) for name in "cd"} == {How.SERVED}
    refused = [line for line in story.lines if line.row.outcome is Outcome.RELAY_REFUSED]
    assert {(line.node, line.row.request_id, line.row.reason) for line in refused} == {
        ("master", "c", "forward_failed"),
        ("master", "d", "forward_failed"),
    }
    assert story.returned == {"c": "forward_failed", "d": "forward_failed"}
    assert story.servers("cd") == "oo"
    assert story.order("o")[-2:] == ["c", "d"]
    assert story.lent == ["c", "d"]
