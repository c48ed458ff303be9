"""Deployments, Services and what else routers in the cluster need: there, as wanted, and gone with their node."""

import json

MASTER = {
    "deployment/turnout-router-master",
    "poddisruptionbudget/turnout-router-master",
    "service/master",
    "serviceaccount/turnout-router-master",
}
SLAVES = {"service/gpu-a", "service/gpu-b"}
FAILED = 'turnout_operator_rounds_total{{namespace="{}",outcome="failed"}}'


def stored(manifests, size: str) -> list[dict]:
    """With a claim for the master's store."""
    found = manifests.in_cluster()
    master = next(m for m in found if m["metadata"]["name"] == "master")
    master["spec"]["storeDir"] = "/var/lib/turnout"
    master["metadata"]["annotations"] = {"turnout.dev/store-size": size}
    return found


def there(objects, *names: str) -> set[str]:
    return {name for name in names if objects.get(*name.split("/"))}


def test_nodes_get_their_objects_which_nothing_writes_again(objects, start, manifests, until):
    operator = start()
    objects.apply(*manifests.in_cluster())

    until(lambda: there(objects, *MASTER, *SLAVES) == MASTER | SLAVES, "the objects did not come")
    until(lambda: objects.get("deployment", "turnout-router-master").get("status"), "nobody acts on the Deployment")
    objects.condition("master", "Ready", "PodsNotReady")  # no machine runs its pod here
    writes = operator.more_rounds(2)["writes"]
    before = objects.versions()

    assert operator.more_rounds(3)["writes"] == writes
    assert objects.versions() == before
    assert "dns+http://gpu-a" in objects.config("master")["cluster"]["slave_urls"][0]


def test_the_masters_pod_is_admitted_under_the_restricted_standard(objects, start, manifests, until):
    objects.cluster.kubectl("label", "namespace", objects.namespace, "pod-security.kubernetes.io/enforce=restricted")
    start(resync=start.NEVER)
    objects.apply(*manifests.in_cluster())

    pods = ("get", "pods", "-n", objects.namespace, "-l", "turnout.dev/router=master", "-o", "name")
    assert until(lambda: objects.cluster.kubectl(*pods).stdout, "the Deployment made no pod")


def test_objects_go_with_their_node(objects, start, manifests, until):
    start(resync=start.NEVER)
    objects.apply(*manifests.in_cluster())
    until(lambda: there(objects, *MASTER, *SLAVES) == MASTER | SLAVES, "the objects did not come")

    objects.delete("routernode", "master")
    objects.delete("routernode", "gpu-a")

    until(lambda: there(objects, *MASTER, *SLAVES) == {"service/gpu-b"}, "the objects did not go")


def test_a_node_that_moves_out_of_the_cluster_and_back(objects, start, manifests, until):
    start(resync=start.NEVER)
    objects.apply(*manifests.in_cluster())
    until(lambda: there(objects, *MASTER) == MASTER, "the objects did not come")

    objects.apply(manifests.master())
    until(lambda: not there(objects, *MASTER), "the objects of a router elsewhere stayed")
    objects.apply(*manifests.in_cluster())

    until(lambda: there(objects, *MASTER) == MASTER, "the objects did not come back")


def test_a_role_that_changes_changes_the_service(objects, start, manifests, until):
    start(resync=start.NEVER)
    objects.apply(*manifests.in_cluster())
    until(lambda: there(objects, *SLAVES) == SLAVES, "the objects did not come")

    objects.delete("routernode", "master")
    alone = manifests.node("gpu-a", role="Standalone", clients={"secretRef": {"name": "clients"}})
    for name in ("publicURL", "masterRef"):
        del alone["spec"][name]
    objects.apply(alone)

    def address():
        return (objects.get("service", "gpu-a") or {"spec": {}})["spec"].get("clusterIP")

    until(lambda: address() not in {None, "None"}, "the Service has no address")


def test_what_is_changed_by_hand_is_mended(objects, start, manifests, until):
    start()
    objects.apply(*manifests.in_cluster())
    until(lambda: there(objects, *MASTER) == MASTER, "the objects did not come")

    scale = ("scale", "deployment", "turnout-router-master", "--replicas=3", "-n", objects.namespace)
    objects.cluster.kubectl(*scale)

    def replicas() -> int:
        return objects.get("deployment", "turnout-router-master")["spec"]["replicas"]

    until(lambda: replicas() == 1, "the Deployment was not mended")


