"""`Router.explain` and the request path agree: on the facts of a request, the rule, the models and the nodes to try."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp.test_utils import make_mocked_request
from hypothesis import given, settings
from hypothesis import strategies as st

from turnout_api.config import PriceConfig, RouterConfig
from turnout_api.routing import Explanation, read
from turnout_api.vocabulary import Capability, Family, Policy
from turnout_router.access import Caller
from turnout_router.cluster.table import Endpoint, PublicModel, RoutingTable
from turnout_router.families import errors, paths
from turnout_router.families.request import parse_json
from turnout_router.gateway.ejection import EJECT_AFTER, Verdict
from turnout_router.gateway.endpoints import key_of
from turnout_router.gateway.frontends import facts_of
from turnout_router.gateway.route import Asking, route
from turnout_router.router import Router
from turnout_router.store.records import RequestRecord

MODELS = ("m0", "m1", "m2", "m3")
POOLS = ("p0", "p1")
FRONTENDS = ("f0", "f1", "f2", "f3")
NODES = ("a", "b", "c")
HEAVY = settings(max_examples=500)

targets = st.lists(
    st.sampled_from([*({"model": m} for m in (*MODELS, "nowhere")), *({"pool": p} for p in (*POOLS, "gone"))]),
    min_size=1,
    max_size=4,
)
whens = st.fixed_dictionaries(
    {},
    optional={
        "stream": st.booleans(),
        "hasTools": st.booleans(),
        "hasImages": st.booleans(),
        "minInputTokens": st.integers(0, 40),
        "maxOutputTokens": st.integers(0, 50),
        "minRequestCostMicros": st.integers(0, 60),
        "maxInflightPerBackend": st.integers(1, 4),
        "clients": st.just(["ann"]),
        "roles": st.just(["vip"]),
        "users": st.just(["bob"]),
        "headers": st.just({"x-team": {"prefix": "re"}}),
        "percent": st.integers(1, 99),
    },
)


@st.composite
def rules(draw: Any, number: int, later: list[str]) -> dict[str, Any]:
    """A rule; it jumps only to frontend models that come later, so that nothing loops."""
    rule: dict[str, Any] = {"name": f"r{number}", "when": draw(whens), "tag": draw(st.sampled_from(["", "t"]))}
    match draw(st.sampled_from(["Route", "Route", "Deny", "Jump"])):
        case "Deny":
            return rule | {"action": "Deny", "deny_status": draw(st.sampled_from([400, 403, 404, 429]))}
        case "Jump":
            return rule | {"action": "Jump", "jump_to": draw(st.sampled_from([*later, "gone"]))}
        case _:
            return rule | {"targets": draw(targets)}


@st.composite
def clusters(draw: Any) -> dict[str, Any]:
    frontends = []
    for i, name in enumerate(FRONTENDS):
        chain = [draw(rules(n, list(FRONTENDS[i + 1 :]))) for n in range(draw(st.integers(0, 4)))]
        frontends.append({"name": name, "model_name": name, "rules": chain, "default_targets": draw(targets)})
    policies = st.sampled_from([None, *Policy])
    pools = [
        {"name": name, "policy": draw(policies), "members": draw(members())} for name in POOLS
    ]  # fmt: skip
    return {"frontends": frontends, "pools": pools, "policy": draw(st.sampled_from(list(Policy)))}


@st.composite
def members(draw: Any) -> list[dict[str, Any]]:
    chosen = draw(st.lists(st.sampled_from(MODELS), min_size=1, unique=True))
    return [{"model": model, "weight": draw(st.integers(1, 5))} for model in chosen]


@st.composite
def tables(draw: Any) -> RoutingTable:
    found = {}
    for name in MODELS:
        nodes = draw(st.lists(st.sampled_from(NODES), unique=True, max_size=3))
        endpoints = tuple(endpoint(draw, name, node) for node in nodes)
        if endpoints:
            found[name] = PublicModel(name, endpoints, frozenset().union(*(e.capabilities for e in endpoints)))
    return RoutingTable(found, frozenset(MODELS))


def endpoint(draw: Any, model: str, node: str) -> Endpoint:
    capabilities = draw(st.sampled_from([{Capability.TEXT}, {Capability.TEXT, Capability.VISION}]))
    family = draw(st.sampled_from([Family.OPENAI, Family.OPENAI, Family.WHISPER]))
    micros = draw(st.sampled_from([None, 0, 1_000_000]))
    price = None if micros is None else PriceConfig(input_micros_per_million_tokens=micros, micros_per_request=1)
    available = draw(st.sampled_from([True, True, True, False]))
    return Endpoint(
        node, node, None, f"local-{model}", model, family, frozenset(capabilities), available, price=price
    )  # fmt: skip


@st.composite
def requests(draw: Any) -> dict[str, Any]:
    text = "x" * draw(st.integers(0, 120))
    image = [{"type": "image_url", "image_url": {"url": "data:"}}, {"type": "text", "text": text}]
    content = image if draw(st.booleans()) else text
    body: dict[str, Any] = {"messages": [{"role": "user", "content": content}]}
    body["model"] = draw(st.sampled_from([*FRONTENDS, *FRONTENDS, *MODELS, "nobodys"]))
    body |= draw(
        st.fixed_dictionaries(
            {},
            optional={
                "stream": st.booleans(),
                "max_tokens": st.integers(0, 80),
                "tools": st.just([{"type": "function"}]),
                "user": st.sampled_from(["bob", "eve"]),
            },
        )
    )
    headers = {"x-team": draw(st.sampled_from(["red", "blue"]))}
    caller = draw(st.sampled_from([Caller("gateway", is_gateway=True), Caller("ann"), Caller("x", frozenset({"vip"}))]))
    return {"body": body, "headers": headers, "caller": caller}


@pytest.fixture(scope="module")
def router(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Router]:
    """A router that listens nowhere; its clock stands still."""
    key: Path = tmp_path_factory.mktemp("keys") / "key"
    key.write_text("gateway-0123456789abcdef")
    config = {"cluster": {"role": "Standalone", "node_id": "alone"}, "access": {"gateway_key_file": str(key)}}
    router = Router(RouterConfig.model_validate(config), clock=lambda: 1000.0)
    yield router
    asyncio.run(router.store.close())


def load(router: Router, cluster: dict[str, Any], table: RoutingTable, draw: Any) -> None:
    """Make the router one of this cluster, with some load and some endpoints that fail."""
    changed = {"frontends": cluster["frontends"], "pools": cluster["pools"]}
    document = router.config.model_dump() | changed
    document["cluster"]["endpoint_policy"] = cluster["policy"]
    router.config = RouterConfig.model_validate(document)
    router.registry.table = table
    router.frontends.reconfigure(router.config, router.frontends.compiled(router.config))
    router.frontends.follow(table)
    for balance, groups in ((router.frontends.pools, POOLS), (router.endpoints.balance, MODELS)):
        balance.inflight.clear()
        balance.turns = {group: draw(st.integers(0, 40)) for group in groups}
    router.endpoints.ejections.keep(())
    for model in table.models.values():
        for found in model.endpoints:
            if open_now := draw(st.integers(0, 4)):
                router.endpoints.balance.inflight[key_of(found)] = open_now
            for _ in range(EJECT_AFTER if draw(st.integers(0, 3)) == 0 else 0):
                router.endpoints.ejections.ended(key_of(found), Verdict.BAD, 1000.0)


def gone_through(router: Router, asking: Asking, record: RequestRecord) -> list[tuple[str, str]]:
    """Every endpoint that the gateway would try, as (model, node)."""
    waits_for_nothing = route(router, asking, record)
    with pytest.raises(StopIteration) as ended:
        waits_for_nothing.send(None)
    candidates = ended.value.value.candidates
    found = [candidates.current]
    while candidates.has_next():
        candidates.advance()
        found.append(candidates.current)
    return [(model.name, e.node) for model, e in found]


def asking_of(request: dict[str, Any]) -> Asking:
    row = paths.find("POST", "/v1/chat/completions").endpoint
    raw = json.dumps(request["body"]).encode()
    mocked = make_mocked_request("POST", row.path, headers=request["headers"])
    return Asking(mocked, row, parse_json(raw, row), raw, request["caller"])


def outcome_of(said: Explanation) -> str:
    return f"denied {said.denied.status}" if said.denied else said.reason or ""


def outcome_as_error(error: errors.GatewayError) -> str:
    match error:
        case errors.Denied():
            return f"denied {error.http_status}"
        case errors.UnknownModel():
            return "unknown_model"
        case errors.LacksCapability():
            return "model_lacks_capability"
        case _:
            return "nothing_serving"


def check(router: Router, said: Explanation, asking: Asking, record: RequestRecord) -> None:
    try:
        found = gone_through(router, asking, record)
    except errors.GatewayError as error:
        assert said.candidates == ()
        assert outcome_of(said) == outcome_as_error(error)  # noqa: PT017 - there need not be one
    else:
        assert [c.model for c in said.candidates] == list(dict.fromkeys(model for model, _ in found))
        assert len(found) == len(set(found)), "no endpoint twice"
        first = [node for model, node in found if model == said.model]
        assert set(said.candidates[0].nodes) <= set(first)
    assert (said.rule or "", said.tag) == (record.rule, record.tag)


@HEAVY
@given(cluster=clusters(), table=tables(), request=requests(), data=st.data())
def test_a_live_dry_run_says_what_the_gateway_does(
    router: Router, cluster: dict[str, Any], table: RoutingTable, request: dict[str, Any], data: Any
) -> None:
    load(router, cluster, table, data.draw)
    asking = asking_of(request)
    caller = asking.caller
    facts = facts_of(asking.request, asking.path, asking.facts, asking.body, caller=caller, request_id="r", now=1.7e9)
    client = "" if caller.is_gateway else caller.name
    given_by_hand = read(
        asking.path.path, request["body"], headers=request["headers"], client=client, roles=caller.roles,
        at=1.7e9, request_id="r",
    )  # fmt: skip
    assert facts == given_by_hand

    turns = dict(router.frontends.pools.turns)
    said = router.explain(facts, live=True)
    idle = router.explain(facts)
    assert router.frontends.pools.turns == turns, "a dry-run takes no turn"

    check(router, said, asking, RequestRecord("r", 1.7e9, asking.path.path))

    if not idle.unevaluated:
        assert idle.rule == said.rule


def test_what_is_ejected_comes_last_as_it_is_written_whoevers_turn_it_is(router: Router) -> None:
    endpoints = {m: Endpoint("a", "a", None, m, m, Family.OPENAI, frozenset({Capability.TEXT}), True) for m in MODELS[:3]}  # fmt: skip
    table = RoutingTable({m: PublicModel(m, (e,), e.capabilities) for m, e in endpoints.items()}, frozenset(MODELS))
    pool = {"name": "p0", "policy": Policy.ROUND_ROBIN, "members": [{"model": m} for m in endpoints]}
    frontend = {"name": "f0", "model_name": "f0", "rules": [], "default_targets": [{"pool": "p0"}]}
    load(router, {"frontends": [frontend], "pools": [pool], "policy": "RoundRobin"}, table, lambda _: 1)
    router.frontends.pools.turns["p0"] = 1
    for out in ("m0", "m1"):
        for _ in range(EJECT_AFTER):
            router.endpoints.ejections.ended(key_of(endpoints[out]), Verdict.BAD, 1000.0)

    asking = asking_of({"body": {"model": "f0", "messages": []}, "headers": {}, "caller": Caller("ann")})
    facts = read("/v1/chat/completions", {"model": "f0", "messages": []}, client="ann")
    said = router.explain(facts, live=True)

    assert [c.model for c in said.candidates] == ["m2", "m0", "m1"]
    check(router, said, asking, RequestRecord("r", 1.7e9, asking.path.path))
