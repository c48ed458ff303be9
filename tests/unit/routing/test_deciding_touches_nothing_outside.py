"""On the path of a request nothing is compiled, opened, locked or looked up outside: all of that was done before."""

import builtins
import re
import socket
import threading
import zoneinfo

import pytest
import re2

from turnout_api.routing import Catalog, Routing, compile_snapshot, decide
from turnout_api.routing.explain import explain

WHENS = (
    {"headers": {"x-team": {"regex": "^r.d$"}}, "users": ["nobody"]},
    {"timeWindow": {"zone": "Europe/Rome", "days": ["Sun"], "from": "00:00", "to": "00:01"}},
    {"percent": 0},
    {"minRequestCostMicros": 10**9},
    {"metadata": {"tier": "gold"}, "clients": ["ann"], "roles": ["ops"]},
    {"minInputTokens": 10**6, "hasTools": True, "hasAudio": True, "stream": True},
    {"minBudgetUsedPercent": 50, "maxInflightPerBackend": 1},
)


def forbidden(what: str):
    def refuse(*_given, **_more):
        raise AssertionError(f"{what} on the path of a request")

    return refuse


@pytest.fixture
def sealed(monkeypatch):
    """From here on, whoever reaches outside fails."""

    def seal():
        for module, name in (
            (re, "compile"),
            (re2, "compile"),
            (builtins, "open"),
            (socket, "socket"),
            (threading, "Lock"),
            (threading, "RLock"),
            (zoneinfo, "ZoneInfo"),
        ):
            monkeypatch.setattr(module, name, forbidden(f"{module.__name__}.{name}"))
        monkeypatch.setattr("turnout_api.routing.conditions.ZoneInfo", forbidden("ZoneInfo"))

    return seal


@pytest.mark.parametrize("explains", [False, True])
def test_every_kind_of_condition_is_ready(rules, sealed, explains):
    chain = [rules.route(f"r{number}", **when) for number, when in enumerate(WHENS)]
    f = rules.frontend("f", *chain, rules.jump("on", "g"))
    g = rules.frontend("g", rules.route("red", headers={"x-team": {"regex": "^r.d$"}}), defaults=("@p",))
    snapshot = compile_snapshot([f, g], [rules.pool("p", "m")], {"m": [rules.price(1, 1)]})
    asked = rules.request(headers={"x-team": "red"}, at=1.8e9, client="bob", body={"max_tokens": 5})

    sealed()
    if explains:
        said = explain(Routing(snapshot, Catalog()), asked)
        assert (said.rule, len(said.declined)) == ("g/red", len(WHENS))
    else:
        assert decide(snapshot, snapshot.chains["f"], asked, inflight=lambda _: [7]).rule == "g/red"
