"""What tests of several folders share.

- What holds for every test: no example has a deadline, and in CI nothing skips.
- The table of good and bad objects, for the tests of every judge: a test that takes `case` runs once for each entry.
- With xdist, a folder whose tests share something dear (a control plane, a real model) goes to one worker. By folder and not by
  the mark `xdist_group`: pytest-xdist 3.8 marks tests by a private field that pytest 9.2 no longer has, so the mark would do
  nothing.
"""

import json
import os
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

# No deadline: how long an example takes says nothing on a machine that others use. The blob of a failing example is
# printed, and becomes an @reproduce_failure or @example that stays.
settings.register_profile("turnout", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("turnout")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """In CI a test that skips because a component is missing has failed: CI installs everything.

    What lies beside the repository (`../shared`) is no component: the repository needs nothing from there.
    """
    report = yield
    if report.skipped and os.environ.get("CI") == "true" and "../shared" not in str(report.longrepr):
        report.outcome = "failed"
        report.longrepr = f"skipped in CI: {report.longrepr}"
    return report


CASES = Path(__file__).parent / "unit" / "crds" / "cases"
KINDS = {
    "frontendmodel": "FrontendModel",
    "guardian": "Guardian",
    "modelpool": "ModelPool",
    "routernode": "RouterNode",
    "routetest": "RouteTest",
    "routinglink": "RoutingLink",
    "settings": "RouterNode",
    "splitrecipe": "SplitRecipe",
    "when": "FrontendModel",
}
"""What the entries of a file are."""

ONE_WORKER = (
    "tests/kube/node/",
    "tests/kube/operator/rights/",
    "tests/kube/operator/",
    "tests/kube/",
    "tests/http/llama/",
    "tests/http/up/",
)
"""The first that fits. Tests of an operator mostly wait for it, so that a third worker on two cores is not too many."""


class ByFolder(LoadScopeScheduling):
    """Each test on its own, but those of a folder in `ONE_WORKER` together."""

    def _split_scope(self, nodeid: str) -> str:
        if nodeid.startswith("tests/scenes/") and "[up" in nodeid:
            return "tests/scenes/"  # many processes each
        return next((folder for folder in ONE_WORKER if nodeid.startswith(folder)), nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByFolder:
    return ByFolder(config, log)


@dataclass(frozen=True, slots=True)
class Case:
    """One object and the verdict: `rule` = broken by that rule, `field` = by the schema there, neither = good."""

    title: str
    manifest: dict[str, Any]
    rule: str = ""
    field: str = ""

    @property
    def good(self) -> bool:
        return not self.rule and not self.field


def read_cases() -> list[Case]:
    return [
        _case(path.stem, entry) for path in sorted(CASES.glob("*.yaml")) for entry in yaml.safe_load(path.read_text())
    ]


def _case(stem: str, entry: dict[str, Any]) -> Case:
    manifest = {
        "apiVersion": "turnout.dev/v1alpha1",
        "kind": KINDS[stem],
        "metadata": {"name": entry.get("name", "sample")},
    }
    under = ""
    if "when" in entry:  # only the conditions are written: they become those of a rule
        manifest["spec"] = {"rules": [{"name": "a", "when": entry["when"], "targets": [{"model": "m"}]}]}
        under = "spec.rules[0]."
    elif "spec" in entry:
        manifest["spec"] = entry["spec"]
    refused = entry.get("refused", "")
    if isinstance(refused, str):
        return Case(f"{stem}: {entry['case']}", manifest, rule=refused)
    return Case(f"{stem}: {entry['case']}", manifest, field=under + refused["at"])


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "case" in metafunc.fixturenames:
        metafunc.parametrize("case", read_cases(), ids=lambda case: case.title)


@pytest.fixture(scope="session")
def cases() -> list[Case]:
    """The whole table."""
    return read_cases()


@pytest.fixture(scope="session")
def scalars() -> dict[str, Any]:
    """Plain YAML scalars and what kubectl makes of them."""
    return json.loads((CASES.parent / "scalars.json").read_text())
