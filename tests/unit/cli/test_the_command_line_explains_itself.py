"""Each command and each of its options says what it is for."""

import re
from pathlib import Path
from typing import Any

import pytest
import typer

from turnout_cli import main
from turnout_cli.main import COMMANDS, app_for
from turnout_operator.__main__ import main as operator

ROOT = Path(__file__).parents[3]


def command(name: str) -> Any:
    group: Any = typer.main.get_command(app_for([name]))
    return group.commands[name]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_and_argument_is_explained(name: str) -> None:
    helps = {param.name: getattr(param, "help", None) for param in command(name).params}
    assert [param for param, text in helps.items() if not text] == []
    assert [param for param, text in helps.items() if "[" in text] == []  # is taken for markup, and not shown


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_on_a_page(name: str) -> None:
    text = " ".join(page.read_text() for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")))
    spelt = [
        (*param.opts, *param.secondary_opts) for param in command(name).params if param.param_type_name == "option"
    ]
    assert [options for options in spelt if not any(re.search(rf"(?<![\w-]){o}(?![\w-])", text) for o in options)] == []


def test_every_option_of_the_operator_is_on_its_page(capsys: pytest.CaptureFixture[str]) -> None:
    text = (ROOT / "docs/kubernetes.md").read_text()
    with pytest.raises(SystemExit):
        operator(["--help"])
    given = set(re.findall(r"(?<!\S)\[?(--[a-z-]+)", capsys.readouterr().out)) - {"--help"}
    assert len(given) > 20
    assert sorted(option for option in given if f"`{option}`" not in text) == []


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_explained(name: str) -> None:
    assert command(name).help
    assert COMMANDS[name].summary


def test_ctrl_c_while_a_command_is_imported_is_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_command: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(main, "_load", interrupted)
    monkeypatch.setattr("sys.argv", ["turnout", "up"])
    with pytest.raises(SystemExit) as ended:
        main.main()
    assert ended.value.code == 130
