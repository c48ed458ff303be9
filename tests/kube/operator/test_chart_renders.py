"""What helm makes of the chart, and which values it refuses."""

import subprocess

import pytest
import yaml

from turnout_api.resources import KINDS

CRD = "CustomResourceDefinition"


@pytest.fixture(scope="module")
def helm(cluster, pytestconfig, tmp_path_factory):
    """Runs helm on the chart: its answer, or what it complains about."""
    home = tmp_path_factory.mktemp("helm")
    environment = cluster.environment | {f"HELM_{name}_HOME": str(home / name) for name in ("CACHE", "CONFIG", "DATA")}

    def run(*arguments: str, check: bool = True) -> str:
        command = ["helm", *arguments, str(pytestconfig.rootpath / "helm" / "turnout")]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        assert (done.returncode == 0) == check, done.stderr + done.stdout
        return done.stdout if check else done.stderr

    return run


def objects(rendered: str) -> dict[tuple[str, str], dict]:
    found = [manifest for manifest in yaml.safe_load_all(rendered) if manifest]
    return {(m["kind"], m["metadata"].get("namespace", "") + "/" + m["metadata"]["name"]): m for m in found}


def test_the_chart_has_no_lint(helm):
    helm("lint", "--strict")


def test_without_its_webhook_it_brings_the_kinds_and_rights_in_its_own_namespace_only(helm):
    found = objects(helm("template", "turnout", "--namespace", "gpus", "--set", "webhook.enabled=false"))

    assert sum(kind == CRD for kind, _ in found) == len(KINDS)
    assert {key for key in found if key[0] != CRD} == {
        ("ServiceAccount", "gpus/turnout"),
        ("Role", "gpus/turnout"),
        ("Role", "gpus/turnout-admin"),
        ("RoleBinding", "gpus/turnout"),
        ("Role", "gpus/turnout-leader"),
        ("RoleBinding", "gpus/turnout-leader"),
        ("Deployment", "gpus/turnout"),
        ("Service", "gpus/turnout-health"),
        ("Pod", "gpus/turnout-test"),
    }
    args = found["Deployment", "gpus/turnout"]["spec"]["template"]["spec"]["containers"][0]["args"]
    assert args[-1] == "--namespace=gpus"


def test_its_webhook_asks_about_labelled_pods_of_watched_namespaces_only(helm):
    found = objects(helm("template", "t", "--namespace", "system", "--set", "watchNamespaces={a,b}"))

    [hook] = found["MutatingWebhookConfiguration", "/t-turnout-system"]["webhooks"]
    assert hook["namespaceSelector"]["matchExpressions"][0]["values"] == ["a", "b"]
    keys = {term["key"]: term["operator"] for term in hook["objectSelector"]["matchExpressions"]}
    assert keys["turnout.dev/node"] == "Exists"
    assert keys["turnout.dev/router"] == "DoesNotExist"
    [rule] = found["ClusterRole", "/t-turnout-system"]["rules"]
    assert (rule["resourceNames"], rule["verbs"]) == (["t-turnout-system"], ["get", "patch"])


def test_the_role_for_what_people_change_is_for_the_values_to_leave_out(helm):
    found = objects(helm("template", "turnout", "--namespace", "gpus", "--set", "router.adminWrites=false"))

    assert ("Role", "gpus/turnout-admin") not in found
    groups = [group for rule in found["Role", "gpus/turnout"]["rules"] for group in rule["apiGroups"]]
    assert "rbac.authorization.k8s.io" not in groups


def test_what_happens_without_the_operator_is_for_the_values_to_say(helm):
    def policies(*values):
        found = objects(helm("template", "t", *values))
        kinds = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
        return {h["name"]: h["failurePolicy"] for kind in kinds for h in found[kind, "/t-turnout-default"]["webhooks"]}

    names = ("inject.turnout.dev", "validate.turnout.dev", "deletions.turnout.dev")
    assert policies() == dict(zip(names, ("Fail", "Ignore", "Ignore"), strict=True))
    other = ("--set", "webhook.failurePolicy=Ignore,webhook.validation.failurePolicy=Fail")
    assert policies(*other) == dict(zip(names, ("Ignore", "Fail", "Ignore"), strict=True))


