"""What comes back takes its old place in the queue, and is not lent a second time."""

from staging.setting import pair
from staging.stage import Stage

from turnout_api.lending import Outcome


async def test_it_goes_before_younger_ones_and_only_those_are_lent(stage: Stage) -> None:
    await stage.open(pair(helper_pace=0.5, offload_borrowed_beyond_recall=1))
    await stage.measure("o/mine", "h/theirs")
    await stage.raise_curtain()
    await stage.send_all({"a": 400, "b": 400, "c": 30, "d": 4})
    await stage.node("h", lambda state: {job.id for job in state.borrowed} == {"c", "d"}, "d has arrived, too")
    await stage.send("younger", beats=4, stream=True)
    await stage.send("own", "h/theirs")  # d had not begun: it goes back
    await stage.row(Outcome.RETURNED)
    await stage.ended("own")
    await stage.send("e", beats=4)
    await stage.ended("e")
    await stage.dismiss("a", "b")
    story = await stage.finish()

    assert story.returned == {"d": "offload_returned"}
    assert story.order("h") == ["c", "own", "e"]
    assert story.order("o")[-2:] == ["d", "younger"]
    assert story.lent == list("cde")
