"""Generated chains and requests, decided by `decide`, by `turnout dry-run`, by `/admin/routing/dry-run`, and for real.

Every chain of every world is in one cluster of `turnout up`, beside all the others, so it is started once. Offline each
world is read by itself. `TURNOUT_SEED` chooses other ones; the seed and the request are in what fails.

The chains are made by plain dice, as all must be there before the cluster starts, and what hypothesis draws without anything
that runs in between are near copies. Each is asked its own request; then hypothesis searches requests over all of them.
"""

import asyncio
import json
import os
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import redirect_stderr
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from random import Random
from typing import Any

import aiohttp
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from turnout_api.manifests import read as read_manifests
from turnout_api.resolve import PlacedAnywhere, declare, resolve
from turnout_api.routing import Deny, Routing, decide, offline, read
from turnout_api.routing.snapshot import Target
from turnout_api.vocabulary import Policy
from turnout_cli.main import app_for
from turnout_router.simbackend import SimBackend, SimOptions

SEED = int(os.environ.get("TURNOUT_SEED", "20261130"))
CASES = 500
CHAINS = ("a", "b", "c", "d")
POOLS = ("p", "q")
SERVED = ("m0", "m1", "m2", "m3")
AWAY = "away"
"""Declared, and its backend is gone."""
PATHS = (*["/v1/chat/completions"] * 4, *["/v1/messages", "/api/chat"] * 2, "/v1/embeddings")

SAID_ALIKE = ("frontend_model", "rule", "via", "action", "tag", "denied", "reason", "cost_micros")

CLUSTER = """\
apiVersion: turnout.dev/v1alpha1
kind: RouterNode
metadata: {{name: alone}}
spec:
  role: Standalone
  settings: {{healthInterval: 1s}}
  backends:
  - {{name: here, family: OpenAI, url: "{here}"}}
  - {{name: gone, family: OpenAI, url: "{gone}"}}
  models:
  - {{id: m0, backend: here, price: {{inputMicrosPerMillionTokens: 1000000, microsPerRequest: 1}}}}
  - {{id: m1, backend: here, capabilities: [Text, Vision]}}
  - {{id: m2, backend: here, price: {{outputMicrosPerMillionTokens: 1000000}}}}
  - {{id: m3, backend: here, price: {{inputMicrosPerMillionTokens: 3000000}}}}
  - {{id: away, backend: gone, price: {{microsPerRequest: 2}}}}
"""


def some(chance: Random, most: int, values: Mapping[str, Callable[[], Any]]) -> dict[str, Any]:
    """At most so many of these fields."""
    return {name: values[name]() for name in chance.sample(list(values), chance.randint(0, most))}


def a_when(chance: Random) -> dict[str, Any]:
    """A few conditions: of many one hardly ever finds that all hold."""
    when = some(
        chance,
        2,
        {
            "endpoints": lambda: chance.choice([["/v1/chat/completions"], ["/v1/messages", "/api/chat"]]),
            "stream": lambda: chance.random() < 0.5,
            "hasImages": lambda: chance.random() < 0.5,
            "hasTools": lambda: chance.random() < 0.5,
            "hasAudio": lambda: chance.random() < 0.2,
            "minInputTokens": lambda: chance.randint(0, 40),
            "maxInputTokens": lambda: chance.randint(5, 40),
            "minOutputTokens": lambda: chance.randint(1, 50),
            "maxOutputTokens": lambda: chance.randint(1, 50),
            "minRequestCostMicros": lambda: chance.randint(0, 60),
            "maxRequestCostMicros": lambda: chance.randint(0, 60),
            "minBudgetUsedPercent": lambda: 0,
            "maxInflightPerBackend": lambda: chance.randint(1, 4),
            "headers": lambda: {"x-team": chance.choice([{"prefix": "re"}, {"regex": "^b.u"}, {"present": False}])},
            "clients": lambda: ["ann"],
            "roles": lambda: ["vip"],
            "users": lambda: ["bob"],
            "metadata": lambda: {"tier": "gold"},
            "timeWindow": lambda: {"zone": "UTC", "from": "00:00", "to": "00:00"},
            "percent": lambda: chance.randint(1, 99),
        },
    )
    for what in ("InputTokens", "OutputTokens", "RequestCostMicros"):
        if when.get(f"min{what}", 0) > when.get(f"max{what}", 1000):
            del when[f"min{what}"]  # nothing could match, which is refused
    return when


