"""How a command prints what it found out: a table for people, JSON or YAML for programs."""

import sys
from enum import StrEnum
from typing import Literal

import orjson
import yaml
from rich.console import Console


class Output(StrEnum):
    """How the result is printed."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


_WIDTH_WITHOUT_TERMINAL = 200
"""Columns where nobody says how wide the output is: a pipe or a log of CI."""


def table_console() -> Console:
    """Where tables for people go: as wide as the terminal, and wide where there is none."""
    console = Console()
    if not console.is_terminal:
        console.width = max(console.width, _WIDTH_WITHOUT_TERMINAL)
    return console


def print_document(document: object, output: Literal[Output.JSON, Output.YAML]) -> None:
    """Print for programs."""
    match output:
        case Output.JSON:
            sys.stdout.write(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode() + "\n")
        case Output.YAML:
            yaml.safe_dump(document, sys.stdout, sort_keys=False, allow_unicode=True)
