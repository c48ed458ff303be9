"""From one plan to the next: started, pushed, restarted, stopped, and nothing for what stays the same."""

from collections.abc import Callable
from typing import Any

import pytest

from turnout_cli.local.plan import Changes, ClusterPlan, changes

Cluster = Callable[..., ClusterPlan]


def test_the_same_manifests_change_nothing(cluster: Cluster) -> None:
    assert not changes(cluster(("a", "m")), cluster(("a", "m"), generation=2))


def test_an_added_node_starts_and_its_master_is_told(cluster: Cluster) -> None:
    todo = changes(cluster(("a", "m")), cluster(("a", "m"), ("b", "other-model")))
    assert todo == Changes(start=("b",), push=("master",))


def test_a_removed_node_stops_and_its_master_is_told(cluster: Cluster) -> None:
    todo = changes(cluster(("a", "m"), ("b", "other-model")), cluster(("a", "m")))
    assert (todo.stop, todo.push) == (("b",), ("master",))


def test_another_model_is_pushed_to_its_node_and_nobody_is_restarted(cluster: Cluster) -> None:
    todo = changes(cluster(("a", "m"), ("b", "other-model")), cluster(("a", "other"), ("b", "other-model")))
    assert "a" in todo.push
    assert "b" not in todo.push
    assert todo.restart == todo.start == todo.stop == ()


def test_another_role_restarts_the_router(cluster: Cluster, manifest: Any) -> None:
    alone = manifest().replace("role: Master", "role: Standalone")
    assert changes(cluster(), cluster(text=alone)).restart == ("master",)


@pytest.mark.parametrize("setting", ["maxQueueDepth: 7", "syncInterval: 3s", "healthInterval: 3s", "pollTimeout: 3s"])
def test_a_setting_is_taken_live(cluster: Cluster, manifest: Any, setting: str) -> None:
    before = manifest(("a", "m"))
    after = before.replace("{role: Master}", f"{{role: Master, settings: {{{setting}}}}}")
    todo = changes(cluster(text=before), cluster(text=after))
    assert (set(todo.push), todo.restart) == ({"master", "a"}, ())


@pytest.mark.parametrize(
    ("todo", "text"),
    [
        (Changes(), "nothing changed"),
        (Changes(start=("c",), push=("a", "b"), stop=("d",)), "a, b changed; c started; d stopped"),
    ],
)
def test_changes_read_as_a_sentence(todo: Changes, text: str) -> None:
    assert str(todo) == text
