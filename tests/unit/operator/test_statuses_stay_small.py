"""A status stays under 64 KiB whatever routers say: lists are cut, what is ill is kept, and what is missing is counted."""

from typing import Any

import pytest

from turnout_operator.bounded import MAX_STATUS_BYTES, cut, fitting, size_of

NAME = "m" * 195


@pytest.fixture
def crowded(in_cluster: Any, router_pod: Any, saying: Any) -> Any:
    """1,500 models on each of 200 pods of gpu-a, the last model not available, with long names; everything has something to say."""
    pods = [router_pod(f"{'p' * 180}-{at}") for at in range(100, 300)]
    for pod in pods:
        pod["status"]["podIP"] = "10.0.0.1"
    models = {(f"gpu-a.{pods[0]['metadata']['name']}", f"{NAME}{at:04}"): at != 1499 for at in range(1500)}
    nodes = {f"gpu-a.{pod['metadata']['name']}": pod is not pods[-1] for pod in pods}
    (said,) = saying(models=models, nodes=nodes).values()
    in_cluster.round(pods=[*pods, router_pod("m-9", "master")], readings={"http://10.0.0.9:8900": said})
    return in_cluster.status("RouterNode", "gpu-a")


def test_it_stays_under_its_limit(crowded: Any) -> None:
    assert size_of(crowded) < MAX_STATUS_BYTES


def test_it_counts_all_and_says_how_many_are_missing(crowded: Any) -> None:
    # the declared model, which no instance brought, is one of them
    assert crowded["modelsServing"] == "1499/1501"
    assert len(crowded["models"]) + crowded["modelsLeftOut"] == 1501
    assert crowded["serving"] == "199/200"
    assert len(crowded["instances"]) + crowded["instancesLeftOut"] == 200
    assert min(len(crowded["models"]), len(crowded["instances"])) > 20


def test_what_is_ill_is_not_what_is_missing(crowded: Any) -> None:
    assert {model["id"][-4:] for model in crowded["models"] if not model["available"]} == {"1499", "a-ff"}
    assert len([instance for instance in crowded["instances"] if not instance["healthy"]]) == 1


def test_a_list_that_fits_is_whole_and_marks_nothing(namespace: Any, saying: Any) -> None:
    namespace.round(readings=saying(models={("gpu-a", "gpu-a-ff"): True}))

    assert namespace.status("RouterNode", "gpu-a")["modelsLeftOut"] == 0


def test_text_is_cut_between_characters() -> None:
    assert cut("ä" * 10, 11) == "ä" * 4 + "…"
    assert len(cut("ä" * 3000).encode()) <= 4096


def test_nothing_fits_that_is_larger_than_the_whole_share() -> None:
    assert fitting([{"reason": "x" * 30_000}]) == []
