"""Statuses as an older operator left them, in shapes that the schema no longer has, or as somebody edited them: each is put right with one write."""

import asyncio
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import yaml

from turnout_api.resources import KINDS
from turnout_operator.names import FIELD_MANAGER

GENERATIONS = ("observedGeneration", "acceptedGeneration", "configGeneration")
SCHEMA = ("spec", "versions", 0, "schema", "openAPIV3Schema", "properties")


def kept(status: dict[str, Any], **more: Any) -> dict[str, Any]:
    """With the generations as they are: no edit asks for a new status."""
    return {name: status[name] for name in GENERATIONS if name in status} | {"conditions": status["conditions"]} | more


def bare(status: dict[str, Any], *fields: str) -> list[dict[str, Any]]:
    """Conditions that have not more than these."""
    return [{name: each[name] for name in ("type", "status", *fields)} for each in status["conditions"]]


HEALTHY = {
    "type": "Healthy",
    "status": "True",
    "reason": "Up",
    "message": "",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}
"""A condition of a type that is gone."""

OLDER: dict[tuple[str, str], Callable[[dict[str, Any]], dict[str, Any]]] = {
    ("routernode", "master"): lambda status: kept(status, instances=["master"], models={"cc11": "ready"}),
    ("routernode", "gpu-a"): lambda status: kept(status, instances=[{"name": "gpu-a", "ready": True}], phase="Running"),
    ("routernode", "gpu-b"): lambda status: kept(
        status, lanes=["Text"], modelsServing=1, models=[{"id": "gpu-b-ff", "ready": True}, {"id": "gone"}]
    ),
    ("routinglink", "a-to-b"): lambda status: {"conditions": bare(status, "reason", "message", "lastTransitionTime")},
    ("frontendmodel", "assistant"): lambda status: kept(status, conditions=bare(status), cheapestPrice="0.1"),
    ("modelpool", "fast"): lambda status: kept(status, conditions=[*status["conditions"], HEALTHY]),
    ("guardian", "sees"): lambda status: kept(
        status, conditions={each["type"]: each["status"] for each in status["conditions"]}
    ),
    ("splitrecipe", "studio"): lambda _status: {"phase": "Serving", "serving": {"ready": 1, "of": 1}},
    ("routetest", "decides"): lambda _status: {},
}
"""What each object is left with."""


@pytest.fixture
def declared(objects: Any, manifests: Any) -> dict[tuple[str, str], dict[str, Any]]:
    """An object of each kind; nobody listens where their routers are said to be."""
    more = [
        manifests.frontend("assistant", "cc11"),
        manifests.pool("fast", "cc11"),
        manifests.guardian("sees", "gpu-b"),
        manifests.recipe("studio", "gpu-a"),
        manifests.route_test("decides", "assistant"),
    ]
    applied = [*manifests.all(), *more]
    objects.apply(*applied)
    return {(one["kind"].lower(), one["metadata"]["name"]): one for one in applied if one["kind"] in KINDS}


def test_an_upgrade_over_older_statuses_puts_each_right_and_then_writes_nothing(
    objects: Any, start: Any, until: Any, declared: Any, pytestconfig: Any
) -> None:
    older = start()
    before = at_rest(objects, older, until, declared)
    older.stop()
    delivered = {name: objects.secret(f"turnout-router-{name}")["data"] for name in ("master", "gpu-a", "gpu-b")}
    with older_definitions(objects, pytestconfig.rootpath / "crds", until):
        say(objects, {key: declared[key] | {"status": old(before[key])} for key, old in OLDER.items()})
    assert objects.get("routernode", "master")["status"]["instances"] == ["master"], (
        "the API server keeps the older shape"
    )

    operator = start()

    after = at_rest(objects, operator, until, declared)
    assert operator.facts()["trouble"] == ""
    # once more at most, of what follows from the routers: they are asked after the first round
    assert len(declared) <= operator.facts()["writes"] <= 2 * len(declared)
    assert {key: timeless(status) for key, status in after.items()} == {key: timeless(s) for key, s in before.items()}
    assert {name: objects.secret(f"turnout-router-{name}")["data"] for name in delivered} == delivered


