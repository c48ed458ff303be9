"""A new master has no leases: what was lent comes back and stays, and what waits is lent by new ones."""

from staging.setting import pair
from staging.stage import Stage
from staging.story import How

from turnout_api.lending import Outcome


async def test_its_old_leases_end_and_the_next_request_brings_new_ones(stage: Stage) -> None:
    await stage.open(pair(helper_pace=0.5, scheduling_refresh_interval=25, scheduling_lease_ttl=400))
    await stage.measure("o/mine", "h/theirs")
    await stage.raise_curtain()
    stage.replica = True
    await stage.send_all({"a": 400, "b": 400, "c": 400, "d": 400, "e": 4})
    await stage.row(Outcome.GRANTED, held=1, out=2)  # both slots are in use

    await stage.replace_master()
    await stage.gone("c", off="h")  # the helper does not go on for nobody
    for name in "cd":
        await stage.row(Outcome.RETURNED, request_id=name)
    await stage.send("f", beats=4)
    await stage.ended("e", "f")
    await stage.dismiss(*"abcd")
    story = await stage.finish()

    assert story.lent == list("cdef")
    assert story.returned == {"c": "forward_failed", "d": "forward_failed"}  # e waited for the word of the new master
    assert story.servers("ef") == "hh"
    assert {story.how(name) for name in "abcd"} == {How.LEFT}
