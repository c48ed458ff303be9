"""`python -m turnout_operator`: what `turnout operator` runs, without the command line's own dependencies."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from turnout_api.durations import parse_duration
from turnout_operator.admission.serve import Webhook
from turnout_operator.children import RouterPods
from turnout_operator.main import LEASE_S, RESYNC_S, LeaseOptions, Options, run
from turnout_operator.routerpod import DEFAULT_RESOURCES, DRAIN_TIMEOUT_S, RouterImage, parse_resources, router_image
from turnout_operator.watch import WATCH_S


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the operator until SIGTERM or Ctrl-C. Returns the exit code."""
    options = _parser().parse_args(arguments)
    return run(
        Options(
            namespaces=tuple(dict.fromkeys(options.namespace)),
            all_namespaces=options.all_namespaces,
            resync_s=options.resync_interval,
            watch_s=options.watch_renewal,
            lease=LeaseOptions(options.lease, options.lease_namespace, options.lease_duration),
            health_host=options.health_host,
            health_port=options.health_port,
            webhook=_webhook(options),
            pods=RouterPods(
                image=RouterImage(options.router_image, options.router_pull_policy, options.router_resources),
                drain_timeout_s=max(1, round(options.drain_timeout)),
                pull_secrets=tuple(options.router_pull_secret),
                admin_role=options.admin_role,
            ),
        )
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="turnout operator",
        description="Watch namespaces, judge their objects and deliver routers' configurations.",
    )
    parser.add_argument(
        "--namespace", action="append", default=[], help="what to watch; repeatable. Default: the namespace of the pod"
    )
    parser.add_argument(
        "--all-namespaces", action="store_true", help="watch every namespace in which something is declared, instead"
    )
    parser.add_argument(
        "--resync-interval", type=parse_duration, default=RESYNC_S, metavar="60s", help="a round without any change"
    )
    parser.add_argument(
        "--watch-renewal", type=parse_duration, default=WATCH_S, metavar="30s", help="how long one watch lasts"
    )
    parser.add_argument("--lease", default=LeaseOptions().name, help="which of several operators writes")
    parser.add_argument("--lease-namespace", default="", help="default: that of the pod, else the first --namespace")
    parser.add_argument(
        "--lease-duration", type=parse_duration, default=LEASE_S, metavar="15s", help="to wait for one that died"
    )
    parser.add_argument("--health-host", default="127.0.0.1", help="where /healthz and /readyz listen (127.0.0.1)")
    parser.add_argument("--health-port", type=int, default=8080, help="0 = any free port (8080)")
    _add_routers(parser.add_argument_group("routers"))
    _add_webhooks(parser.add_argument_group("webhooks"))
    return parser


def _add_routers(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--router-image", default=router_image(), help=f"the router's image ({router_image()})")
    group.add_argument("--router-pull-policy", default="IfNotPresent", help="its pull policy (IfNotPresent)")
    group.add_argument(
        "--router-pull-secret", action="append", default=[], help="for masters' pods; injected pods have their own"
    )
    group.add_argument(
        "--router-resources", type=parse_resources, default=DEFAULT_RESOURCES, help="requests and limits, as JSON"
    )
    group.add_argument(
        "--admin-role",
        default="",
        metavar="ROLE",
        help="of each namespace, or ClusterRole/NAME: lets masters write what people change there",
    )
    group.add_argument(
        "--drain-timeout", type=parse_duration, default=DRAIN_TIMEOUT_S, metavar="1m", help="for requests that run (1m)"
    )


def _add_webhooks(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--webhook", default="", metavar="NAME", help="the MutatingWebhookConfiguration to serve")
    group.add_argument("--validating-webhook", default="", metavar="NAME", help="the ValidatingWebhookConfiguration")
    group.add_argument(
        "--webhook-certificates", type=Path, metavar="FOLDER", help="where somebody else keeps tls.crt and tls.key"
    )
    group.add_argument("--webhook-secret", default="turnout-webhook", help="where the operator keeps its own")
    group.add_argument("--webhook-service", default="turnout", help="the Service by which the API server calls")
    group.add_argument("--webhook-namespace", default="", help="of the Service and the Secret")
    group.add_argument("--webhook-name", action="append", default=[], help="another name or address of the server")
    group.add_argument("--webhook-host", default="0.0.0.0", help="where it listens (0.0.0.0)")  # noqa: S104 - in a pod
    group.add_argument("--webhook-port", type=int, default=9443, help="0 = any free port (9443)")


def _webhook(options: argparse.Namespace) -> Webhook | None:
    if not options.webhook:
        return None
    service = f"{options.webhook_service}.{options.webhook_namespace}.svc"
    return Webhook(
        configuration=options.webhook,
        namespace=options.webhook_namespace,
        secret=options.webhook_secret,
        names=(service, *options.webhook_name),
        host=options.webhook_host,
        port=options.webhook_port,
        validating=options.validating_webhook,
        certificates=options.webhook_certificates,
    )


if __name__ == "__main__":
    sys.exit(main())