def test_a_selector_is_mended_and_a_port_that_somebody_adds_stays(objects, start, manifests, until):
    operator = start()
    objects.apply(*manifests.in_cluster())
    until(lambda: there(objects, *MASTER) == MASTER, "the objects did not come")
    port = {"op": "add", "path": "/spec/ports/-", "value": {"name": "web", "port": 80, "targetPort": 8900}}
    selects = {"op": "add", "path": "/spec/selector/theirs", "value": "yes"}
    patch = ("patch", "service", "master", "-n", objects.namespace, "--type=json", "-p", json.dumps([port, selects]))
    objects.cluster.kubectl(*patch)

    def service() -> dict:
        return objects.get("service", "master")["spec"]

    until(lambda: service()["selector"] == {"turnout.dev/router": "master"}, "the selector was not mended")
    assert [port["port"] for port in service()["ports"]] == [8900, 80]
    until(lambda: operator.facts()["writes"] == operator.more_rounds(2)["writes"], "it is written in every round")


def test_a_service_of_somebody_else_is_left_alone(objects, start, manifests):
    port = {"name": "theirs", "port": 80}
    spec = {"selector": {"app": "theirs"}, "ports": [port]}
    objects.apply({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "gpu-a"}, "spec": spec})
    start(resync=start.NEVER)
    objects.apply(*manifests.in_cluster())

    assert "Service gpu-a" in objects.condition("gpu-a", "Programmed", "NameTaken")["message"]
    kept = objects.get("service", "gpu-a")["spec"]
    assert (kept["selector"], [port["port"] for port in kept["ports"]]) == ({"app": "theirs"}, [80])


def test_a_pod_without_its_sidecar_is_named_until_it_is_gone(objects, start, manifests):
    start(resync=start.NEVER)
    objects.apply(*manifests.in_cluster())
    objects.condition("gpu-a", "Programmed", "NoPods")

    objects.apply(manifests.pod("llama-0", "gpu-a"))
    assert "llama-0" in objects.condition("gpu-a", "Programmed", "InjectionMissing")["message"]
    objects.cluster.kubectl("delete", "pod", "llama-0", "-n", objects.namespace, "--now")

    objects.condition("gpu-a", "Programmed", "NoPods")


def test_what_the_api_server_does_not_take_holds_nothing_else_up(objects, start, manifests, until):
    operator = start(resync=start.NEVER)
    objects.apply(*stored(manifests, "lots"))
    assert "PersistentVolumeClaim" in objects.condition("master", "Programmed", "Refused")["message"]
    until(lambda: operator.metric(FAILED.format(objects.namespace)) >= 3, "it was not tried again")

    objects.apply(manifests.frontend("assistant", "cc11"))
    objects.accepted("frontendmodel", "assistant")
    assert operator.ask("/readyz")
    objects.apply(*stored(manifests, "1Gi"))

    until(lambda: objects.get("pvc", "turnout-router-master"), "the claim did not come")
    objects.condition("master", "Programmed", "NoPods")


def test_claims_secrets_and_accounts_of_somebody_else_are_left_alone(objects, start, manifests):
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}}
    theirs = {
        "PersistentVolumeClaim": {"spec": claim},
        "Secret": {"type": "kubernetes.io/basic-auth", "stringData": {"username": "somebody", "password": "else"}},
        "ServiceAccount": {},
    }
    named = {"name": "turnout-router-master"}
    objects.apply(*({"apiVersion": "v1", "kind": kind, "metadata": named} | rest for kind, rest in theirs.items()))
    before = {kind: objects.get(kind, named["name"]) for kind in theirs}
    operator = start()
    objects.apply(*stored(manifests, "2Gi"))

    message = objects.condition("master", "Programmed", "NameTaken")["message"]

    operator.more_rounds(1)
    for kind in theirs:
        assert f"{kind} turnout-router-master" in message
        now = objects.get(kind, named["name"])
        assert now["metadata"].get("ownerReferences") is None
        assert (now.get("data"), now.get("spec")) == (before[kind].get("data"), before[kind].get("spec"))


def test_a_condition_of_somebody_else_stands_beside_the_operators(objects, start, manifests):
    operator = start()
    objects.apply(*manifests.in_cluster())
    objects.condition("gpu-a", "Ready", "NoPods")
    conditions = objects.get("routernode", "gpu-a")["status"]["conditions"]
    theirs = {"type": "Backed", "status": "True", "reason": "Up", "message": ""}
    theirs["lastTransitionTime"] = conditions[0]["lastTransitionTime"]
    patch = json.dumps({"status": {"conditions": [*conditions, theirs]}})
    how = ("patch", "routernode", "gpu-a", "-n", objects.namespace, "--subresource=status", "--type=merge", "-p", patch)
    objects.cluster.kubectl(*how)

    writes = operator.more_rounds(2)["writes"]

    assert operator.more_rounds(2)["writes"] == writes
    assert objects.condition("gpu-a", "Backed", "Up")
