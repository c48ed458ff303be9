"""`turnout router`: one router from one configuration file."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from turnout_api.vocabulary import Policy
from turnout_router.main import run


def router(
    config: Annotated[Path, typer.Option(help="The router's configuration file (YAML or JSON).")],
    policy: Annotated[
        Policy | None, typer.Option(help="How one model's endpoints share its requests; wins over endpoint_policy.")
    ] = None,
    drain_timeout: Annotated[float, typer.Option(help="Seconds that SIGTERM waits for requests that run.")] = 600.0,
    linger: Annotated[float, typer.Option(help="Seconds that it serves on after SIGTERM before it drains.")] = 0.0,
    with_parent: Annotated[bool, typer.Option(help="Stop when the process that started this one ends.")] = False,
) -> None:
    """Run one router until SIGTERM or Ctrl-C, which drain it."""
    sys.exit(run(config, policy=policy, drain_timeout_s=drain_timeout, linger_s=linger, with_parent=with_parent))
