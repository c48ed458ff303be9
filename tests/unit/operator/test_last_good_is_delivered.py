"""What is refused changes nothing that routers are given, and nothing is taken from a router that has something."""

import gzip
import random

import pytest

from turnout_operator import deliver


def test_a_refused_edit_leaves_state_and_secrets(namespace, specs):
    namespace.round()
    namespace.put("RouterNode", "gpu-a", specs.slave("gpu-a", family="Whisper"))

    planned = namespace.round()

    assert (planned.state, planned.secrets) == (None, ())
    assert namespace.condition("RouterNode", "gpu-a")["reason"] == "FamilyNotSupported"
    assert namespace.status("RouterNode", "gpu-a")["observedGeneration"] == 2
    assert namespace.status("RouterNode", "gpu-a")["acceptedGeneration"] == 1


def test_without_a_master_nothing_new_is_delivered_and_nothing_taken_away(namespace):
    namespace.round()
    del namespace.objects["RouterNode", "master"]

    planned = namespace.round()

    assert planned.secrets == ()
    assert namespace.condition("RouterNode", "gpu-a")["reason"] == "MasterNotFound"
    assert set(namespace.observed.secrets) == {"master", "gpu-a", "gpu-b"}


def test_an_object_that_is_being_deleted_is_gone(namespace):
    namespace.round()
    namespace.objects["RouterNode", "gpu-b"]["metadata"]["deletionTimestamp"] = "2026-01-02T00:00:00Z"

    planned = namespace.round()

    names = [status.key.name for status in planned.statuses]
    assert names == ["master", "gpu-b"], "the master's configuration lists one slave less"
    assert {told.node.name for told in planned.nudges} == {"master", "gpu-a"}


def test_one_that_somebody_elses_finalizer_holds_says_so_once(namespace):
    namespace.round()
    held = {"deletionTimestamp": "2026-01-02T00:00:00Z", "finalizers": ["example.com/theirs"]}
    namespace.objects["RouterNode", "gpu-b"]["metadata"] |= held
    namespace.round()

    assert namespace.round().statuses == ()
    [ready] = namespace.status("RouterNode", "gpu-b")["conditions"]
    assert (ready["type"], ready["status"], ready["reason"]) == ("Ready", "False", "BeingDeleted")
    assert "example.com/theirs" in ready["message"]


def test_a_configuration_that_no_secret_holds_is_kept_back_and_said(namespace, specs, monkeypatch):
    namespace.round()
    before = namespace.generation("gpu-a")
    content = deliver.content_of(namespace.round().nudges[1].config)
    limit = len(gzip.compress(content.body.encode())) + 200
    monkeypatch.setattr(deliver, "MAX_CONFIG_BYTES", limit)
    noise = random.Random(1).randbytes(450).hex()  # noqa: S311 - nothing that compresses well
    namespace.put("RouterNode", "gpu-a", specs.slave("gpu-a", backendModel=noise))

    planned = namespace.round()

    assert [s["metadata"]["name"] for s in planned.secrets if s["metadata"]["name"].endswith("gpu-a")] == []
    assert namespace.generation("gpu-a") == before
    condition = namespace.condition("RouterNode", "gpu-a", "Programmed")
    assert (condition["status"], condition["reason"]) == ("False", "TooLarge")
    assert namespace.condition("RouterNode", "gpu-a")["status"] == "True"


@pytest.mark.parametrize("rotating", [False, True])
def test_the_previous_token_is_named_while_it_is_there(namespace, rotating):
    planned = namespace.round(previous_tokens={("token", "token")} if rotating else set())

    cluster = planned.nudges[0].config.cluster
    assert cluster.token_file == "/etc/turnout/token/token"
    assert cluster.token_previous_file == ("/etc/turnout/token/token-previous" if rotating else "")


def test_a_node_that_nobody_can_call_is_not_told(namespace, specs):
    namespace.objects["RouterNode", "master"]["spec"] = specs.master(role="Standalone", tokenSecretRef=None)

    assert namespace.round().nudges == ()
