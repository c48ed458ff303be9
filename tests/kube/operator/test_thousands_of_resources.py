"""Two thousand resources before real routers: applied at once they are a handful of rounds and one status each, and at rest nothing is written."""

import asyncio
import json
import time
from typing import Any

import pytest

SIDES = 2
"""kubectl processes side by side: one alone sends 50 requests a second."""
EACH = 980
PATIENCE_S = 300.0
"""Without any progress."""
LONGEST_BURST_S = 16.0
"""See `turnout_operator.worker`."""


@pytest.mark.timeout(900)  # minutes on a machine that does much else
async def test_thousands_applied_at_once_are_a_handful_of_rounds_and_nothing_is_written_at_rest(
    objects: Any, start: Any, manifests: Any, routers: Any, eventually: Any
) -> None:
    operator = start(resync=start.NEVER)
    await routers("master", "gpu-a", "gpu-b")
    await eventually(lambda: ready(objects, "rn") == 3, "the nodes do not serve")
    rounds, writes, began = operator.facts()["rounds"], operator.facts()["writes"], time.monotonic()

    await asyncio.gather(*(asyncio.to_thread(objects.apply, *side(manifests, number)) for number in range(SIDES)))
    applied_s = time.monotonic() - began
    await until_written(operator, writes + SIDES * EACH)

    # as `Worker` has it: bursts that go on are cut, each time later
    at_most = 6 + applied_s // LONGEST_BURST_S
    assert operator.facts()["rounds"] - rounds <= at_most, f"kubectl took {applied_s:.0f} s"
    await eventually(lambda: ready(objects, "turnout") == SIDES * EACH + 3, "some do not serve")
    assert operator.facts()["writes"] - writes <= SIDES * EACH * 1.05, "a status was written twice"

    operator.stop()
    operator = start(resync="2s")
    await eventually(lambda: operator.more_rounds(1), "no rounds")
    before, versions = operator.facts()["writes"], objects.versions()
    await eventually(lambda: operator.more_rounds(5), "no rounds")
    assert operator.facts()["writes"] == before == 0
    assert objects.versions() == versions


def side(manifests: Any, number: int) -> list[dict[str, Any]]:
    """`EACH` objects of three kinds, all of which serve."""
    links = [manifests.link("a-to-b", "gpu-a", "gpu-b"), manifests.link("b-to-a", "gpu-b", "gpu-a")][
        number : number + 1
    ]
    pools = [manifests.pool(f"pool-{number}-{n}", "cc11") for n in range(EACH // 10)]
    apps = [manifests.frontend(f"app-{number}-{n}", "cc11") for n in range(EACH - len(links) - len(pools))]
    return [*links, *pools, *apps]


def ready(objects: Any, kind: str) -> int:
    """How many serve, and their master has told so for their newest generation."""
    found = json.loads(objects.cluster.kubectl("get", kind, "-n", objects.namespace, "-o", "json").stdout)["items"]
    return sum(
        item.get("status", {}).get("observedGeneration") == item["metadata"]["generation"] and is_ready(item)
        for item in found
    )


def is_ready(item: dict[str, Any]) -> bool:
    conditions = {condition["type"]: condition["status"] for condition in item["status"]["conditions"]}
    return {conditions.get(type_) for type_ in ("Accepted", "Programmed", "Ready")} == {"True"}


async def until_written(operator: Any, wanted: int) -> None:
    """Until so much was written, however long it takes while it goes on."""
    written, since = -1, time.monotonic()
    while (now := await asyncio.to_thread(lambda: operator.facts()["writes"])) < wanted:
        if now != written:
            written, since = now, time.monotonic()
        assert time.monotonic() - since < PATIENCE_S, f"nothing was written after {now} of {wanted}"
        await asyncio.sleep(0.2)
