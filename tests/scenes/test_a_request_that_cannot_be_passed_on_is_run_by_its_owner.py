"""relay_refused: each reason for which the master cannot pass a lent request on, and what its owner does."""

from dataclasses import replace

from staging.setting import Link, Model, Node, pair
from staging.stage import IN_ONE_PROCESS, Stage
from staging.story import How

from turnout_api.lending import Outcome


async def test_what_a_killed_helper_had_is_run_by_its_owner_in_its_old_order(stage: Stage) -> None:
    await stage.open(pair(helper_pace=0.5))
    await stage.measure("o/mine", "h/theirs")
    await stage.raise_curtain()
    await stage.send_all({"a": 400, "b": 400, "c": 30, "d": 6})
    await stage.node("h", lambda state: {job.id for job in state.borrowed} == {"c", "d"}, "it has c and d")
    await stage.crash("h")
    await stage.row(Outcome.RETURNED, request_id="c")
    await stage.row(Outcome.RETURNED, request_id="d")
    await stage.dismiss("a", "b")
    story = await stage.finish()

    assert {story.how(name) for name in "cd"} == {How.SERVED}
    refused = [line for line in story.lines if line.row.outcome is Outcome.RELAY_REFUSED]
    assert {(line.node, line.row.request_id, line.row.reason) for line in refused} == {
        ("master", "c", "forward_failed"),
        ("master", "d", "forward_failed"),
    }
    assert story.returned == {"c": "forward_failed", "d": "forward_failed"}
    assert story.servers("cd") == "oo"
    assert story.order("o")[-2:] == ["c", "d"]
    assert story.lent == ["c", "d"]


@IN_ONE_PROCESS  # of a process that is killed the master may still have a connection: then it cannot know what arrived
async def test_one_for_a_helper_that_has_just_died_never_leaves_the_master(stage: Stage) -> None:
    await _lease_in_hand(stage)
    await stage.crash("h")
    await _returned(stage, "helper_unreachable")


async def test_one_under_a_lease_of_an_earlier_master_is_not_passed_on(stage: Stage) -> None:
    await _lease_in_hand(stage)
    await stage.replace_master()
    await _returned(stage, "no_live_lease")


async def _lease_in_hand(stage: Stage) -> None:
    """The owner has a lease of two slots with nothing out, and what it tells the master of that waits to be heard.

    The master is at a decision for another owner, p, and waits for the state of its helper, g.
    """
    setting = pair(helper_pace=0.5)
    nodes = (*setting.nodes, Node("p", (Model("yours"),)), Node("g", (Model("spare"),)))
    await stage.open(replace(setting, nodes=nodes, links=(Link(), Link("p/yours", "g/spare"))))
    await stage.measure("o/mine", "h/theirs", lengths=(4, 8, 12))
    await stage.raise_curtain()
    stage.replica = True
    await stage.send_all(dict.fromkeys("abc", 400))
    await stage.freeze("g")
    for name in "klm":
        await stage.send(name, "p/yours", beats=400)
    await stage.leave("c")
    await stage.gone("c", off="h")
    await stage.node("o", lambda state: not state.queues, "it has nothing lent any more")


async def _returned(stage: Stage, reason: str) -> None:
    """Send d, which is lent at once under that lease and comes back for this reason."""
    await stage.send("d", beats=4)
    await stage.row(Outcome.RETURNED, request_id="d")
    await stage.thaw("g")
    await stage.dismiss(*"abklm")
    story = await stage.finish()

    assert [entry for entry in story.log(Outcome.LENT, Outcome.RELAY_REFUSED, Outcome.RETURNED) if entry[2] == "d"] == [
        ("o", "lent", "d", ""),
        ("master", "relay_refused", "d", reason),
        ("o", "returned", "d", reason),
    ]
    assert story.how("d") is How.SERVED
    assert story.order("h") == ["c"]
    assert story.server("d") == "o"
