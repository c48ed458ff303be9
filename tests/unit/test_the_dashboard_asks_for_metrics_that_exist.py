"""Each query of the chart's Grafana dashboard names metrics and labels that `docs/metrics.md` lists, which other tests hold to the code."""

import json
import re

import pytest

ROW = re.compile(r"^\| `(turnout_\w+)` \| \w+ \| ([^|]*)\|", re.MULTILINE)
METRIC = re.compile(r"\b(turnout_\w+)(?:\{([^}]*)\})?")
BY = re.compile(r"by \(([^)]*)\)")
OF_THE_SCRAPE = {"namespace", "pod", "instance", "job", "exported_namespace"}
"""Labels that Prometheus adds; `exported_namespace` is a label `namespace` of a metric's own."""


@pytest.fixture(scope="module")
def known(pytestconfig) -> dict[str, set[str]]:
    """Metric → its labels."""
    page = (pytestconfig.rootpath / "docs" / "metrics.md").read_text()
    return {name: set(re.findall(r"`(\w+)`", labels)) for name, labels in ROW.findall(page)}


@pytest.fixture(scope="module")
def dashboard(pytestconfig) -> dict:
    return json.loads((pytestconfig.rootpath / "helm" / "turnout" / "files" / "dashboard.json").read_text())


@pytest.fixture(scope="module")
def queries(dashboard) -> list[str]:
    return [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]


def test_metrics_and_labels_of_every_query_exist(queries, known):
    assert len(queries) > 10
    for query in queries:
        metrics = METRIC.findall(query)
        assert metrics, query
        for name, matchers in metrics:
            assert name in known, query
            asked = set(re.findall(r"(\w+)(?:=|!)", matchers))
            asked |= {label.strip() for by in BY.findall(query) for label in by.split(",")}
            assert asked <= known[name] | OF_THE_SCRAPE, query


def test_legends_show_labels_that_their_query_keeps(dashboard):
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            shown = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
            kept = {label.strip() for by in BY.findall(target["expr"]) for label in by.split(",")}
            assert shown <= kept, target["expr"]


def test_panels_neither_overlap_nor_leave_the_page(dashboard):
    taken: set[tuple[int, int]] = set()
    for panel in dashboard["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken, panel["title"]
        assert all(x < 24 for x, _ in cells), panel["title"]
        taken |= cells
