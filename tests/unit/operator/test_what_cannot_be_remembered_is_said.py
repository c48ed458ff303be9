"""While nothing can be judged, RouterNodes and what changed since it was judged say so once; all else that they say stays, and it heals."""

import json
from typing import Any

import pytest

from turnout_operator.statuses import of_unremembered

POOL = {"members": [{"model": "cc11"}]}


@pytest.fixture
def judged(namespace: Any) -> Any:
    for name in ("edited", "left"):
        namespace.put("ModelPool", name, POOL)
    namespace.round()
    namespace.round()
    return namespace


def unremembered(namespace: Any) -> list[str]:
    """Writes what is said, and gives who says it."""
    writes = list(of_unremembered(namespace.objects.values(), "it cannot be read", namespace.now))
    for write in writes:
        namespace.objects[write.key]["status"] = json.loads(json.dumps(write.body["status"]))
    return [write.key.name for write in writes]


def test_nodes_and_what_changed_say_so_once(judged: Any) -> None:
    judged.put("ModelPool", "edited", POOL | {"policy": "RoundRobin"})
    judged.put("ModelPool", "new", POOL)

    assert unremembered(judged) == ["master", "gpu-a", "gpu-b", "edited", "new"]
    assert unremembered(judged) == []
    for kind, name in (("RouterNode", "gpu-a"), ("ModelPool", "edited"), ("ModelPool", "new")):
        accepted = judged.condition(kind, name)
        assert (accepted["status"], accepted["reason"]) == ("Unknown", "NotRemembered")
        assert "it cannot be read" in accepted["message"]


def test_all_else_that_they_say_stays(judged: Any) -> None:
    before = dict(judged.status("RouterNode", "gpu-a"))
    unremembered(judged)
    after = dict(judged.status("RouterNode", "gpu-a"))

    assert after.pop("conditions")[1:] == before.pop("conditions")[1:]
    assert after == before


def test_it_heals_with_the_next_round_and_then_nothing_is_written(judged: Any) -> None:
    before = json.dumps([judged.status("RouterNode", name)["conditions"][1:] for name in ("master", "gpu-a")])
    unremembered(judged)
    judged.round()

    assert judged.condition("RouterNode", "gpu-a")["status"] == "True"
    assert json.dumps([judged.status("RouterNode", name)["conditions"][1:] for name in ("master", "gpu-a")]) == before
    assert judged.round().statuses == ()
