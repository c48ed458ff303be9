"""What a rule costs on the request path: nanoseconds for each rule that declines, microseconds to compile one.

    python tests/bench/rules.py

Each line is a frontend model with 2000 rules of one kind, none of which holds: the worst a request can meet.
"""

import time

from turnout_api.config import FrontendConfig, PriceConfig, RuleConfig, TargetConfig
from turnout_api.routing import compile_snapshot, decide, read

RULES = 2000
ROUNDS = 20
KINDS = {
    "hasImages": lambda _: {"hasImages": True},
    "minInputTokens": lambda i: {"minInputTokens": 100_000 + i},
    "stream and minInputTokens": lambda i: {"stream": False, "minInputTokens": 100_000 + i},
    "clients": lambda i: {"clients": [f"client-{i}"]},
    "headers, exact": lambda i: {"headers": {"x-team": {"exact": f"red{i}"}}},
    "headers, regex": lambda i: {"headers": {"x-team": {"regex": f"^red{i}$"}}},
    "minRequestCostMicros": lambda _: {"minRequestCostMicros": 10**9},
    "timeWindow": lambda _: {"timeWindow": {"from": "00:00", "to": "00:01"}},
    "percent": lambda _: {"percent": 0},
}


def main() -> None:
    body = {"model": "f", "messages": [{"role": "user", "content": "x" * 400}], "max_tokens": 5}
    for kind, when in KINDS.items():
        rules = [RuleConfig(name=f"r{i}", when=when(i), targets=[TargetConfig(model="m")]) for i in range(RULES)]
        frontend = FrontendConfig(name="f", model_name="f", rules=rules, default_targets=[TargetConfig(model="m")])
        began = time.perf_counter()
        snapshot = compile_snapshot([frontend], prices={"m": [PriceConfig(input_micros_per_million_tokens=1)]})
        compiled = time.perf_counter() - began
        facts = read("/v1/chat/completions", body, headers={"x-team": "blue"}, client="c", at=1.7e9)
        best = min(timed(snapshot, facts) for _ in range(5))
        print(f"{kind:28}{best / RULES * 1e9:8.0f} ns/rule{compiled / RULES * 1e6:8.0f} us/rule to compile")
    began = time.perf_counter()
    for _ in range(10_000):
        read("/v1/chat/completions", body, headers={"x-team": "blue"}, client="c", at=1.7e9)
    print(f"{'reading the facts':28}{(time.perf_counter() - began) / 10_000 * 1e9:8.0f} ns/request")


def timed(snapshot, facts) -> float:
    began = time.perf_counter()
    for _ in range(ROUNDS):
        assert decide(snapshot, snapshot.chains["f"], facts).rule == "f/defaults"
    return (time.perf_counter() - began) / ROUNDS


if __name__ == "__main__":
    main()
