"""Route tests: each one's request is decided by the rules that would be served, with the code that the router runs.

A test that fails says so; one that is `required` is not accepted while it fails, and refuses a change that breaks it: where
it passed on what was accepted last, those declared objects give way without which it would pass again. One of them
alone, if there is one; else all rules and pools that changed; else everything that changed.

There is no clock here, and no API keys: a time window, a budget and roles hold in no test, and `maxInflightPerBackend`
holds in each (see `docs/rules.md`).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from turnout_api.resolve.interface import Key, Problem, TestOutcome
from turnout_api.resolve.reasons import Reason
from turnout_api.resources import Resource, RouteTest
from turnout_api.routing import CannotCompile, Chain, Routing, UnreadableRequest, explain, read
from turnout_api.routing.explain import Explanation
from turnout_api.routing.snapshot import Route, reachable

Served = Mapping[Key, Resource]
RoutingOf = Callable[[Served], Routing | None]
"""What routers that serve these objects would route by; None = nothing is served."""

MAX_SUSPECTS = 64
"""Changes that are tried one by one; a larger edit gives way as a whole."""
_RULES = ("FrontendModel", "ModelPool", "SplitRecipe", "Guardian")
_ROUTING_KINDS = (*_RULES, "RouterNode")
"""What a decision hangs on, in the order in which it is suspected."""


def outcomes(admitted: Served, served: Served, routing_of: RoutingOf) -> dict[Key, TestOutcome]:
    """Of every admitted test, also of those that are not served because they fail; none while nothing serves at all."""
    tests = {key: test for key, test in admitted.items() if isinstance(test, RouteTest)}
    routing = routing_of(served) if tests else None
    return {} if routing is None else {key: outcome(test, routing) for key, test in tests.items()}


def failing(served: Served, routing_of: RoutingOf) -> dict[Key, tuple[Problem, ...]]:
    """Required tests that fail, and how."""
    required = {key: test for key, test in served.items() if isinstance(test, RouteTest) and test.spec.required}
    routing = routing_of(served) if required else None
    if routing is None:
        return {}
    found = {key: outcome(test, routing) for key, test in required.items()}
    return {key: (_fails(result),) for key, result in found.items() if not result.passed}


def breaking(
    tests: Iterable[RouteTest], *, now: Served, before: Served, changed: Iterable[Key], routing_of: RoutingOf
) -> dict[Key, tuple[Problem, ...]]:
    """Which of the changed objects break the tests, that is: made them fail, which passed `before`."""
    was = _possible(before, routing_of)
    suspects = sorted(
        (key for key in changed if key.kind in _ROUTING_KINDS), key=lambda key: (_ROUTING_KINDS.index(key.kind), key)
    )
    if was is None or not suspects:
        return {}
    problems: dict[Key, tuple[Problem, ...]] = {}
    for test in tests:
        if outcome(test, was).passed:
            culprits = _culprits(test, suspects, now, before, routing_of)
            problems |= {key: (*problems.get(key, ()), _breaks(test, now, routing_of)) for key in culprits}
    return problems


def warnings(result: TestOutcome | None) -> Iterator[Problem]:
    """Of a test that is not required."""
    if result is not None and not result.passed:
        yield _fails(result)


def outcome(test: RouteTest, routing: Routing) -> TestOutcome:
    """What becomes of the test's request, and whether that is what is expected."""
    request = test.spec.request
    try:
        facts = read(request.path, request.body, headers=request.headers, client=request.client)
    except UnreadableRequest as error:
        return TestOutcome(passed=False, message=error.said)
    explained = explain(routing, facts)
    differences = "; ".join(_differences(test, explained))
    return TestOutcome(passed=not differences, rule=explained.rule or "", model=explained.model, message=differences)


def _differences(test: RouteTest, explained: Explanation) -> Iterator[str]:
    expect = test.spec.expect
    decides = explained.rule or "no rule"
    if expect.rule is not None and expect.rule != explained.rule:
        yield f"expected {expect.rule} to decide, but {decides} does{_why(expect.rule, explained)}"
    denied = explained.denied is not None
    if expect.denied is not None and expect.denied != denied:
        yield f"expected a refusal, but {decides} routes it" if expect.denied else f"{decides} refuses it"
    if expect.model is not None and expect.model != explained.model:
        instead = f"it would go to {explained.model}" if explained.model else f"it goes nowhere ({_nowhere(explained)})"
        yield f"expected model {expect.model}, but {instead}"


def _why(expected: str, explained: Explanation) -> str:
    """Why the expected rule passed the request on, where it did."""
    said = next((d for d in explained.declined if f"{d.frontend}/{d.rule}" == expected), None)
    return f", since of {expected} {said.condition} does not hold: {said.why}" if said else ""


def _nowhere(explained: Explanation) -> str:
    return f"{explained.rule} refuses it" if explained.denied else str(explained.reason)


def _fails(result: TestOutcome) -> Problem:
    return Problem(Reason.ROUTE_TEST_FAILS, result.message, ("spec", "expect"))


def _breaks(test: RouteTest, now: Served, routing_of: RoutingOf) -> Problem:
    routing = routing_of(now)
    said = outcome(test, routing).message if routing else "nothing is served"
    return Problem(
        Reason.BREAKS_ROUTE_TEST,
        f"RouteTest {test.name} is required and would fail: {said}. Correct this object, or the test first",
    )


def _culprits(
    test: RouteTest, suspects: Sequence[Key], now: Served, before: Served, routing_of: RoutingOf
) -> Sequence[Key]:
    def passes_without(keys: Iterable[Key]) -> bool:
        world = {key: resource for key, resource in now.items() if key not in keys}
        world |= {key: before[key] for key in keys if key in before}
        routing = _possible(world, routing_of)
        return routing is not None and outcome(test, routing).passed

    near = _touched(test, now, routing_of) | _touched(test, before, routing_of)
    likely = [key for key in suspects if key.kind == "RouterNode" or key in near]
    if len(likely) <= MAX_SUSPECTS:
        alone = next((key for key in likely if passes_without({key})), None)
        if alone is not None:
            return (alone,)
    rules = [key for key in suspects if key.kind in _RULES]
    return next((keys for keys in (rules, suspects) if keys and passes_without(set(keys))), ())


def _possible(served: Served, routing_of: RoutingOf) -> Routing | None:
    """Of objects that nobody admitted together: half of an edit (two names swapped, a loop), or what an older version took."""
    try:
        return routing_of(served)
    except CannotCompile:
        return None


def _touched(test: RouteTest, served: Served, routing_of: RoutingOf) -> frozenset[Key]:
    """Objects that the test's request may meet on its way, nodes apart."""
    routing = _possible(served, routing_of)
    model = test.spec.request.body.get("model")
    start = routing.snapshot.find(model, test.spec.request.path) if routing and isinstance(model, str) else None
    if start is None:
        return frozenset(key for key in served if key.kind in _RULES)
    found = {Key("FrontendModel", start.name)}
    for chain in reachable(start):
        found |= {Key("FrontendModel", chain.name), *_destinations(chain), *_pools(chain)}
    found |= {key for key in served if key.kind in {"SplitRecipe", "Guardian"}}
    return frozenset(found)


def _destinations(chain: Chain) -> Iterator[Key]:
    """Also those that do not exist."""
    yield from (Key("FrontendModel", o.name) for o in chain.outcomes if o.action == "jump")


def _pools(chain: Chain) -> Iterator[Key]:
    targets = (target for o in chain.outcomes if isinstance(o, Route) for target in o.targets)
    yield from (Key("ModelPool", target.pool_name) for target in targets if target.pool_name)
