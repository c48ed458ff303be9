"""kube-score finds nothing in what the chart renders, but for what is named here with its reason."""

import json
from collections.abc import Iterator

import pytest
import yaml

OPERATOR, TEST_POD, NODES_POLICY = "Deployment/turnout", "Pod/turnout-test", "NetworkPolicy/turnout-nodes"
ACCEPTED = {
    (
        OPERATOR,
        "container-resources",
    ): "a limit of CPU throttles and protects nobody: requests share CPU out; memory has a limit",
    (TEST_POD, "container-resources"): "the same",
    (OPERATOR, "container-image-pull-policy"): "tags are versions and never move; image.pullPolicy is a value",
    (TEST_POD, "container-image-pull-policy"): "the same",
    (OPERATOR, "deployment-replicas"): "one by default: routers serve on without it; replicas is a value",
    (OPERATOR, "pod-networkpolicy"): "off by default: only who runs the cluster knows the ports of its API server",
    (TEST_POD, "pod-networkpolicy"): "lives for a second, listens on nothing and has no account",
    (NODES_POLICY, "networkpolicy-targets-pod"): "the pods that it selects are the users'",
}
"""(object, check) → why it may be as it is."""


@pytest.fixture
def findings(render, helm4, kube_score):
    """What kube-score finds: (object, check), why."""

    def find(values: dict) -> Iterator[tuple[tuple[str, str], str]]:
        manifests = [m for m in yaml.safe_load_all(render(helm4, values)) if m]
        score = ("score", "--kubernetes-version", "v1.37", "--output-format", "json", "--enable-optional-test")
        arguments = [*score, "container-seccomp-profile", "--enable-optional-test", "container-ports-check", "-"]
        for scored in json.loads(kube_score(*arguments, stdin=yaml.safe_dump_all(manifests), check=False).stdout):
            name = f"{scored['type_meta']['kind']}/{scored['object_meta']['name']}".replace("lender", "turnout")
            for check in scored["checks"]:
                if not check["skipped"] and check["grade"] < 10:
                    comments = "; ".join(comment["summary"] for comment in check["comments"] or [])
                    yield (name, check["check"]["id"]), comments

    return find


def test_nothing_is_found_that_has_no_reason(findings, values):
    assert {key: why for key, why in findings(values) if key not in ACCEPTED} == {}


def test_no_reason_outlives_its_finding(findings, values_matrix):
    found = {key for values in values_matrix.values() for key, _ in findings(values)}

    assert set(ACCEPTED) - found == set()


def test_two_replicas_behind_policies_need_only_the_reasons_of_every_installation(findings, values_matrix):
    found = {check for (name, check), _ in findings(values_matrix["two replicas behind policies"]) if name == OPERATOR}

    assert found == {"container-resources", "container-image-pull-policy"}
