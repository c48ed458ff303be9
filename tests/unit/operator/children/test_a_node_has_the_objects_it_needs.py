"""A node in the cluster has its Service, a master its Deployment and what goes with it; no other node has any."""

import base64
from typing import Any

import pytest


def applied(planned: Any) -> dict[str, dict[str, Any]]:
    return {f"{child['kind']} {child['metadata']['name']}": dict(child) for child in planned.apply}


MASTERS = [
    "ServiceAccount turnout-router-master",
    "Service master",
    "Deployment turnout-router-master",
    "PodDisruptionBudget turnout-router-master",
]


def test_a_master_and_its_slaves_have_theirs(in_cluster: Any) -> None:
    planned = in_cluster.round()

    assert list(applied(planned)) == ["Service gpu-a", "Service gpu-b", *MASTERS]
    assert planned.delete == ()


def test_nothing_is_planned_twice(in_cluster: Any) -> None:
    in_cluster.round()
    planned = in_cluster.round()

    assert (planned.apply, planned.delete, planned.statuses) == ((), (), ())


def test_routers_elsewhere_need_none(namespace: Any) -> None:
    assert namespace.round().apply == ()


def test_the_service_of_a_slave_names_its_pods_ready_or_not(in_cluster: Any) -> None:
    spec = applied(in_cluster.round())["Service gpu-a"]["spec"]

    assert (spec["clusterIP"], spec["publishNotReadyAddresses"]) == ("None", True)
    assert spec["selector"] == {"turnout.dev/node": "gpu-a"}


def test_the_master_is_told_of_pods_by_name_and_slaves_of_the_masters_service(in_cluster: Any) -> None:
    told = {told.node.name: told.config for told in in_cluster.round(reached={}).nudges}
    assert told == {}  # there are no pods yet
    secrets = in_cluster.observed.secrets
    assert "dns+http://gpu-a.test.svc:8900" in _text(secrets["master"])
    assert "master_url: http://master.test.svc:8900" in _text(secrets["gpu-a"])


def _text(secret: Any) -> str:
    return base64.b64decode(secret["data"]["router.yaml"]).decode()


def test_all_belong_to_their_node(in_cluster: Any) -> None:
    for name, child in applied(in_cluster.round()).items():
        node = "gpu-a" if "gpu-a" in name else "gpu-b" if "gpu-b" in name else "master"
        [owner] = child["metadata"]["ownerReferences"]
        uid = in_cluster.objects["RouterNode", node]["metadata"]["uid"]
        assert (owner["kind"], owner["name"], owner["uid"], owner["controller"]) == ("RouterNode", node, uid, True)


def test_the_master_rolls_for_what_it_cannot_change_while_it_runs_and_for_nothing_else(in_cluster: Any) -> None:
    def template() -> Any:
        return applied(in_cluster.round())["Deployment turnout-router-master"]["spec"]["template"]

    first = template()
    in_cluster.put_node("master", settings={"maxQueueDepth": 7})
    assert applied(in_cluster.round()) == {}
    in_cluster.put_node("master", role="Standalone")
    assert template()["metadata"]["annotations"] != first["metadata"]["annotations"]


