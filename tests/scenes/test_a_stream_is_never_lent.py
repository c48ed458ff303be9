"""A streaming request is queued like any other, but only the router of its node can serve it."""

from staging.setting import pair
from staging.stage import Stage
from staging.story import How


async def test_it_waits_for_the_owner_while_younger_ones_are_lent(stage: Stage) -> None:
    await stage.open(pair(helper_pace=0.5))
    await stage.measure("o/mine", "h/theirs")
    await stage.raise_curtain()
    for name, stream in {"a": False, "b": False, "s": True, "c": False, "d": False}.items():
        await stage.send(name, beats=10, stream=stream)
    story = await stage.finish()

    assert {end.how for end in story.ends.values()} == {How.SERVED}
    assert story.lent == ["c", "d"]
    assert story.order("o") == ["a", "b", "s"]
    assert story.order("h") == ["c", "d"]
