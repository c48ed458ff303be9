"""Every folder under examples/ is a cluster that `turnout validate` accepts."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from turnout_cli.main import app_for

EXAMPLES = sorted({path.parent for path in (Path(__file__).parents[3] / "examples").rglob("*.yaml")})


def test_there_are_examples() -> None:
    assert EXAMPLES


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_an_example_is_accepted(example: Path) -> None:
    called = ["validate", str(example)]
    result = CliRunner().invoke(app_for(called), called)
    assert result.exit_code == 0, result.output
    assert "0 not accepted" in result.output
