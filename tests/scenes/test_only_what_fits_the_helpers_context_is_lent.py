"""The context gate: a helper gets only what its window holds, answer included."""

from staging.setting import pair
from staging.stage import Stage

from turnout_api.lending import Outcome


async def test_a_larger_request_stays_and_younger_ones_that_fit_are_lent(stage: Stage) -> None:
    await stage.open(pair(helper_pace=0.5, window=90))
    await stage.measure("o/mine", "h/theirs")
    await stage.raise_curtain()
    for name, beats in {"a": 400, "b": 400, "c": 25}.items():  # c may become 100 tokens
        await stage.send(name, beats=beats)
    skipped = await stage.row(Outcome.SKIPPED)
    for name in "def":
        await stage.send(name, beats=5)
    await stage.ended("d", "e", "f")
    await stage.dismiss("a", "b")
    await stage.running("c", on="o")
    await stage.dismiss("c")
    story = await stage.finish()

    assert (skipped.reason, skipped.held) == ("context_too_small", 1)
    assert "c" not in story.order("h")
    assert story.lent == list("def")
    assert story.servers("def") == "hhh"
