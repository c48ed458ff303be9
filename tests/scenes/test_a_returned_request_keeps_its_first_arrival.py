"""What comes back takes its old place in the queue, and is not lent a second time."""

from staging.setting import pair
from staging.stage import Stage

from turnout_api.lending import Outcome


async def test_it_goes_before_younger_ones_and_only_new_ones_are_lent(stage: Stage) -> None:
    await stage.open(pair(helper_pace=0.5, offload_borrowed_beyond_recall=1))
    await stage.measure("o/mine", "h/theirs")
    await stage.raise_curtain()
    await stage.send_all({"a": 400, "b": 400, "c": 30, "d": 4, "e": 4})
    await stage.node("h", lambda state: {job.id for job in state.borrowed} == {"c", "d"}, "d has arrived, too")
    await stage.send("own", "h/theirs")
    await stage.row(Outcome.RETURNED, request_id="d")  # it had not begun, …
    await stage.row(Outcome.RETURNED, request_id="e")  # … and this one comes too late
    await stage.ended("own")
    await stage.send("f", beats=4)
    await stage.ended("f")
    await stage.dismiss("a", "b")
    story = await stage.finish()

    assert story.returned == {"d": "offload_returned", "e": "offload_returned"}
    assert story.order("h") == ["c", "own", "f"]
    assert story.order("o")[-2:] == ["d", "e"]
    assert story.lent == list("cdef")
