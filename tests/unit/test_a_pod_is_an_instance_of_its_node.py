"""All pods of a node have one configuration; each makes its own node ID and URL of it."""

from typing import Any

from turnout_api.config import RouterConfig
from turnout_api.instances import POD_ADDRESS_VARIABLE, POD_NAME_VARIABLE
from turnout_router.instance import Instance


def config(**cluster: Any) -> RouterConfig:
    return RouterConfig.model_validate({"cluster": {"node_id": "gpu-a", "sync_interval": "7s"} | cluster})


def pod(address: str = "10.0.0.7") -> Instance:
    return Instance.of({POD_NAME_VARIABLE: "gpu-a-6f", POD_ADDRESS_VARIABLE: address})


def test_a_pod_has_a_node_id_and_an_address_of_its_own() -> None:
    placed = pod().place(config()).cluster

    assert (placed.node, placed.node_id, placed.public_url) == ("gpu-a", "gpu-a.gpu-a-6f", "http://10.0.0.7:8900")
    assert placed.sync_interval == 7


def test_an_address_of_six_parts_is_bracketed() -> None:
    assert pod("fd00::7").place(config()).cluster.public_url == "http://[fd00::7]:8900"


def test_a_url_that_is_given_stays() -> None:
    assert pod().place(config(public_url="http://a:1")).cluster.public_url == "http://a:1"


def test_placing_twice_is_placing_once() -> None:
    assert pod().place(pod().place(config())) == pod().place(config())


def test_outside_pods_the_configuration_says_everything() -> None:
    assert Instance.of({}).place(config()) == config()
