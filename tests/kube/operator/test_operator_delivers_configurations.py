"""Objects in a real API server, the operator beside them: what it says of each, and what each router is given."""

from turnout_api.config import RouterConfig


def test_each_router_gets_its_configuration_and_each_object_its_verdict(objects, start, manifests):
    objects.apply(*manifests.all(), manifests.link("bad", "gpu-a", "nobody"))
    operator = start()

    link = objects.accepted("routinglink", "a-to-b")
    bad = objects.accepted("routinglink", "bad")

    assert (link["status"], link["reason"]) == ("True", "Accepted")
    assert (bad["status"], bad["reason"]) == ("False", "UnknownNode")
    assert "nobody" in bad["message"]
    assert (objects.get("routinglink", "a-to-b")["status"]["weights"]) == "Unknown"
    configs = {name: RouterConfig.model_validate(objects.config(name)) for name in ("master", "gpu-a", "gpu-b")}
    assert configs["master"].cluster.slave_urls == [manifests.urls["gpu-a"], manifests.urls["gpu-b"]]
    assert [model.id for model in configs["gpu-a"].models.local] == ["gpu-a-ff"]
    assert configs["gpu-b"].cluster.master_url == manifests.urls["master"]
    assert [link.name for link in configs["gpu-a"].links] == ["a-to-b"]
    objects.becomes_accepted("routernode", "gpu-a")
    assert objects.get("routernode", "gpu-a")["status"]["configGeneration"] == configs["gpu-a"].generation
    assert operator.stop() == 0


def test_a_secret_goes_with_its_node(objects, start, manifests):
    objects.apply(*manifests.all())
    start()

    owner = objects.secret("turnout-router-gpu-a")["metadata"]["ownerReferences"]

    uid = objects.get("routernode", "gpu-a")["metadata"]["uid"]
    assert [(o["kind"], o["name"], o["uid"]) for o in owner] == [("RouterNode", "gpu-a", uid)]


def test_a_cluster_without_news_is_not_written_to(objects, start, manifests):
    objects.apply(*manifests.all(), manifests.link("bad", "gpu-a", "nobody"))
    operator = start()
    objects.accepted("routinglink", "bad")
    for node in ("master", "gpu-a", "gpu-b"):
        objects.condition(node, "Ready", "Unreachable")  # the last that becomes known: asked twice, with a pause
    before = operator.more_rounds(1)["writes"], objects.versions()

    after = operator.more_rounds(3)["writes"], objects.versions()

    assert after == before
    assert len(before[1]) == 10, "six objects of a person, three Secrets of routers, the state"
