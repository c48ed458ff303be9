"""A new master has no leases: what was lent comes back, an old lease is refused, and new ones are granted."""

from staging.setting import pair
from staging.stage import Stage
from staging.story import How

from turnout_api.lending import Outcome


async def test_an_old_lease_is_refused_and_the_next_request_gets_a_new_one(stage: Stage) -> None:
    await stage.open(pair(helper_pace=0.5))
    await stage.measure("o/mine", "h/theirs")
    await stage.raise_curtain()
    stage.replica = True
    await stage.send_all(dict.fromkeys("abcde", 400))
    await stage.row(Outcome.GRANTED, held=1, out=2)  # so there is a live lease

    await stage.replace_master()
    await stage.gone("c", off="h")  # the helper does not go on for nobody
    refused = await stage.row(Outcome.RELAY_REFUSED)  # the slot of what came back was used once more
    for name in "cde":
        await stage.row(Outcome.RETURNED, request_id=name)
    await stage.send("f", beats=4)
    await stage.ended("f")
    await stage.dismiss(*"abcde")
    story = await stage.finish()

    assert (refused.request_id, refused.reason) == ("e", "no_live_lease")
    assert story.lent == list("cdef")
    assert story.returned.keys() == set("cde")
    assert story.server("f") == "h"
    assert {story.how(name) for name in "abcde"} == {How.LEFT}
