"""Load and restore: a run of borrowed requests brings back what was loaded before it, not an intermediate model."""

from staging.setting import Link, Model, Node, Setting
from staging.stage import IN_ONE_PROCESS, Stage

from turnout_api.lending import Outcome

LOAD = 10


def _setting(*, may_load: bool = True, restore: bool = True) -> Setting:
    """Two owners, and a helper that holds neither of the models that they may use."""
    return Setting(
        nodes=(
            Node("o", (Model("mine"),)),
            Node("p", (Model("yours"),)),
            Node("h", (Model("other"), Model("first", 0.5), Model("second", 0.5)), LOAD),
        ),
        links=(
            Link("o/mine", "h/first", may_load, restore),
            Link("p/yours", "h/second", may_load, restore),
        ),
        settings={"offload_restore_delay": 30},
    )


async def _prepare(stage: Stage, setting: Setting) -> None:
    await stage.open(setting)
    await stage.measure("o/mine", "p/yours")
    await stage.measure("h/first", "h/second", "h/other", lengths=(1,))
    await stage.idle("h", 40)
    await stage.raise_curtain()


async def test_the_first_that_was_displaced_comes_back(stage: Stage) -> None:
    await _prepare(stage, _setting())
    await stage.send_all({"a": 400, "b": 400, "c": 10})
    for name, beats in {"k": 400, "l": 400, "m": 10}.items():
        await stage.send(name, "p/yours", beats=beats)
    await stage.loads("h", "first", "second", "other")
    await stage.dismiss("a", "b", "k", "l")
    story = await stage.finish()

    assert story.servers("cm") == "hh"
    assert story.order("h") == ["c", "m"]
    first, second = (story.rows(Outcome.GRANTED, owner_node=owner)[0] for owner in "op")
    assert first.restore_s  # the way back is in the price, …
    assert second.restore_s == 0  # … but not of what borrowing itself had put there


@IN_ONE_PROCESS
async def test_without_the_flag_nothing_is_loaded_back(stage: Stage) -> None:
    await _prepare(stage, _setting(restore=False))
    for name, beats in {"a": 400, "b": 400, "c": 10}.items():
        await stage.send(name, beats=beats)
    await stage.ended("c")
    await stage.send("d", beats=60)  # longer than the delay
    await stage.ended("d")
    await stage.dismiss("a", "b")
    await stage.loads("h", "first")
    story = await stage.finish()
    assert story.servers("cd") == "hh"


async def test_a_link_that_forbids_the_load_lends_nothing(stage: Stage) -> None:
    await stage.open(_setting(may_load=False))
    await stage.raise_curtain()
    for name, beats in {"a": 10, "b": 10, "c": 10}.items():
        await stage.send(name, beats=beats)
    story = await stage.finish()
    assert story.servers("abc") == "ooo"
    assert {row.reason for row in story.rows(Outcome.SKIPPED)} == {"load_forbidden"}
    assert story.lent == []
    await stage.loads("h")
