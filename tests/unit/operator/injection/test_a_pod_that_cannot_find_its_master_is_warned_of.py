"""The router finds its master by the name of a Service: a pod that does not ask the cluster's name service cannot."""

from typing import Any

import pytest


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        ({"hostNetwork": True}, "ClusterFirstWithHostNet"),
        ({"hostNetwork": True, "dnsPolicy": "ClusterFirst"}, "ClusterFirstWithHostNet"),
        ({"hostNetwork": True, "dnsPolicy": "Default"}, "ClusterFirstWithHostNet"),
        ({"dnsPolicy": "Default"}, "dnsPolicy: ClusterFirst "),
    ],
)
def test_the_policy_that_is_needed_is_named(injecting: Any, pod: Any, spec: dict[str, Any], wanted: str) -> None:
    (said,) = (warning for warning in injecting()(pod(**spec)).warnings if "dnsPolicy" in warning)

    assert wanted in said


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"dnsPolicy": "ClusterFirst"},
        {"dnsPolicy": "ClusterFirstWithHostNet"},
        {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"},
        {"dnsPolicy": "None", "dnsConfig": {"nameservers": ["10.96.0.10"]}},
    ],
)
def test_a_pod_that_can_is_not_warned_of(injecting: Any, pod: Any, spec: dict[str, Any]) -> None:
    assert [warning for warning in injecting()(pod(**spec)).warnings if "dnsPolicy" in warning] == []
