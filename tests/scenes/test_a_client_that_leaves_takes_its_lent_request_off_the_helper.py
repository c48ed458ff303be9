"""Cancel through the lease: client → owner → master → helper → backend."""

from staging.setting import pair
from staging.stage import Stage
from staging.story import How

from turnout_api.lending import Outcome


async def test_the_helpers_backend_sees_the_abort_and_the_slot_is_used_again(stage: Stage) -> None:
    await stage.open(pair(helper_pace=0.5))
    await stage.measure("o/mine", "h/theirs")
    await stage.raise_curtain()
    await stage.send_all({"a": 200, "b": 200, "c": 300, "d": 10, "e": 10})
    await stage.leave("c")
    await stage.gone("c", off="h")
    await stage.ended("d", "e")
    await stage.dismiss("a", "b")
    story = await stage.finish()

    assert story.how("c") is How.LEFT
    assert story.servers("de") == "hh"
    assert story.order("h") == list("cde")
    assert story.returned == {}
    assert story.rows(Outcome.RELAY_REFUSED) == []
