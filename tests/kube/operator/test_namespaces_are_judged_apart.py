"""One release for every namespace, with webhooks: what is written is judged beside the objects of its own namespace, whose names another has too."""

import pytest

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def account(objects, release, tmp_path):
    """Of a release with `clusterWide`, which goes whatever happens: until then it must be asked about all namespaces."""
    release.install(objects.namespace, "clusterWide=true", "webhook.validation.failurePolicy=Fail")
    yield release.account(objects.namespace, tmp_path)
    release.uninstall(objects.namespace)


@pytest.fixture
def everywhere(objects, account, start, until):
    """The operator as the chart runs it, with its account and no other right, once its webhooks are in force."""
    [container] = objects.get("deployment", "turnout")["spec"]["template"]["spec"]["containers"]
    address = objects.get("service", "turnout")["spec"]["clusterIP"]
    here = ("--health-host=127.0.0.1", "--health-port=0", f"--webhook-host={address}", "--webhook-port=443")
    operator = start(*container["args"], *here, "--resync-interval=1s", kubeconfig=account)
    pod = {"metadata": {"name": "probe", "labels": {"turnout.dev/node": "nobody"}}}
    pod["spec"] = {"containers": [{"name": "c", "image": "c:1"}]}
    path = f"/api/v1/namespaces/{objects.namespace}/pods?dryRun=All"
    until(lambda: "names 'nobody'" in objects.cluster.request("POST", path, pod)[1].get("message", ""), "not asked")
    return operator


@pytest.fixture
def other(objects):
    """A second namespace."""
    name = f"{objects.namespace}-other"
    objects.cluster.kubectl("create", "namespace", name)
    yield type(objects)(objects.cluster, name)
    objects.cluster.kubectl("delete", "namespace", name, "--wait=false")


def verdict(objects, manifest) -> str:
    """Empty = admitted, and nothing is said of it."""
    done = objects.write(manifest, dry_run=True)
    return done.stderr if done.returncode or "Warning" in done.stderr else ""


@pytest.mark.usefixtures("everywhere")
def test_the_same_names_mean_other_objects(objects, other, manifests, until):
    token, master, gpu_a, gpu_b, link = manifests.in_cluster()
    jumps, plain = manifests.ruled("front", jump="policy"), manifests.ruled("front")
    back = manifests.ruled("policy", jump="front")
    objects.apply(token, master, gpu_a, gpu_b, manifests.ruled("policy"), jumps)
    other.apply(token, master, gpu_a, manifests.ruled("policy"), plain)
    for each in (objects, other):
        each.becomes_accepted("routernode", "master")
        each.becomes_accepted("frontendmodel", "front")

    assert "(JumpLoop)" in verdict(objects, back)
    assert verdict(other, back) == ""
    assert "(UnknownNode)" not in verdict(objects, link)
    assert "no RouterNode is called gpu-b" in verdict(other, link)
    assert verdict(objects, manifests.pod("llama", "gpu-b")) == ""
    assert "names 'gpu-b', and the namespace has no RouterNode" in verdict(other, manifests.pod("llama", "gpu-b"))
    second = master | {"metadata": {"name": "second"}}
    assert "(MasterExists)" in verdict(other, second)

    other.delete("routernode", "master")
    until(lambda: verdict(other, second) == "", "the other namespace's master is in the way")
    assert "(MasterExists)" in verdict(objects, second)


def test_its_rights_suffice(everywhere, objects, other, manifests, until):
    """For all that it does: people's changes, routers in the cluster, their claims, webhooks, Events."""
    for each in (objects, other):
        master, *rest = [manifest for manifest in manifests.in_cluster() if manifest["kind"] != "Secret"]
        master["spec"] |= {"admins": {"secretRef": {"name": "people"}}, "storeDir": "/var/lib/turnout"}
        master["metadata"]["annotations"] = {"turnout.dev/store-size": "1Gi"}
        each.apply(manifests.token, master, *rest)
        each.apply(manifests.pool("early", "nobody"))

    for each in (objects, other):
        each.becomes_accepted("routinglink", "a-to-b")
        until(lambda each=each: each.get("rolebinding", "turnout-router-master"), "no right for people's changes")
        until(lambda each=each: each.get("persistentvolumeclaim", "turnout-router-master"), "no store")
        until(lambda each=each: each.get("deployment", "turnout-router-master"), "no router")
        assert each.get("rolebinding", "turnout-router-master")["roleRef"]["kind"] == "ClusterRole"
    everywhere.more_rounds(2)
    found = everywhere.health()["namespaces"]
    assert {each.namespace: found[each.namespace]["trouble"] for each in (objects, other)} == {
        objects.namespace: "",
        other.namespace: "",
    }
    assert "may not" not in everywhere.log()  # a 403 may be of another test's namespace, which is on its way out
