"""Pods of a node end under load: by a rolling update, by a deletion. 5 requests a second and a stream that had just begun all end well.

Behind it stands what the sidecar does: a pod that is told to end takes nothing new, and its model server ends after what runs.
"""

import pytest

STREAM_TOKENS = 750
"""At 50 a second: 15 s."""


@pytest.fixture(scope="module")
def fleet(shop):
    """Two pods of one node with four slots each, made from gpu-b and its Deployment."""
    model = {"id": "fleet", "parallel": 4}
    shop.apply(*shop.copy("gpu-b", "fleet", model, replicas=2, flags={"--concurrency": "4"}))
    shop.rolled_out("fleet")
    shop.until_served("fleet")
    yield shop
    shop.remove("fleet")


def test_a_rolling_update_does_not(fleet, ended_quietly):
    before = fleet.pods("app=fleet")
    ended_quietly("app=fleet", "turnout-router")
    load = fleet.load("fleet", STREAM_TOKENS)

    fleet.kubectl("rollout", "restart", "deployment/fleet")
    fleet.rolled_out("fleet")
    fleet.gone(before)

    assert not set(before) & set(fleet.pods("app=fleet"))
    ended_well(load.stop())


def test_a_deleted_pod_does_not(fleet, ended_quietly):
    ended_quietly("app=fleet", "turnout-router")
    load = fleet.load("fleet", STREAM_TOKENS)
    serving = fleet.pods("app=fleet")

    fleet.kubectl("delete", "pod", *serving[:1], "--wait=false")
    fleet.gone(serving[:1])
    fleet.rolled_out("fleet")
    fleet.kubectl("delete", "pod", *serving[1:], "--wait=false")
    fleet.gone(serving[1:])

    ended_well(load.stop())


def ended_well(counts) -> None:
    assert (counts["errors"], counts["stream"]) == ([], "")
    assert counts["asked"] > 50
