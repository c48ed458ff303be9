"""A pod that cannot have a sidecar is refused, and the message says what to change."""

from typing import Any

import pytest

from turnout_operator.injection import InjectionRefused


def refusal(injecting: Any, template: dict[str, Any]) -> str:
    with pytest.raises(InjectionRefused) as refused:
        injecting(template)
    return str(refused.value)


def test_an_unknown_node_gets_the_nearest_names(injecting: Any, pod: Any) -> None:
    assert "did you mean gpu-b, gpu-a?" in refusal(injecting(), pod.labelled("gpu-c"))


def test_without_any_node_of_a_like_name_it_says_what_to_do(injecting: Any, pod: Any) -> None:
    said = refusal(injecting(), pod.labelled("zzz"))

    assert "no RouterNode of that name. Apply the RouterNode before its pods" in said


def test_a_master_has_pods_of_its_own(injecting: Any, pod: Any) -> None:
    assert "names master, which is a Master: its router runs in a Deployment" in refusal(
        injecting(), pod.labelled("master")
    )


def test_a_node_that_is_not_accepted_says_why(injecting: Any, pod: Any) -> None:
    said = refusal(injecting(masterRef={"name": "mastre"}), pod())

    assert "RouterNode gpu-a, which is not accepted: MasterNotFound" in said


def test_a_router_outside_the_cluster_stands_beside_no_pod(injecting: Any, pod: Any) -> None:
    assert "whose router runs at http://a:8900" in refusal(injecting(publicURL="http://a:8900"), pod())


@pytest.mark.parametrize("label", [{}, {"turnout.dev/node": ""}])
def test_a_pod_without_the_label_is_no_nodes_pod(injecting: Any, pod: Any, label: dict[str, str]) -> None:
    assert "is missing or empty" in refusal(injecting(), pod() | {"metadata": {"labels": label}})


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"containers": []}, "no containers"),
        ({"containers": [{"name": "turnout-router"}]}, "a container turnout-router already"),
        ({"initContainers": [{"name": "turnout-router"}]}, "no sidecar of Turnout's"),
        ({"containers": [{"name": "x", "ports": [{"containerPort": 8900}]}]}, "container x listens on port 8900"),
        ({"volumes": [{"name": "turnout-token", "emptyDir": {}}]}, "volumes turnout-token"),
    ],
)
def test_what_leaves_the_router_no_room_is_named(injecting: Any, pod: Any, spec: dict[str, Any], said: str) -> None:
    assert said in refusal(injecting(), pod(**spec))


def test_a_sidecar_that_was_made_for_another_node_is_not_taken_over(injecting: Any, pod: Any) -> None:
    done = injecting()(pod()).template
    done["metadata"]["labels"]["turnout.dev/node"] = "gpu-b"

    assert "its sidecar was made for gpu-a" in refusal(injecting(), done)