def test_its_validating_webhook_asks_about_its_own_kinds_in_watched_namespaces_only(helm):
    found = objects(helm("template", "t", "--namespace", "system", "--set", "watchNamespaces={a,b}"))

    for hook in found["ValidatingWebhookConfiguration", "/t-turnout-system"]["webhooks"]:
        assert hook["namespaceSelector"]["matchExpressions"][0]["values"] == ["a", "b"]
        [rule] = hook["rules"]
        assert rule["apiGroups"] == ["turnout.dev"]
        assert set(rule["resources"]) == {kind.plural for kind in KINDS.values()}


def test_its_validating_webhook_can_be_left_out(helm):
    found = objects(helm("template", "t", "--set", "webhook.validation.enabled=false"))

    assert not any(kind == "ValidatingWebhookConfiguration" for kind, _ in found)
    [rule] = found["ClusterRole", "/t-turnout-default"]["rules"]
    assert rule["resources"] == ["mutatingwebhookconfigurations"]


def test_with_cert_manager_the_operator_needs_no_rights_over_webhooks(helm):
    found = objects(helm("template", "t", "--namespace", "system", "--set", "webhook.certManager.enabled=true"))

    assert not any(kind in {"ClusterRole", "ClusterRoleBinding"} for kind, _ in found)
    certificate = found["Certificate", "system/t-turnout-webhook"]["spec"]
    assert certificate["dnsNames"] == ["t-turnout.system.svc"]
    assert certificate["issuerRef"] == {"name": "t-turnout-webhook", "kind": "Issuer"}
    for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"):
        annotations = found[kind, "/t-turnout-system"]["metadata"]["annotations"]
        assert annotations["cert-manager.io/inject-ca-from"] == "system/t-turnout-webhook"
    pod = found["Deployment", "system/t-turnout"]["spec"]["template"]["spec"]
    [volume], [mount] = pod["volumes"], pod["containers"][0]["volumeMounts"]
    assert volume["secret"]["secretName"] == certificate["secretName"]
    assert f"--webhook-certificates={mount['mountPath']}" in pod["containers"][0]["args"]


def test_an_issuer_that_is_there_is_asked_for_certificates(helm):
    issuer = "webhook.certManager.issuerRef.name=ours,webhook.certManager.issuerRef.kind=ClusterIssuer"
    found = objects(helm("template", "t", "--set", f"webhook.certManager.enabled=true,{issuer}"))

    assert found["Certificate", "default/t-turnout-webhook"]["spec"]["issuerRef"] == {
        "name": "ours",
        "kind": "ClusterIssuer",
    }
    assert not any(kind == "Issuer" for kind, _ in found)


def test_each_watched_namespace_gets_a_role_for_the_one_service_account(helm):
    found = objects(helm("template", "t", "--namespace", "system", "--set", "watchNamespaces={a,b}"))

    roles = [name for kind, name in found if kind == "Role" and not name.endswith("-admin")]
    assert sorted(roles) == [
        "a/t-turnout",
        "b/t-turnout",
        "system/t-turnout-leader",
        "system/t-turnout-webhook",
    ]
    for namespace in ("a", "b"):
        subjects = found["RoleBinding", f"{namespace}/t-turnout"]["subjects"]
        assert subjects == [{"kind": "ServiceAccount", "name": "t-turnout", "namespace": "system"}]


@pytest.mark.parametrize(("keep", "policy"), [("true", "keep"), ("false", None)])
def test_definitions_are_kept_when_they_shall_be(helm, keep, policy):
    found = objects(helm("template", "t", "--set", f"crds.keep={keep}"))

    policies = {
        manifest["metadata"].get("annotations", {}).get("helm.sh/resource-policy")
        for (kind, _), manifest in found.items()
        if kind == CRD
    }
    assert policies == {policy}


def test_definitions_can_be_left_out(helm):
    assert CRD not in helm("template", "t", "--set", "crds.enabled=false")


