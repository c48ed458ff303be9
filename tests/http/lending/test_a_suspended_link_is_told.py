"""A master says which links it has suspended, and why."""

from dataclasses import replace
from typing import Any

import pytest

from turnout_api.lending import ModelRef, NodeState, OwnWait
from turnout_api.vocabulary import Lane

EVENT = {
    "node": "own", "model": "o-local", "lane": "Text", "trigger": "enqueued", "seq": 1000, "held_count": 1,
    "lendable_count": 1,
}  # fmt: skip


async def test_its_status_names_the_link_whose_helper_waited_too_long(
    scene: Any, until: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = await scene(offload_own_wait_limit="1m")
    asked = world.ask(3)
    await until(lambda: world.rows(world.owner, "lent"))
    assert (await world.get(world.master, "status")).body["suspended_links"] == {}

    nodes = world.master.lending.service._nodes
    really = nodes.state

    async def state(node: str, *, timeout_s: float) -> NodeState | None:
        said = await really(node, timeout_s=timeout_s)
        wait = OwnWait(ModelRef("own", "o-local"), "h-local", Lane.TEXT, 75.0)
        return said and replace(said, own_waits=(wait,) if node == "hlp" else ())

    monkeypatch.setattr(nodes, "state", state)
    await world.post(world.master, "offload/event", EVENT)
    (why,) = (await world.get(world.master, "status")).body["suspended_links"].values()
    assert why == "own work of hlp waited 75 s behind borrowed work; the limit is 60 s"
    for each in asked:
        each.cancel()
