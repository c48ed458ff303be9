"""`turnout operator`: watch namespaces, judge their objects, deliver routers' configurations."""

import sys
from typing import Annotated

import typer

from turnout_api.durations import format_duration, parse_duration
from turnout_operator.children import RouterPods
from turnout_operator.main import RESYNC_S, LeaseOptions, Options, run
from turnout_operator.routerpod import RouterImage


def operator(  # noqa: PLR0917 - typer calls it by name
    namespace: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="What to watch; repeatable. Default: the namespace of the pod."),
    ] = None,
    resync_interval: Annotated[
        str, typer.Option(metavar="DURATION", help="A round without any change.")
    ] = format_duration(RESYNC_S),
    lease: Annotated[
        str, typer.Option(metavar="NAME", help="Which of several operators writes.")
    ] = LeaseOptions().name,
    lease_namespace: Annotated[
        str, typer.Option(metavar="NAME", help="Default: that of the pod, else the first --namespace.")
    ] = "",
    health_host: Annotated[str, typer.Option(help="Where /healthz and /readyz listen.")] = "127.0.0.1",
    health_port: Annotated[int, typer.Option(help="0 = any free port.")] = 8080,
    router_image: Annotated[
        str, typer.Option(metavar="IMAGE", help="Of masters and sidecars. Default: turnout-router with this version.")
    ] = "",
) -> None:
    """Run the operator until SIGTERM or Ctrl-C."""
    try:
        resync_s = parse_duration(resync_interval)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--resync-interval") from error
    names = tuple(dict.fromkeys(namespace or ()))
    pods = RouterPods(RouterImage(router_image)) if router_image else RouterPods()
    options = Options(
        names,
        resync_s=resync_s,
        lease=LeaseOptions(lease, lease_namespace),
        health_host=health_host,
        health_port=health_port,
        pods=pods,
    )
    sys.exit(run(options))
