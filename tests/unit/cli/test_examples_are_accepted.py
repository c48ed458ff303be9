"""Every folder under examples/, and every file beside them, is a cluster that `turnout validate` accepts."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from turnout_cli.main import app_for

TOP = Path(__file__).parents[3] / "examples"
EXAMPLES = sorted({path if path.parent == TOP else path.parent for path in TOP.rglob("*.yaml")})


def said(*called: str) -> str:
    result = CliRunner().invoke(app_for(called), called)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_there_are_examples() -> None:
    assert EXAMPLES


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_an_example_is_accepted(example: Path) -> None:
    assert "0 not accepted" in said("validate", str(example))


def test_the_example_of_lending_links_every_pair_of_both_lanes_in_both_directions_without_a_warning() -> None:
    file = str(TOP / "lending.yaml")

    resources = json.loads(said("validate", file, "--output", "json"))["resources"]

    assert [one["warnings"] for one in resources if one["kind"] == "RoutingLink"] == [[]] * 4
    for owner in ("gpu-a/cc11-ff", "gpu-b/cc11", "gpu-a/flux", "gpu-b/flux-fast"):
        listed = json.loads(said("candidates", file, "--owner", owner, "--output", "json"))["candidates"]
        assert [one["linked"] != "" for one in listed] == [one["eligible"] for one in listed]
        assert sum(one["eligible"] for one in listed) == 1
