"""What a helper has borrowed and not started goes back to its owner when work of its own arrives (409 offload_returned)."""

from staging.setting import pair
from staging.stage import IN_ONE_PROCESS, Stage
from staging.story import How

from turnout_api.lending import Outcome


async def test_while_the_linked_model_is_loading_all_of_it_goes_back(stage: Stage) -> None:
    await stage.open(pair(helper_pace=0.5, load=10))
    await stage.measure("o/mine")
    await stage.measure("h/theirs", "h/other", lengths=(1,))
    await stage.idle("h", 40)  # longer than the way there and back
    await stage.raise_curtain()
    for name, beats in {"a": 400, "b": 400, "c": 4, "d": 4}.items():
        await stage.send(name, beats=beats)
    await stage.loading("h", "theirs")
    await stage.node("h", lambda state: {job.id for job in state.borrowed} == {"c", "d"}, "d has arrived, too")
    await stage.send("own", "h/other")
    await stage.row(Outcome.RETURNED, request_id="c")
    await stage.row(Outcome.RETURNED, request_id="d")
    await stage.dismiss("a", "b")
    story = await stage.finish()

    assert {story.how(name) for name in ("c", "d", "own")} == {How.SERVED}
    assert story.order("h") == ["own"]
    assert story.order("o")[-2:] == ["c", "d"]
    assert story.lent == ["c", "d"]
    assert story.returned == {"c": "offload_returned", "d": "offload_returned"}
    back = story.rows(Outcome.BORROWED_RETURNED)
    assert {(row.request_id, row.reason, row.busy_on_arrival) for row in back} == {
        ("c", "own_work_arrived", False),
        ("d", "own_work_arrived", False),
    }
    assert story.rows(Outcome.RELAY_REFUSED) == []  # it was no failure


@IN_ONE_PROCESS
async def test_what_is_in_its_backend_stays_and_ends_well(stage: Stage) -> None:
    await stage.open(pair(helper_pace=0.5, offload_borrowed_beyond_recall=1))
    await stage.measure("o/mine", "h/theirs")
    await stage.raise_curtain()
    await stage.send_all({"a": 400, "b": 400, "c": 30, "d": 4})
    await stage.node("h", lambda state: {job.id for job in state.borrowed} == {"c", "d"}, "d has arrived, too")
    await stage.send("own", "h/theirs")
    await stage.row(Outcome.RETURNED)
    await stage.ended("own")
    await stage.dismiss("a", "b")
    story = await stage.finish()

    assert {story.how(name) for name in ("c", "d", "own")} == {How.SERVED}
    assert story.order("h") == ["c", "own"]
    assert story.servers("cd") == "ho"
    assert story.returned == {"d": "offload_returned"}
