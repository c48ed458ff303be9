"""The executable `kubectl-turnout`, which kubectl runs as `kubectl turnout`.

Exit codes of `status`: 0 = told, 1 = told without live counts, 2 = the cluster's objects cannot be read.
"""

import http.client
from dataclasses import asdict
from typing import Annotated
from urllib.parse import urlsplit

import typer

from turnout_api.instances import ROUTER_PORT
from turnout_api.wire import NODE_PREFIX, TOKEN_HEADER
from turnout_cli.kubectl import kube
from turnout_cli.kubectl.facts import Facts, Master, facts_of
from turnout_cli.kubectl.kube import Kubectl, Refused, UnixConnection
from turnout_cli.kubectl.live import Live, live_of
from turnout_cli.kubectl.tables import print_status
from turnout_cli.output import Output, print_document, table_console

_QUEUES = f"{NODE_PREFIX}/queue?all=1"

app = typer.Typer(
    help="Turnout, seen from kubectl.", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False
)


@app.callback()
def _one_of_several() -> None:
    """Turnout, seen from kubectl."""


@app.command()
def status(
    *,
    namespace: Annotated[str, typer.Option("--namespace", "-n", help="Default: that of the context.")] = "",
    context: Annotated[str, typer.Option(help="Of the kubeconfig.")] = "",
    kubeconfig: Annotated[str, typer.Option(help="Instead of kubectl's own.")] = "",
    live: Annotated[bool, typer.Option(help="Ask the master how many requests are where.")] = True,
    output: Annotated[Output, typer.Option("--output", "-o", case_sensitive=False)] = Output.TABLE,
) -> None:
    """What the cluster serves, what is the matter, and how many requests are where at this moment."""
    given = (("--namespace", namespace), ("--context", context), ("--kubeconfig", kubeconfig))
    kubectl = Kubectl([f"{name}={value}" for name, value in given if value])
    try:
        objects = kubectl.objects()
    except Refused as refused:
        typer.echo(f"kubectl turnout: {refused}", err=True)
        raise typer.Exit(2) from refused
    if not objects:
        where = f"namespace {namespace}" if namespace else "the namespace of the context"
        typer.echo(f"kubectl turnout: nothing of Turnout is declared in {where}", err=True)
        raise typer.Exit(2)
    facts, counts, trouble = facts_of(objects), None, ""
    if live:
        try:
            counts = _live(kubectl, facts)
        except Refused as refused:
            trouble = str(refused)
    _print(facts, counts, trouble, output)
    for node, why in counts.missing.items() if counts else ():
        typer.echo(f"no live counts of {node}: {why}", err=True)
    if trouble:
        typer.echo(f"kubectl turnout: no live counts: {trouble}", err=True)
        raise typer.Exit(1)


def main() -> None:
    """Entry point."""
    app(prog_name="kubectl turnout")


def _live(kubectl: Kubectl, facts: Facts) -> Live:
    """Through the API server to the master's Service; from a router outside the cluster at its own URL."""
    master = facts.master
    if master is None:
        raise Refused("no Master or Standalone is accepted in this namespace")
    if master.token is None:
        raise Refused(f"{master.node} has no cluster token (tokenSecretRef), so it answers nobody about its queues")
    token = kubectl.secret_value(master.namespace, *master.token)
    try:
        text = _outside(master, token) if master.public_url else _behind_service(kubectl, master, token)
    except Refused as refused:
        raise Refused(f"master {master.node}: {refused}") from refused
    try:
        return live_of(text)
    except ValueError as error:
        raise Refused(f"master {master.node}: its answer has no queues of nodes: it is of an older build") from error


def _behind_service(kubectl: Kubectl, master: Master, token: str) -> bytes:
    path = f"/api/v1/namespaces/{master.namespace}/services/http:{master.node}:{ROUTER_PORT}/proxy"
    with kubectl.proxy(path) as socket:
        return kube.get(UnixConnection(socket), path + _QUEUES, {TOKEN_HEADER: token})


def _outside(master: Master, token: str) -> bytes:
    url = urlsplit(master.public_url)
    kind = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
    connection = kind(url.hostname or "", url.port, timeout=15)
    return kube.get(connection, url.path.rstrip("/") + _QUEUES, {"Authorization": f"Bearer {token}"})


def _print(facts: Facts, live: Live | None, trouble: str, output: Output) -> None:
    if output is Output.TABLE:
        print_status(table_console(), facts, live)
        return
    document = {
        "namespace": facts.namespace,
        "kinds": {kind: [asdict(row) for row in rows] for kind, rows in facts.kinds.items()},
        "live": None
        if live is None
        else {
            "total": asdict(live.total),
            "nodes": {name: asdict(counts) for name, counts in live.nodes.items()},
            "missing": live.missing,
        },
        "trouble": trouble,
    }
    print_document(document, output)
