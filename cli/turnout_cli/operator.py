"""`turnout operator`: watch namespaces, judge their objects, deliver routers' configurations.

Its options are the operator's own, which also starts without this command line: in its image there is no other part of it.
"""

import sys

import typer

from turnout_operator.__main__ import main


def operator(context: typer.Context) -> None:
    """Run the operator until SIGTERM or Ctrl-C."""
    sys.exit(main(context.args))
