"""`turnout --version`."""

from importlib.metadata import version

from typer.testing import CliRunner

from turnout_cli.main import app_for


def test_the_version_is_told() -> None:
    told = CliRunner().invoke(app_for(["--version"]), ["--version"])
    assert told.exit_code == 0
    assert told.output == f"turnout {version('turnout')}\n"
