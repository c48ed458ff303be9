"""What a person sees with kubectl: the category, the columns, the explanations, defaults, and who owns which entry of a list."""

import json

import pytest
import yaml

from turnout_api.resources import KINDS
from turnout_api.resources.settings import Settings

NODE = {
    "apiVersion": "turnout.dev/v1alpha1",
    "kind": "RouterNode",
    "metadata": {"name": "gpu-a"},
    "spec": {
        "role": "Standalone",
        "backends": [{"name": "llama", "family": "LlamaCpp", "url": "http://127.0.0.1:8081"}],
        "models": [{"id": "cc11", "backend": "llama"}],
        "settings": {"schedulingBackendDepth": 2},
    },
}
LINK = {
    "apiVersion": "turnout.dev/v1alpha1",
    "kind": "RoutingLink",
    "metadata": {"name": "a-to-b"},
    "spec": {"lane": "Text", "owner": {"node": "gpu-a", "model": "cc11"}, "helper": {"node": "gpu-b", "model": "cc11"}},
}


def apply(crds, namespace, manifest, manager="someone"):
    crds.kubectl(
        "apply",
        "--server-side",
        f"--field-manager={manager}",
        "-n",
        namespace,
        "-f",
        "-",
        stdin=yaml.safe_dump(manifest),
    )


def test_the_category_lists_every_kind_with_its_columns(crds, namespace):
    apply(crds, namespace, NODE)
    apply(crds, namespace, LINK)

    shown = crds.kubectl("get", "turnout", "-n", namespace).stdout

    assert "routernode.turnout.dev/gpu-a" in shown
    assert "routinglink.turnout.dev/a-to-b" in shown
    assert "ROLE" in shown
    assert "HELPER" in shown
    assert "READY" in shown


@pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))
def test_the_short_name_works(crds, namespace, kind):
    assert crds.kubectl("get", kind.short, "-n", namespace).returncode == 0


def test_explain_says_what_a_field_means_with_its_default(crds):
    shown = crds.kubectl("explain", "routernode.spec.settings.schedulingBackendDepth").stdout

    assert "Requests of an enrolled model that its backend gets at once" in " ".join(shown.split())
    assert "Default: Classic 2, Adaptive 1." in " ".join(shown.split())


def test_defaults_of_an_object_are_stored_but_those_of_settings_are_not(crds, namespace):
    apply(crds, namespace, NODE)

    spec = json.loads(crds.kubectl("get", "rn", "gpu-a", "-n", namespace, "-o", "json").stdout)["spec"]

    assert spec["models"][0]["capabilities"] == ["Text"]
    assert spec["settings"] == {"schedulingBackendDepth": 2}
    assert len(Settings.model_fields) > 1


def test_two_managers_own_a_model_each(crds, namespace):
    apply(crds, namespace, NODE, manager="first")
    apply(
        crds,
        namespace,
        NODE | {"spec": {"role": "Standalone", "models": [{"id": "cc12", "backend": "llama"}]}},
        "second",
    )

    spec = json.loads(crds.kubectl("get", "rn", "gpu-a", "-n", namespace, "-o", "json").stdout)["spec"]

    assert {model["id"] for model in spec["models"]} == {"cc11", "cc12"}


def test_an_unknown_condition_is_kept_for_resolve_to_refuse(crds, namespace):
    rule = {"name": "a", "when": {"hasImage": True}, "targets": [{"model": "cc11"}]}
    apply(crds, namespace, {**NODE, "kind": "FrontendModel", "spec": {"rules": [rule]}})

    spec = json.loads(crds.kubectl("get", "fm", "gpu-a", "-n", namespace, "-o", "json").stdout)["spec"]

    assert spec["rules"][0]["when"] == {"hasImage": True}


def test_a_status_is_written_through_its_own_door_only(crds, namespace):
    apply(crds, namespace, LINK | {"status": {"weights": "Same"}})
    read = ("get", "rl", "a-to-b", "-n", namespace, "-o", "jsonpath={.status.weights}|{.metadata.generation}")
    assert crds.kubectl(*read).stdout == "|1"

    patch = {
        "status": {
            "weights": "Different",
            "observedGeneration": 1,
            "conditions": [
                {"type": "Ready", "status": "True", "reason": "Linked", "lastTransitionTime": "2026-01-01T00:00:00Z"}
            ],
        }
    }
    crds.kubectl(
        "patch", "rl", "a-to-b", "-n", namespace, "--subresource=status", "--type=merge", "-p", json.dumps(patch)
    )

    assert crds.kubectl(*read).stdout == "Different|1"
    assert "Linked" in crds.kubectl("get", "rl", "-n", namespace).stdout
