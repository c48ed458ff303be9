"""The command `turnout`.

Only the command that is called is imported, so that `turnout --help` and each small command start fast.
"""

import importlib
import sys
from collections.abc import Callable, Sequence
from importlib import metadata
from typing import Annotated, Any, NamedTuple

import typer


class _Command(NamedTuple):
    module: str
    function: str
    summary: str
    has_own_options: bool = False
    """It reads what follows its name by itself, `--help` too."""


_PASSED_ON: dict[str, Any] = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
COMMANDS: dict[str, _Command] = {
    "up": _Command("up", "up", "A whole cluster on this machine, from the manifests that Kubernetes would get."),
    "validate": _Command("validate", "validate", "Everything that the operator would say about manifests, offline."),
    "candidates": _Command("candidates", "candidates", "Which models an owner may be linked with, and why not."),
    "inject": _Command("inject", "inject", "The router's sidecar into the pod templates of manifests."),
    "migrate-groups": _Command("migrate_groups", "migrate_groups", "Old routing groups into RoutingLinks."),
    "simulate": _Command(
        "simulate", "simulate", "What manifests would do with traffic, under a virtual clock; variants side by side."
    ),
    "lending": _Command("lending", "lending", "What was lent, what it saved and cost, and why not."),
    "dry-run": _Command(
        "dry_run", "dry_run", "Which rule decides a request, which model it would hit, and why; or a whole trace."
    ),
    "replay": _Command("replay", "replay", "A public trace against a gateway, every request accounted for."),
    "router": _Command("router", "router", "Run one router from its configuration file."),
    "operator": _Command("operator", "operator", "Watch namespaces of Kubernetes and deliver configurations.", True),
    "sim-backend": _Command("sim_backend", "sim_backend", "An honest stand-in for a GPU server."),
    "llama-server": _Command("llama_server", "llama_server", "A real llama.cpp server with small weights."),
}
"""Name → module of this package, its function, and the line that `turnout --help` shows. A new command is a new line."""


def main() -> None:
    """Entry point of the script `turnout`."""
    try:
        app_for(sys.argv[1:])(prog_name="turnout")
    except KeyboardInterrupt:  # while the command is still imported: nothing runs yet
        sys.exit(130)


def app_for(arguments: Sequence[str]) -> typer.Typer:
    """The application, in which only the command that `arguments` call has its real options."""
    called = next((argument for argument in arguments if not argument.startswith("-")), "")
    app = typer.Typer(
        help="Routes inference requests and lends the queued ones to idle GPUs.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    app.callback()(_one_of_several)
    for name, command in COMMANDS.items():
        settings = _PASSED_ON if command.has_own_options else {}
        app.command(name, short_help=command.summary, context_settings=settings)(
            _load(command) if name == called else _not_called
        )
    return app


def _load(command: _Command) -> Callable[..., None]:
    function: Callable[..., None] = getattr(importlib.import_module(f"turnout_cli.{command.module}"), command.function)
    return function


def _not_called() -> None:
    """Stands in the list of commands for one that is not imported."""


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"turnout {metadata.version('turnout')}")
        raise typer.Exit


def _one_of_several(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and end.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Makes typer expect a command's name even while there is one command only."""


if __name__ == "__main__":
    main()