def test_the_operator_is_told_how_to_run_routers(helm):
    values = (
        "router.image.repository=r/router,router.image.tag=v7,router.drainTimeout=90s,router.imagePullSecrets[0].name=s"
    )
    found = objects(helm("template", "t", "--set", values))

    args = found["Deployment", "default/t-turnout"]["spec"]["template"]["spec"]["containers"][0]["args"]
    assert {"--router-image=r/router:v7", "--drain-timeout=90s", "--router-pull-secret=s"} <= set(args)
    resources = next(arg for arg in args if arg.startswith("--router-resources="))
    assert yaml.safe_load(resources.partition("=")[2])["limits"] == {"memory": "1Gi"}


def test_labels_of_pods_do_not_take_the_selectors_place(helm):
    found = objects(helm("template", "t", "--set", "podLabels.app\\.kubernetes\\.io/name=x,podLabels.team=a"))

    template = found["Deployment", "default/t-turnout"]["spec"]["template"]
    assert template["metadata"]["labels"]["app.kubernetes.io/name"] == "turnout"
    assert template["metadata"]["labels"]["team"] == "a"


@pytest.mark.parametrize(
    ("value", "named"),
    [
        ("image.repositry=x", "repositry"),
        ("image.repository=", "repository"),
        ("image.digest=sha256:12", "digest"),
        ("replica=2", "replica"),
        ("replicas=0", "replicas"),
        ("commonLabels.app\\.kubernetes\\.io/name=x", "app.kubernetes.io/name"),
        ("networkPolicy.routerPorts={http}", "routerPorts"),
        ("monitoring.podMonitor.interval=often", "interval"),
        ("router.drainTimeout=soon", "drainTimeout"),
        ("webhook.failurePolicy=Maybe", "failurePolicy"),
        ("webhook.validation.failurePolicy=Maybe", "failurePolicy"),
        ("webhook.certManager.issuer=x", "issuer"),
        ("watchNamespaces={Upper}", "watchNamespaces"),
        ("resyncInterval=0s", "resyncInterval"),
        ("crds.keep=maybe", "keep"),
    ],
)
def test_a_value_that_means_nothing_is_refused_by_its_name(helm, value, named):
    assert named in helm("template", "t", "--set", value, check=False)


def test_a_service_account_of_somebody_else_needs_its_name(helm):
    said = helm("template", "t", "--set", "serviceAccount.create=false", check=False)

    assert "serviceAccount.name is needed" in said


@pytest.mark.parametrize("beside", ["watchNamespaces={a}", "networkPolicy.nodes=true"])
def test_what_is_made_namespace_by_namespace_has_no_place_in_a_cluster_wide_release(helm, beside):
    said = helm("template", "t", "--set", f"clusterWide=true,{beside}", check=False)

    assert beside.partition("=")[0] in said
    assert "clusterWide" in said


def test_a_cluster_wide_release_has_the_same_rights_everywhere(helm):
    one = objects(helm("template", "t"))["Role", "default/t-turnout"]
    found = objects(helm("template", "t", "--set", "clusterWide=true"))

    everywhere = found["ClusterRole", "/t-turnout-default-namespaces"]["rules"]
    given = [rule for rule in everywhere if "bind" in rule["verbs"]]
    assert [(rule["resources"], rule["resourceNames"]) for rule in given] == [
        (["clusterroles"], ["t-turnout-default-admin"])
    ]
    assert [r for r in everywhere if r not in given] == [r for r in one["rules"] if "bind" not in r["verbs"]]
    assert ("ClusterRole", "/t-turnout-default-admin") in found
    assert ("Role", "default/t-turnout") not in found
    args = found["Deployment", "default/t-turnout"]["spec"]["template"]["spec"]["containers"][0]["args"]
    assert {"--all-namespaces", "--admin-role=ClusterRole/t-turnout-default-admin"} <= set(args)


def test_common_labels_and_annotations_are_on_everything_and_select_nothing(helm):
    values = (
        "commonLabels.team=a,commonAnnotations.who=b,replicas=2,networkPolicy.enabled=true,networkPolicy.nodes=true"
    )
    found = objects(helm("template", "t", "--set", values))

    assert {
        key for key, manifest in found.items() if manifest["metadata"].get("labels", {}).get("team") != "a"
    } == set()
    assert {
        key for key, manifest in found.items() if manifest["metadata"].get("annotations", {}).get("who") != "b"
    } == set()
    assert "team" not in found["Service", "default/t-turnout-health"]["spec"]["selector"]
