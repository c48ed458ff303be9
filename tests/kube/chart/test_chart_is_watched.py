"""The monitors that the chart renders are what the prometheus-operator knows: an API server with the definitions of one of its
releases, which `make kube` fetches, takes each of them under strict validation.
"""

import copy

import pytest

MONITORS = {"PodMonitor", "ServiceMonitor"}
WATCHED = "watched by Prometheus and Grafana"


@pytest.fixture(scope="module")
def watching(cluster, monitor_definitions):
    """The control plane with the kinds of the prometheus-operator."""
    files = [part for path in monitor_definitions for part in ("-f", str(path))]
    cluster.kubectl("apply", "--server-side", *files)
    cluster.kubectl("wait", "--for=condition=Established", "--timeout=120s", *files)
    yield cluster
    cluster.kubectl("delete", "--wait=false", *files)


@pytest.fixture
def create(watching):
    """Has the API server create a monitor, but for storing it: a definition that still has objects may hang when it goes."""

    def create(monitor):
        path = f"/apis/{monitor['apiVersion']}/namespaces/default/{monitor['kind'].lower()}s"
        placed = monitor | {"metadata": monitor["metadata"] | {"namespace": "default"}}
        return watching.request("POST", f"{path}?dryRun=All&fieldValidation=Strict", placed)

    return create


@pytest.fixture
def monitors(rendered, values_matrix):
    """What the chart renders of it for a case of the matrix."""

    def monitors(case):
        return [manifest for manifest in rendered(values_matrix[case]) if manifest["kind"] in MONITORS]

    return monitors


@pytest.mark.parametrize("watched", [WATCHED, "everything at once"])
def test_every_monitor_fits_its_definition(monitors, create, watched):
    found = monitors(watched)

    assert sorted(one["kind"] for one in found) == ["PodMonitor", "PodMonitor", "ServiceMonitor"]
    for monitor in found:
        status, kept = create(monitor)
        assert status == 201, kept
        assert kept["spec"] == monitor["spec"]


@pytest.mark.parametrize("kind", sorted(MONITORS))
def test_a_field_that_is_unknown_would_be_found(monitors, create, kind):
    monitor = copy.deepcopy(next(one for one in monitors(WATCHED) if one["kind"] == kind))
    monitor["spec"]["selektor"] = monitor["spec"].pop("selector")

    status, said = create(monitor)

    assert status in {400, 422}
    assert "selektor" in said["message"]


@pytest.mark.parametrize("kind", sorted(MONITORS))
def test_a_value_of_no_meaning_would_be_found(monitors, create, kind):
    monitor = copy.deepcopy(next(one for one in monitors(WATCHED) if one["kind"] == kind))
    [endpoint] = monitor["spec"]["podMetricsEndpoints" if kind == "PodMonitor" else "endpoints"]
    endpoint["interval"] = "often"

    status, said = create(monitor)

    assert status == 422
    assert "interval" in said["message"]
