"""`turnout lending --url` against routers that lent: the master gathers the rows of every node for the report."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from turnout_cli.reporting.gateway import of_gateway
from turnout_cli.reporting.report import report


@pytest.mark.parametrize("owner", ["own", "master"])
async def test_every_request_that_was_lent_is_in_the_report(scene: Any, tmp_path: Path, owner: str) -> None:
    world = await scene(owner=owner)
    asked = world.ask(10)
    await world.at_owner.at_least(2)
    await world.at_helper.at_least(2)
    world.at_owner.at_once = world.at_helper.at_once = True
    for each in [*world.at_owner.seen, *world.at_helper.seen]:
        each.answer()
    await asyncio.gather(*asked)

    token = tmp_path / "token"
    await asyncio.to_thread(token.write_text, world.cluster.headers["Authorization"].removeprefix("Bearer "))
    log = await of_gateway(f"http://127.0.0.1:{world.master.port}", token, 0.0)
    (link,) = report(log).links
    assert (link.owner.node, link.owner.model) == (owner, "o-local")
    assert (link.helper.node, link.helper.model) == ("hlp", "h-local")
    assert link.lent == link.answered == len(world.at_helper.seen)
    assert link.returned == {}
