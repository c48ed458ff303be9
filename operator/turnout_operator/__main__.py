"""`python -m turnout_operator`: the same as `turnout operator`, without the command line's own dependencies."""

import argparse
import sys

from turnout_api.durations import parse_duration
from turnout_operator.main import RESYNC_S, Options, run


def main() -> int:
    """Run the operator until SIGTERM or Ctrl-C."""
    parser = argparse.ArgumentParser(
        prog="turnout operator",
        description="Watch namespaces, judge their objects and deliver routers' configurations.",
    )
    parser.add_argument(
        "--namespace", action="append", default=[], help="what to watch; repeatable. Default: the namespace of the pod"
    )
    parser.add_argument(
        "--resync-interval", type=parse_duration, default=RESYNC_S, metavar="60s", help="a round without any change"
    )
    parser.add_argument("--health-host", default="127.0.0.1", help="where /healthz and /readyz listen (127.0.0.1)")
    parser.add_argument("--health-port", type=int, default=8080, help="0 = any free port (8080)")
    options = parser.parse_args()
    return run(
        Options(
            namespaces=tuple(dict.fromkeys(options.namespace)),
            resync_s=options.resync_interval,
            health_host=options.health_host,
            health_port=options.health_port,
        )
    )


if __name__ == "__main__":
    sys.exit(main())