async def test_what_somebody_wrote_into_statuses_is_taken_out_with_one_write_each(
    objects: Any, start: Any, until: Any, manifests: Any, routers: Any
) -> None:
    operator = start()
    await routers("master", "gpu-a", "gpu-b")
    objects.apply(manifests.pool("fast", "cc11"))
    edited = ("routernode", "gpu-a"), ("modelpool", "fast")
    before = await asyncio.to_thread(at_rest, objects, operator, until, edited)
    writes = operator.facts()["writes"]
    ghosts = {"instances": [{"nodeID": "gpu-a.gone"}], "models": [{"id": "gone", "publicID": "gone"}]}
    suspended, theirs = (HEALTHY | {"type": type_} for type_ in ("LendingSuspended", "example.com/Audited"))

    await asyncio.to_thread(edit, objects, *edited[0], ghosts | {"lanes": "Image", "modelsLeftOut": 7})
    more = {"conditions": [*before[edited[1]]["conditions"], suspended, theirs]}
    await asyncio.to_thread(edit, objects, *edited[1], more)

    await asyncio.to_thread(until, lambda: operator.facts()["writes"] >= writes + 2, "nothing was put right")
    after = await asyncio.to_thread(at_rest, objects, operator, until, edited)
    assert operator.facts()["writes"] == writes + 2
    assert after[edited[0]] == before[edited[0]]
    conditions = after[edited[1]].pop("conditions")
    assert conditions.pop() == theirs, "a condition of others stays"
    assert conditions == before[edited[1]].pop("conditions")
    assert after[edited[1]] == before[edited[1]]


def at_rest(
    objects: Any, operator: Any, until: Any, declared: Iterable[tuple[str, str]]
) -> dict[tuple[str, str], dict[str, Any]]:
    """The status of each object, once all is said; from then on the API server is not written to."""
    operator.more_rounds(1)
    until(lambda: all(map(is_said, statuses(objects).values())), "not all is said")
    until(lambda: operator.facts()["writes"] == operator.more_rounds(3)["writes"], "it is never quiet")
    versions = objects.versions()
    operator.more_rounds(2)
    assert objects.versions() == versions
    found = statuses(objects)
    return {key: found[key] for key in declared}


def statuses(objects: Any) -> dict[tuple[str, str], dict[str, Any]]:
    shown = json.loads(objects.cluster.kubectl("get", "turnout", "-n", objects.namespace, "-o", "json").stdout)
    return {(item["kind"].lower(), item["metadata"]["name"]): item.get("status", {}) for item in shown["items"]}


def is_said(status: dict[str, Any]) -> bool:
    """Whether it has all that follows from asking the routers."""
    conditions = status.get("conditions", [])
    known = isinstance(conditions, list) and any(c["type"] == "Ready" and c["status"] != "Unknown" for c in conditions)
    return known and "not asked yet" not in json.dumps(status)


def timeless(status: dict[str, Any]) -> dict[str, Any]:
    """Conditions that an older operator said without a time have a new one."""
    conditions = [
        {name: value for name, value in each.items() if name != "lastTransitionTime"} for each in status["conditions"]
    ]
    return status | {"conditions": conditions}


def say(objects: Any, manifests: dict[tuple[str, str], dict[str, Any]]) -> None:
    """As an operator does."""
    how = ("apply", "--server-side", "--force-conflicts", f"--field-manager={FIELD_MANAGER}", "--subresource=status")
    statuses = [{name: one[name] for name in one if name != "spec"} for one in manifests.values()]
    objects.cluster.kubectl(*how, "-n", objects.namespace, "-f", "-", stdin=yaml.safe_dump_all(statuses))


def edit(objects: Any, kind: str, name: str, status: dict[str, Any]) -> None:
    """As a person does."""
    patch = ("--subresource=status", "--type=merge", "-p", json.dumps({"status": status}))
    objects.cluster.kubectl("patch", kind, name, "-n", objects.namespace, *patch)


@contextmanager
def older_definitions(objects: Any, folder: Any, until: Any) -> Iterator[None]:
    """Definitions whose statuses are free. They are in force a moment after they were written, both times."""
    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    current = [yaml.safe_load(path.read_text()) for path in sorted(folder.glob("*.yaml"))]
    older = yaml.safe_load(yaml.safe_dump(current))
    for definition in older:
        definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"] = free

    def replace(definitions: list[dict[str, Any]]) -> None:
        objects.cluster.kubectl("replace", "-f", "-", stdin=yaml.safe_dump_all(definitions))

    def takes_anything(definition: dict[str, Any]) -> bool:
        path = f"/openapi/v3/apis/{definition['spec']['group']}/v1alpha1"
        _, served = objects.cluster.request("GET", path)
        name = f"dev.turnout.v1alpha1.{definition['spec']['names']['kind']}"
        return "properties" not in served["components"]["schemas"][name]["properties"]["status"]

    replace(older)
    try:
        until(lambda: all(map(takes_anything, older)), "the older definitions are not in force")
        yield
    finally:
        replace(current)
        until(lambda: not any(map(takes_anything, current)), "the definitions are not in force")
