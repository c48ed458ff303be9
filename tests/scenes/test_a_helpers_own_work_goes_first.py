"""A helper finishes what is in its backend, then serves its own, and borrows nothing until its own queue is empty."""

from staging.setting import pair
from staging.stage import Stage

from turnout_api.lending import Outcome


async def test_own_requests_wait_for_two_borrowed_ones_at_most_and_nothing_is_borrowed_meanwhile(stage: Stage) -> None:
    await stage.open(pair(helper_pace=0.5))
    await stage.measure("o/mine", "h/theirs")
    await stage.raise_curtain()
    await stage.send_all({"a": 400, "b": 400, "c": 40, "d": 20, "e": 20})
    await stage.node("h", lambda state: len(state.borrowed) == 2, "d is there, too")
    for name in "xyz":
        await stage.send(name, "h/theirs", beats=10)
    await stage.ended("c")  # whose slot e gets, until the master has heard
    await stage.row(Outcome.RETURNED, request_id="e")
    await stage.send("f", beats=10)
    skipped = await stage.row(Outcome.SKIPPED)
    await stage.ended("z")
    await stage.send("g", beats=10)
    await stage.ended("f", "g")
    await stage.dismiss(*"abe")
    story = await stage.finish()

    assert story.order("h") == list("cdxyzfg")
    assert story.lent == list("cdefg")
    assert story.returned == {"e": "offload_returned"}
    (back,) = story.rows(Outcome.BORROWED_RETURNED)
    assert (back.request_id, back.reason, back.busy_on_arrival) == ("e", "busy_on_arrival", True)
    waited = story.rows(Outcome.NATIVE_WAITED_BEHIND_BORROWED)
    assert [(row.request_id, row.borrowed_in_backend) for row in waited] == [("x", 2), ("y", 2), ("z", 2)]
    assert (skipped.reason, skipped.helper_idle_s, skipped.held) == ("helper_not_accepting", 0, 2)
