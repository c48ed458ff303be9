"""Routers that run and are read all the time, and nothing is written while nothing changes: as the API server counts it."""

import json


async def test_while_routers_are_read_over_and_over_nothing_is_written(objects, start, manifests, routers, eventually):
    operator = start()
    running = await routers("master", "gpu-a", "gpu-b")
    objects.apply(manifests.link("a-to-b", "gpu-a", "gpu-b"), manifests.frontend("assistant", "cc11"))

    def serves(kind, name):
        conditions = (objects.get(kind, name) or {}).get("status", {}).get("conditions", [])
        return any((c["type"], c["status"]) == ("Ready", "True") for c in conditions)

    for kind, name in (("rn", "gpu-a"), ("rn", "gpu-b"), ("rl", "a-to-b"), ("fm", "assistant")):
        await eventually(lambda kind=kind, name=name: serves(kind, name), f"{name} does not serve")
    await eventually(lambda: operator.facts()["writes"] == operator.more_rounds(3)["writes"], "it is never quiet")
    before, began = written(operator, objects), running["master"].clock()

    await eventually(lambda: operator.more_rounds(8), "no rounds")

    assert written(operator, objects) == before
    assert running["master"].clock() > began + 5, "each round a second, and a reading between two"


def written(operator, objects):
    """How often the operator says that it wrote, the version and status of each object, and all Events."""
    shown = json.loads(objects.cluster.kubectl("get", "turnout", "-n", objects.namespace, "-o", "json").stdout)
    statuses = {(item["kind"], item["metadata"]["name"]): item["status"] for item in shown["items"]}
    events = objects.cluster.kubectl("get", "events.events.k8s.io", "-n", objects.namespace, "-o", "name").stdout
    return {
        "statuses": statuses,
        "versions": objects.versions(),
        "events": events,
        "writes": operator.facts()["writes"],
    }
