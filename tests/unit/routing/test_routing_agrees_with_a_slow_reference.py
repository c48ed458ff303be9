"""A second evaluator, written from the text and sharing no code with the first, agrees with it on made-up chains and requests.

It reads raw rules and raw requests, recurses, and prepares nothing.
"""

from hypothesis import given, settings
from hypothesis import strategies as st

from turnout_api.config import FrontendConfig, PoolConfig, PoolMemberConfig, PriceConfig, RuleConfig, TargetConfig
from turnout_api.routing import Place, compile_snapshot, decide, declined, explain, read
from turnout_api.routing.balance import Balance
from turnout_api.routing.catalog import Catalog, Routing
from turnout_api.vocabulary import Capability, Policy

MODELS = ("m1", "m2", "m3", "m4")
FRONTENDS = ("f1", "f2", "f3", "f4", "f5")
POOLS = ("p1", "p2")


class Reference:
    """The texts, word by word."""

    def __init__(self, frontends, pools, prices, serving, busy):
        self.frontends = {f.name: f for f in frontends}
        self.pools = {p.name: p for p in pools}
        self.prices, self.serving, self.busy = prices, serving, busy

    def decide(self, name, request, cost, via=()):
        frontend = self.frontends[name]
        for rule in frontend.rules:
            if rule.action == "Jump" and rule.jump_to not in self.frontends:
                continue
            if all(self.holds(key, wanted, rule=rule, request=request, cost=cost) for key, wanted in rule.when.items()):
                if rule.action == "Jump":
                    return self.decide(rule.jump_to, request, cost, (*via, rule))
                return f"{name}/{rule.name}", rule.action, rule.targets, via, rule.tag
        return f"{name}/defaults", "Route", frontend.default_targets, via, ""

    def holds(self, key, wanted, /, *, rule, request, cost):
        body, headers = request["body"], {name.lower(): value for name, value in request["headers"].items()}
        tokens, asked = self.input_tokens(body), body.get("max_tokens")
        counts = [n for model in self.backends(rule) for n in self.busy.get(model, [])]
        meaning = {
            "stream": lambda: body.get("stream", False) == wanted,
            "hasTools": lambda: bool(body.get("tools")) == wanted,
            "hasImages": lambda: ("image" in str(body.get("messages"))) == wanted,
            "minInputTokens": lambda: tokens >= wanted,
            "maxInputTokens": lambda: tokens <= wanted,
            "minOutputTokens": lambda: asked is not None and asked >= wanted,
            "maxOutputTokens": lambda: asked is not None and asked <= wanted,
            "minRequestCostMicros": lambda: cost is not None and cost >= wanted,
            "maxRequestCostMicros": lambda: cost is not None and cost <= wanted,
            "clients": lambda: request["client"] in wanted,
            "endpoints": lambda: request["path"] in wanted,
            "users": lambda: body.get("user") in wanted,
            "metadata": lambda: all(body.get("metadata", {}).get(k) == v for k, v in wanted.items()),
            "headers": lambda: all(self.header(headers.get(name), how) for name, how in wanted.items()),
            "maxInflightPerBackend": lambda: any(count < wanted for count in counts),
        }
        return meaning[key]()

    @staticmethod
    def header(value, how):
        if "present" in how:
            return (value is not None) == how["present"]
        if value is None:
            return False
        return value == how["exact"] if "exact" in how else value.startswith(how["prefix"])

    @staticmethod
    def input_tokens(body):
        text = body.get("prompt", "")
        for message in body.get("messages", []):
            text += "".join(message) + message["role"]
            content = message["content"]
            for part in [content] if isinstance(content, str) else content:
                text += part if isinstance(part, str) else "".join(part) + part["type"]
        for tool in body.get("tools", []):
            text += "".join(tool) + "".join(tool.values())
        return (len(text.encode()) + 3) // 4

    def backends(self, rule):
        if rule.action == "Deny":
            return set()
        if rule.action == "Route":
            return self.models(rule.targets)
        there = self.frontends[rule.jump_to]
        return self.models([*(t for r in there.rules for t in r.targets), *there.default_targets])

    def models(self, targets):
        found = set()
        for target in targets:
            if target.model:
                found.add(target.model)
            elif target.pool in self.pools:
                found |= {member.model for member in self.pools[target.pool].members}
        return found

    def reach(self, name):
        if name not in self.frontends:
            return set()
        frontend = self.frontends[name]
        found = self.models(frontend.default_targets)
        for rule in frontend.rules:
            found |= self.models(rule.targets) | self.reach(rule.jump_to)
        return found

    def cost(self, name, body):
        asked = body.get("max_tokens")
        costs = []
        for model in self.reach(name):
            price = self.prices.get(model)
            if price is None or (asked is None and price.output_micros_per_million_tokens):
                continue
            micros = price.input_micros_per_million_tokens * self.input_tokens(body)
            micros += price.output_micros_per_million_tokens * (asked or 0)
            costs.append((2 * micros + 10**6) // (2 * 10**6) + price.micros_per_request)
        return min(costs, default=None)

    def candidates(self, targets):
        """Of each target the models that serve, sorted where a policy chose their order."""
        seen, groups = set(), []
        for target in targets:
            group = sorted(m for m in self.models([target]) if m in self.serving and m not in seen)
            seen |= set(group)
            groups += [group] if group else []
        return groups


TOKENS = st.sampled_from([0, 5, 10, 20])
"""Few numbers, so that requests often stand exactly at a bound."""
MICROS = st.sampled_from([0, 5, 10, 20])
CONDITIONS = {
    "stream": st.booleans(),
    "hasTools": st.booleans(),
    "hasImages": st.booleans(),
    "minInputTokens": TOKENS,
    "maxInputTokens": TOKENS,
    "minOutputTokens": TOKENS,
    "maxOutputTokens": TOKENS,
    "minRequestCostMicros": MICROS,
    "maxRequestCostMicros": MICROS,
    "clients": st.lists(st.sampled_from(["ci", "web"]), min_size=1, unique=True),
    "endpoints": st.just(["/v1/chat/completions"]),
    "users": st.just(["anna"]),
    "metadata": st.just({"job": "a"}),
    "headers": st.dictionaries(
        st.sampled_from(["x-team", "x-other"]),
        st.sampled_from([{"exact": "red"}, {"prefix": "r"}, {"present": True}, {"present": False}]),
        min_size=1,
    ),
    "maxInflightPerBackend": st.integers(1, 4),
}


@st.composite
def conditions(draw):
    names = draw(st.lists(st.sampled_from(sorted(CONDITIONS)), max_size=3, unique=True))
    when = {name: draw(CONDITIONS[name]) for name in names}
    for end in ("InputTokens", "OutputTokens", "RequestCostMicros"):  # the schema refuses min above max
        if when.get(f"min{end}", 0) > when.get(f"max{end}", 99):
            when[f"min{end}"], when[f"max{end}"] = when[f"max{end}"], when[f"min{end}"]
    return when


TARGETS = st.lists(
    st.builds(lambda m: TargetConfig(model=m), st.sampled_from(MODELS))
    | st.builds(lambda p: TargetConfig(pool=p), st.sampled_from((*POOLS, "gone"))),
    max_size=3,
)


@st.composite
def chains(draw):
    """Jumps lead to later names only, and now and then to nothing."""
    made = []
    for index, name in enumerate(FRONTENDS):
        rules = []
        for number in range(draw(st.integers(0, 4))):
            action = draw(st.sampled_from(["Route", "Deny", "Jump", "Jump"]))
            rules.append(
                RuleConfig(
                    name=f"r{number}",
                    when=draw(conditions()),
                    action=action,
                    targets=draw(TARGETS) if action == "Route" else [],
                    deny_status=403 if action == "Deny" else None,
                    jump_to=draw(st.sampled_from((*FRONTENDS[index + 1 :], "gone"))) if action == "Jump" else "",
                    tag=draw(st.sampled_from(["", "t1", "t2"])),
                )
            )
        made.append(FrontendConfig(name=name, model_name=name, rules=rules, default_targets=draw(TARGETS)))
    return draw(st.permutations(made))


POOL_CONFIGS = st.tuples(
    *(
        st.builds(
            PoolConfig,
            name=st.just(name),
            policy=st.sampled_from([None, *Policy]),
            members=st.lists(
                st.builds(PoolMemberConfig, model=st.sampled_from(MODELS), weight=st.integers(1, 5)),
                min_size=1,
                unique_by=lambda member: member.model,
            ),
        )
        for name in POOLS
    )
)
PRICES = st.dictionaries(
    st.sampled_from(MODELS),
    st.builds(
        PriceConfig,
        input_micros_per_million_tokens=st.sampled_from([0, 250_000, 1_000_000]),
        output_micros_per_million_tokens=st.sampled_from([0, 500_000, 2_000_000]),
        micros_per_request=st.integers(0, 9),
    ),
)
MESSAGE = st.fixed_dictionaries(
    {
        "role": st.just("user"),
        "content": st.text(max_size=40) | st.just([{"type": "image"}]),
    }
)
REQUESTS = st.fixed_dictionaries(
    {
        "path": st.sampled_from(["/v1/chat/completions", "/v1/completions"]),
        "client": st.sampled_from(["", "ci", "web"]),
        "headers": st.dictionaries(st.sampled_from(["X-Team", "x-other"]), st.sampled_from(["red", "rouge", ""])),
        "body": st.fixed_dictionaries(
            {"model": st.sampled_from(FRONTENDS)},
            optional={
                "stream": st.booleans(),
                "max_tokens": TOKENS,
                "prompt": TOKENS.map(lambda tokens: "x" * 4 * tokens) | st.text(max_size=60),
                "messages": st.lists(MESSAGE, max_size=2),
                "tools": st.just([{"type": "function"}]),
                "user": st.sampled_from(["anna", "bob"]),
                "metadata": st.just({"job": "a"}),
            },
        ),
    }
)
BUSY = st.dictionaries(st.sampled_from(MODELS), st.lists(st.integers(0, 5), max_size=3))
SEES = frozenset({Capability.TEXT, Capability.VISION})


CLUSTERS = st.fixed_dictionaries(
    {
        "frontends": chains(),
        "pools": POOL_CONFIGS,
        "prices": PRICES,
        "serving": st.frozensets(st.sampled_from(MODELS)),
        "busy": BUSY,
    }
)


@settings(max_examples=500)
@given(cluster=CLUSTERS, requests=st.lists(REQUESTS, min_size=1, max_size=4), turn=st.integers(0, 99))
def test_both_evaluators_agree(cluster, requests, turn):
    reference = Reference(**cluster)
    prices = {model: [price] for model, price in cluster["prices"].items()}
    snapshot = compile_snapshot(cluster["frontends"], cluster["pools"], prices)
    catalog = Catalog({model: (Place("n", model, SEES),) for model in cluster["serving"]})
    live = {"inflight": lambda model: cluster["busy"].get(model, ())}
    for request in requests:
        facts = read(request["path"], request["body"], headers=request["headers"], client=request["client"])
        name = request["body"]["model"]
        cost = reference.cost(name, request["body"])
        rule, action, targets, via, tag = reference.decide(name, request, cost)

        decision = decide(snapshot, snapshot.chains[name], facts, **live)
        answer = explain(Routing(snapshot, catalog), facts, balance=Balance(turns=dict.fromkeys(POOLS, turn)), **live)

        assert decision.rule == answer.rule == rule
        assert decision.given.cost().micros == answer.cost_micros == cost
        assert [jump.name for jump in decision.jumps] == [jump.name for jump in via]
        assert decision.tag == (tag or next((jump.tag for jump in reversed(via) if jump.tag), ""))
        assert answer.action == action.lower()
        assert_expanded([c.model for c in answer.candidates], reference.candidates(targets))
        asked = reference.frontends[name]
        passed = [(no.frontend, no.rule) for no in declined(decision)]
        assert passed == list(before(reference, asked, via, rule))


def assert_expanded(models, groups):
    """Target by target; within one, in whatever order its policy says."""
    for group in groups:
        assert sorted(models[: len(group)]) == group
        models = models[len(group) :]
    assert models == []


def before(reference, frontend, via, rule):
    """Rules before the deciding one, along the jumps."""
    for passed in (*via, None):
        for one in frontend.rules:
            if one is passed or (passed is None and f"{frontend.name}/{one.name}" == rule):
                break
            yield frontend.name, one.name
        if passed is not None:
            frontend = reference.frontends[passed.jump_to]
