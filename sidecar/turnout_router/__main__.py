"""`python -m turnout_router --config FILE`: the same as `turnout router`, without the command line's own dependencies."""

import argparse
import sys
from pathlib import Path

from turnout_api.vocabulary import Policy
from turnout_router.main import run


def main() -> int:
    """Run one router until SIGTERM or Ctrl-C, which drain it. Exit codes: see `turnout_router.main`."""
    parser = argparse.ArgumentParser(prog="turnout router", description="Run one router from one configuration file.")
    parser.add_argument("--config", type=Path, required=True, help="the router's configuration file (YAML or JSON)")
    parser.add_argument(
        "--policy",
        type=Policy,
        metavar="|".join(Policy),
        help="how one model's endpoints share its requests; wins over endpoint_policy",
    )
    parser.add_argument(
        "--drain-timeout", type=float, default=600.0, metavar="S", help="seconds that SIGTERM waits for what runs (600)"
    )
    parser.add_argument(
        "--linger",
        type=float,
        default=0.0,
        metavar="S",
        help="seconds that it serves on after SIGTERM, then drains (0)",
    )
    options = parser.parse_args()
    return run(options.config, policy=options.policy, drain_timeout_s=options.drain_timeout, linger_s=options.linger)


if __name__ == "__main__":
    sys.exit(main())