def a_world(chance: Random) -> dict[str, Any]:
    """Chains that jump to later ones, so that nothing loops, and their pools; and for each chain a request."""
    policies = [None, *(policy.value for policy in Policy)]
    pools = [{"name": name, "policy": chance.choice(policies), "members": members(chance)} for name in POOLS]
    chains = []
    for at, name in enumerate(CHAINS):
        rules = [a_rule(chance, number, CHAINS[at + 1 :]) for number in range(chance.randint(0, 4))]
        has_defaults = not rules or chance.random() < 0.8
        chains.append({"name": name, "rules": rules, "defaults": targets(chance) if has_defaults else None})
    return {"pools": pools, "chains": chains, "requests": {name: a_request(chance) for name in CHAINS}}


def members(chance: Random) -> list[dict[str, Any]]:
    models = (*SERVED, AWAY)
    return [{"model": model, "weight": chance.randint(1, 5)} for model in chance.sample(models, chance.randint(1, 4))]


def targets(chance: Random) -> list[dict[str, str]]:
    """Pools among models, of which some are nobody's."""
    models = [{"model": name} for name in (*SERVED, AWAY, "nobodys")]
    pools = [{"pool": name} for name in (*POOLS, *POOLS, "nowhere")]
    return chance.choices([*models, *pools], k=chance.randint(1, 4))


def a_rule(chance: Random, number: int, later: tuple[str, ...]) -> dict[str, Any]:
    rule: dict[str, Any] = {"name": f"r{number}", "when": a_when(chance)} | chance.choice([{}, {"tag": "t"}])
    match chance.choice(["Route", "Route", "Deny", "Jump"]):
        case "Deny":
            return rule | {"action": "Deny", "denyStatus": chance.choice([400, 403, 404, 429]), "denyMessage": "no"}
        case "Jump":
            return rule | {"action": "Jump", "jumpTo": chance.choice([*later, *later, "nowhere"])}
        case _:
            return rule | {"targets": targets(chance)}


def a_request(chance: Random) -> dict[str, Any]:
    path = chance.choice(PATHS)
    text = "x" * chance.randint(1, 120)
    headers = chance.choice([{}, {"x-team": "red"}, {"x-team": "blue"}])
    if path == "/v1/embeddings":
        return {"path": path, "headers": headers, "body": {"input": text}}
    # a length is always asked for: without it a cost follows the answers that were measured, and offline there are none
    most = chance.randint(1, 60)
    length = {"options": {"num_predict": most}} if path == "/api/chat" else {"max_tokens": most}
    content: Any = text
    if path == "/v1/chat/completions" and chance.random() < 0.2:
        url = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
        content = [{"type": "text", "text": text}, url]
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
    more = some(
        chance,
        3,
        {
            "stream": lambda: chance.random() < 0.5,
            "tools": lambda: [tool],
            "user": lambda: chance.choice(["bob", "eve"]),
            "metadata": lambda: chance.choice([{"tier": "gold"}, {"tier": "tin"}]),
        },
    )
    body = {"messages": [{"role": "user", "content": content}]} | length | more
    return {"path": path, "headers": headers, "body": body}


@dataclass(frozen=True)
class Case:
    """One request, and the files that it can be decided by."""

    files: tuple[Path, Path]
    request: dict[str, Any]

    @property
    def path(self) -> str:
        return str(self.request["path"])


def named(number: int, name: str) -> str:
    """In the one cluster that all worlds share."""
    return f"w{number}-{name}"


def manifest_of(number: int, world: dict[str, Any]) -> str:
    def target(each: dict[str, str]) -> dict[str, str]:
        return {"pool": named(number, each["pool"])} if "pool" in each else each

    def rule(each: dict[str, Any]) -> dict[str, Any]:
        more = {"targets": list(map(target, each["targets"]))} if "targets" in each else {}
        return each | more | ({"jumpTo": named(number, each["jumpTo"])} if "jumpTo" in each else {})

    objects = []
    for pool in world["pools"]:
        spec = {"members": pool["members"]} | ({"policy": pool["policy"]} if pool["policy"] else {})
        objects.append(("ModelPool", pool["name"], spec))
    for chain in world["chains"]:
        rules = list(map(rule, chain["rules"]))
        spec = {"rules": rules} if rules else {}
        if chain["defaults"] or not rules:
            spec |= {"defaults": {"targets": list(map(target, chain["defaults"] or [{"model": "m0"}]))}}
        objects.append(("FrontendModel", chain["name"], spec))
    return yaml.safe_dump_all(
        {"apiVersion": "turnout.dev/v1alpha1", "kind": kind, "metadata": {"name": named(number, name)}, "spec": spec}
        for kind, name, spec in objects
    )


