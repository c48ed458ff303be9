"""The table of commands."""

import importlib

import pytest

from turnout_cli.main import COMMANDS, app_for


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_each_command_is_where_the_table_says(name):
    command = COMMANDS[name]
    assert callable(getattr(importlib.import_module(f"turnout_cli.{command.module}"), command.function))


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_a_command_has_its_own_help(name, capsys):
    with pytest.raises(SystemExit) as ended:
        app_for([name])([name, "--help"])
    assert ended.value.code == 0
    assert f"{name} [" in capsys.readouterr().out


def test_help_names_every_command_and_imports_none(capsys, monkeypatch):
    monkeypatch.setattr(importlib, "import_module", lambda name: pytest.fail(f"imported {name}"))
    with pytest.raises(SystemExit):
        app_for(["--help"])(["--help"])
    shown = capsys.readouterr().out
    assert all(name in shown for name in COMMANDS)
