"""Each command and each of its options says what it is for."""

from typing import Any

import pytest
import typer

from turnout_cli import main
from turnout_cli.main import COMMANDS, app_for


def command(name: str) -> Any:
    group: Any = typer.main.get_command(app_for([name]))
    return group.commands[name]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_and_argument_is_explained(name: str) -> None:
    helps = {param.name: getattr(param, "help", None) for param in command(name).params}
    assert [param for param, text in helps.items() if not text] == []
    assert [param for param, text in helps.items() if "[" in text] == []  # is taken for markup, and not shown


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