@pytest.fixture
async def backends() -> AsyncIterator[tuple[SimBackend, SimBackend]]:
    """One that serves and one that is going to be gone; neither spends time."""
    fast = {"prefill_tokens_per_second": 0, "decode_tokens_per_second": 0, "vision": True, "serve_messages": True}
    async with (
        SimBackend(SimOptions(models=SERVED, concurrency=8, **fast)) as here,
        SimBackend(SimOptions(models=(AWAY,), **fast)) as gone,
    ):
        yield here, gone


@pytest.fixture
def cases(tmp_path: Path, backends: tuple[SimBackend, SimBackend]) -> list[Case]:
    folder = tmp_path / "manifests"
    folder.mkdir()
    cluster = folder / "cluster.yaml"
    cluster.write_text(CLUSTER.format(here=backends[0].url, gone=backends[1].url))
    found = []
    for number in range(CASES // len(CHAINS)):
        world = a_world(Random(f"{SEED}/{number}"))  # noqa: S311 - dice
        file = folder / f"world-{number}.yaml"
        file.write_text(manifest_of(number, world))
        for name, request in world["requests"].items():
            body = {"model": named(number, name), **request["body"]}
            found.append(Case((cluster, file), request | {"body": body, "roles": []}))
    assert len(found) == CASES
    return found


def routing_of_all(folder: Path) -> Routing:
    """Of every world at once, as `turnout up` has it."""
    reading = read_manifests([(str(file), file.read_text()) for file in sorted(folder.iterdir())])
    assert not reading.problems
    objects = [declare(manifest.document) for manifest in reading.manifests]
    resolution = resolve(objects, placement=PlacedAnywhere(), generation=0)
    assert [verdict for verdict in resolution.verdicts if not verdict.accepted] == []
    return offline(resolution.configs)


def decided(routing: Routing, request: dict[str, Any]) -> tuple[str, str | None, list[str] | int]:
    """Rule, tag, and the models that its targets may lead to or the status of a deny."""
    facts = read(request["path"], request["body"], headers=request["headers"], at=0.0)
    chain = routing.snapshot.find(facts.model, facts.path)
    assert chain is not None
    decision = decide(routing.snapshot, chain, facts)
    outcome = decision.outcome
    found = (
        outcome.status if isinstance(outcome, Deny) else [m for target in outcome.targets for m in models_of(target)]
    )
    return decision.rule, decision.tag or None, found


def models_of(target: Target) -> tuple[str, ...]:
    return tuple(target.models)


def by_command(case: Case, scratch: Path) -> dict[str, Any]:
    """What `turnout dry-run FILES --request FILE` says."""
    scratch.write_text(json.dumps(case.request))
    words = ["dry-run", *map(str, case.files), "--request", str(scratch), "--output", "json"]
    with redirect_stderr(StringIO()):
        done = CliRunner().invoke(app_for(words), words)
    assert done.exit_code == 0, done.output
    return dict(json.loads(done.stdout))


def without_away(said: dict[str, Any]) -> dict[str, Any]:
    """What was said where every declared model counts as serving, were it known that one is not."""
    left = [each for each in said["candidates"] if each["model"] != AWAY]
    reason = "nothing_serving" if not left and said["denied"] is None else None
    return said | {"candidates": left, "reason": reason}


def without_abilities(said: dict[str, Any]) -> dict[str, Any]:
    """What was said, were it not known what models can do: offline knows it of the one that is away, a gateway does not."""
    return said | {"reason": "nothing_serving" if said["reason"] == "model_lacks_capability" else said["reason"]}


def models_in(said: dict[str, Any]) -> set[str]:
    return {each["model"] for each in said["candidates"]}


class Gateway:
    """The cluster, asked as a person and as a client."""

    def __init__(self, person: aiohttp.ClientSession, client: aiohttp.ClientSession) -> None:
        self._person, self._client = person, client

    async def dry_run(self, request: dict[str, Any], *, live: bool = False) -> dict[str, Any]:
        async with self._person.post("/admin/routing/dry-run", json=request | {"live": live}) as response:
            assert response.status == 200, await response.text()
            return dict(await response.json())

    async def ask(self, case: Case) -> tuple[int, str, str, str]:
        """Status, rule and model of a real request; and what the error says."""
        request = case.request
        async with self._client.post(case.path, json=request["body"], headers=request["headers"]) as response:
            body = await response.text()
            said = response.headers
            return response.status, said.get("x-turnout-rule", ""), said.get("x-turnout-model", ""), body


@pytest.fixture
async def gateway(cases: list[Case], up: Any, until: Any, backends: Any) -> AsyncIterator[Gateway]:
    cluster = await up(cases[0].files[0].parent)
    key, admin = cluster.credentials["gatewayKey"], cluster.credentials["admin"]
    async with (
        aiohttp.ClientSession(cluster.url, cookie_jar=aiohttp.CookieJar(unsafe=True)) as person,
        aiohttp.ClientSession(cluster.url, headers={"Authorization": f"Bearer {key}"}) as client,
    ):
        async with person.post("/login", json={"name": admin["name"], "password": admin["password"]}) as response:
            assert response.status == 200
        found = Gateway(person, client)
        await backends[1].stop()
        await until.not_served(cluster, AWAY)
        yield found


@dataclass
class Ways:
    """All of them, side by side."""

    routing: Routing
    gateway: Gateway
    scratch: Path
    seen: Counter[str] = field(default_factory=Counter)
    """How often a decision was of a kind."""

    async def agree(self, case: Case) -> None:
        """The assertions."""
        what = f"TURNOUT_SEED={SEED}, {case.files[1].name}: {json.dumps(case.request)}"
        rule, tag, outcome = decided(self.routing, case.request)
        offline_said = await asyncio.to_thread(by_command, case, self.scratch)
        idle = await self.gateway.dry_run(case.request)
        now = await self.gateway.dry_run(case.request, live=True)
        status, live_rule, live_model, body = await self.gateway.ask(case)

        assert (offline_said["rule"], offline_said["tag"]) == (rule, tag), what
        assert without_away(offline_said) | {"live": False} == without_abilities(idle), what
        assert (idle["denied"] or {}).get("status") == (outcome if isinstance(outcome, int) else None), what
        if not idle["unevaluated"]:  # what only live traffic can tell: here, that nothing serves what a rule leads to
            assert {name: now[name] for name in SAID_ALIKE} == {name: idle[name] for name in SAID_ALIKE}, what
            assert models_in(now) == models_in(idle) <= set(outcome if isinstance(outcome, list) else ()), what
        assert live_rule == now["rule"], what
        if now["denied"]:
            assert (status, live_model) == (now["denied"]["status"], ""), what
        elif now["candidates"]:
            assert (status, live_model) == (200, now["candidates"][0]["model"]), f"{what}: {body}"
        else:
            by_reason = {"nothing_serving": 503, "model_lacks_capability": 400}
            assert (by_reason[now["reason"]], "") == (status, live_model), f"{what}: {body}"
        self.seen["deny"] += isinstance(outcome, int)
        self.seen["jump"] += bool(idle["via"])
        self.seen["pool"] += bool(idle["candidates"] and idle["candidates"][0]["pool"])
        self.seen["nothing"] += idle["reason"] is not None
        self.seen["defaults" if rule.endswith("/defaults") else "rule"] += 1


@pytest.mark.timeout(900)  # a thousand requests, each decided in five ways
async def test_every_request_is_decided_alike_by_the_rules_the_command_the_admin_and_the_gateway(
    cases: list[Case], gateway: Gateway, tmp_path: Path
) -> None:
    # in threads, here and for the command: the backends are served by this loop, and who does not answer counts as gone
    routing = await asyncio.to_thread(routing_of_all, cases[0].files[0].parent)
    ways = Ways(routing, gateway, tmp_path / "request.json")
    for case in cases:
        await ways.agree(case)
    kinds = ("deny", "jump", "pool", "nothing", "defaults", "rule")
    assert all(ways.seen[kind] >= CASES // 50 for kind in kinds), f"too few of a kind to mean anything: {ways.seen}"

    loop = asyncio.get_running_loop()

    @settings(max_examples=CASES, derandomize=True)
    @given(st.sampled_from(cases), st.randoms(use_true_random=False))
    def search(of: Case, chance: Random) -> None:
        request = a_request(chance)
        body = {"model": of.request["body"]["model"], **request["body"]}
        case = Case(of.files, request | {"body": body, "roles": []})
        asyncio.run_coroutine_threadsafe(ways.agree(case), loop).result()

    await asyncio.to_thread(search)  # hypothesis does not wait for what is asynchronous