def test_without_a_claim_the_new_router_is_ready_before_the_old_one_ends(in_cluster: Any) -> None:
    in_cluster.put_node("master", storeDir="/var/lib/turnout")
    spec = applied(in_cluster.round())["Deployment turnout-router-master"]["spec"]

    assert spec["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}
    assert {"name": "turnout-store", "emptyDir": {}} in spec["template"]["spec"]["volumes"]


def test_a_claim_that_is_asked_for_holds_the_store_of_one_router_at_a_time(in_cluster: Any) -> None:
    in_cluster.put_node("master", storeDir="/var/lib/turnout")
    in_cluster.objects["RouterNode", "master"]["metadata"]["annotations"] = {
        "turnout.dev/store-size": "2Gi",
        "turnout.dev/store-class": "fast",
    }
    found = applied(in_cluster.round())

    claim = found["PersistentVolumeClaim turnout-router-master"]["spec"]
    assert (claim["resources"]["requests"]["storage"], claim["storageClassName"]) == ("2Gi", "fast")
    spec = found["Deployment turnout-router-master"]["spec"]
    assert spec["strategy"] == {"type": "Recreate"}
    volumes = {volume["name"]: volume for volume in spec["template"]["spec"]["volumes"]}
    assert volumes["turnout-store"]["persistentVolumeClaim"] == {"claimName": "turnout-router-master"}


def test_a_claim_that_is_asked_for_without_a_folder_gets_one(in_cluster: Any) -> None:
    in_cluster.round()
    in_cluster.objects["RouterNode", "master"]["metadata"]["annotations"] = {"turnout.dev/store-size": "2Gi"}
    planned = in_cluster.round()
    found = applied(planned)

    assert "PersistentVolumeClaim turnout-router-master" in found
    pod = found["Deployment turnout-router-master"]["spec"]["template"]["spec"]
    assert {"name": "turnout-store", "mountPath": "/var/lib/turnout"} in pod["containers"][0]["volumeMounts"]
    delivered = next(secret for secret in planned.secrets if secret["metadata"]["name"] == "turnout-router-master")
    assert "store_dir: /var/lib/turnout" in _text(delivered)
    assert in_cluster.round().apply == ()


def test_a_node_that_moves_out_of_the_cluster_leaves_no_objects(in_cluster: Any) -> None:
    in_cluster.round()
    in_cluster.put_node("gpu-a", publicURL="http://gpu-a:8900")

    assert [str(key) for key in in_cluster.round().delete] == ["Service gpu-a"]


def test_a_claim_is_never_deleted(in_cluster: Any) -> None:
    in_cluster.put_node("master", storeDir="/var/lib/turnout")
    in_cluster.objects["RouterNode", "master"]["metadata"]["annotations"] = {"turnout.dev/store-size": "2Gi"}
    in_cluster.round()
    in_cluster.put_node("master", publicURL="http://master:8900")

    assert {str(key) for key in in_cluster.round().delete} == set(MASTERS)


def test_a_service_without_an_address_makes_room_for_one_that_has_one(in_cluster: Any) -> None:
    in_cluster.round()
    del in_cluster.objects["RouterNode", "master"]
    in_cluster.put_node("gpu-a", role="Standalone")
    del in_cluster.objects["RouterNode", "gpu-a"]["spec"]["masterRef"]

    planned = in_cluster.round()

    assert [str(key) for key in planned.delete] == ["Service gpu-a"]
    assert applied(planned)["Service gpu-a"]["spec"]["type"] == "ClusterIP"


def test_what_a_person_changed_by_hand_is_mended(in_cluster: Any) -> None:
    in_cluster.round()
    for child in in_cluster.observed.children.values():
        if child["kind"] == "Deployment":
            child["spec"]["replicas"] = 5

    assert list(applied(in_cluster.round())) == ["Deployment turnout-router-master"]


def test_a_node_that_somebody_elses_finalizer_holds_has_none_any_more(in_cluster: Any) -> None:
    in_cluster.put_node("master", storeDir="/var/lib/turnout")
    in_cluster.objects["RouterNode", "master"]["metadata"]["annotations"] = {"turnout.dev/store-size": "2Gi"}
    in_cluster.round()
    in_cluster.objects["RouterNode", "master"]["metadata"]["deletionTimestamp"] = "2026-01-02T00:00:00Z"

    assert {str(key) for key in in_cluster.round().delete} == set(MASTERS), "all but the claim"
    assert in_cluster.round().delete == ()


def test_labels_that_a_person_took_off_come_back(in_cluster: Any) -> None:
    in_cluster.round()
    for child in in_cluster.observed.children.values():
        if child["kind"] == "Service":
            del child["metadata"]["labels"]

    planned = in_cluster.round()

    assert list(applied(planned)) == ["Service gpu-a", "Service gpu-b", "Service master"]


@pytest.mark.parametrize("kind", ["Deployment", "ServiceAccount", "PersistentVolumeClaim"])
def test_what_somebody_else_has_named_so_is_left_alone(in_cluster: Any, kind: str) -> None:
    in_cluster.put_node("master", storeDir="/var/lib/turnout")
    in_cluster.objects["RouterNode", "master"]["metadata"]["annotations"] = {"turnout.dev/store-size": "2Gi"}
    theirs = {"kind": kind, "metadata": {"name": "turnout-router-master"}}

    planned = in_cluster.round(children={(kind, "turnout-router-master"): theirs})

    assert f"{kind} turnout-router-master" not in applied(planned)
    assert in_cluster.condition("RouterNode", "master", "Programmed")["reason"] == "NameTaken"


@pytest.mark.parametrize("amounts", [{"limits": {"memory": "1024Mi"}}, {}])
def test_amounts_that_the_api_server_spells_anew_are_no_change(in_cluster: Any, amounts: Any) -> None:
    in_cluster.round()
    for child in in_cluster.observed.children.values():
        if child["kind"] == "Deployment":
            child["spec"]["template"]["spec"]["containers"][0]["resources"] = amounts

    assert applied(in_cluster.round()) == {}
