"""Frontend models in the gateway: the snapshot that requests are decided by, and what they are decided from.

Problem: a rule may look at prices and at what serves, and these change while requests come. Idea: everything that is
compiled stands in one immutable `Snapshot`. It is made anew when the configuration or a price changed, never on the path
of a request, and put in the place of the old one in one assignment: a request sees one of the two, whole.

Invariants:

* `snapshot` is always one that compiled; a configuration that does not compile changes nothing.
* A request and its dry-run are decided by the same code from the same facts (`facts_of` and `routing.read` agree).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from aiohttp import web

from turnout_api.config import PriceConfig, RouterConfig
from turnout_api.routing import CannotCompile, Catalog, Explanation, Facts, Place, Routing, compile_snapshot
from turnout_api.routing import body as bodies
from turnout_api.routing.balance import Balance
from turnout_api.routing.conditions import COST_CONDITIONS
from turnout_api.routing.explain import explain
from turnout_api.routing.facts import estimated_tokens, lower_case
from turnout_api.routing.snapshot import Snapshot
from turnout_router.access import Caller
from turnout_router.cluster.table import Endpoint, RoutingTable
from turnout_router.families import paths
from turnout_router.families.errors import GatewayError, InvalidBody
from turnout_router.families.paths import Way
from turnout_router.families.request import RequestFacts
from turnout_router.gateway.counting import Means
from turnout_router.gateway.endpoints import Endpoints
from turnout_router.startable import RouterRefused

MAX_USER_BYTES = 1024
"""Of the field `user` in a form."""

_BY_SIZE = COST_CONDITIONS | {"minInputTokens", "maxInputTokens"}
EVERYTHING = _BY_SIZE | {"headers"}

Prices = Mapping[str, tuple[PriceConfig, ...]]


class Frontends:
    """Of one gateway. Only its router replaces what is in it."""

    def __init__(self, config: RouterConfig) -> None:
        """Raises RouterRefused for rules that do not compile."""
        self._config = config
        self._prices: Prices = {}
        self._table: RoutingTable | None = None
        self.snapshot: Snapshot = self.compiled(config)
        self.looks_at = _looked_at(self.snapshot)
        """Conditions that some rule has: what no rule looks at is not read out of requests."""
        self.pools: Balance[str] = Balance()
        """Turns and latencies of pools' members; what is in flight is counted by endpoint."""
        self.means = Means()

    def compiled(self, config: RouterConfig) -> Snapshot:
        """What the configuration becomes, at the prices that are known now. Raises RouterRefused."""
        try:
            return compile_snapshot(config.frontends, config.pools, self._prices)
        except CannotCompile as error:
            raise RouterRefused(str(error)) from error

    def reconfigure(self, config: RouterConfig, snapshot: Snapshot) -> None:
        """Take a configuration, and the snapshot that `compiled` made of it."""
        self._config, self.snapshot, self.looks_at = config, snapshot, _looked_at(snapshot)
        members = {member.model for pool in config.pools for member in pool.members}
        self.pools.keep(members, {pool.name for pool in config.pools})

    def follow(self, table: RoutingTable) -> bool:
        """The table may have changed: compile anew when a price did. False = it is the same."""
        if table is self._table:
            return False
        self._table = table
        prices = _prices_of(table)
        if prices != self._prices:
            self._prices = prices
            if self._config.frontends:
                self.snapshot = self.compiled(self._config)
        return True

    def answered(self, model: str, seconds: float, now: float) -> None:
        """The head of a good answer came after this long."""
        if self._config.pools:
            self.pools.answered(model, seconds, now)

    def explain(
        self,
        facts: Facts,
        table: RoutingTable,
        endpoints: Endpoints,
        *,
        live: bool,
        now: float,
        may_use: Callable[[str], bool] = lambda _: True,
    ) -> Explanation:
        """What would become of a request. Changes nothing and takes no turn.

        `live` looks at what is in flight, at latencies, turns, and at what is ejected; without it every backend looks idle.
        """
        if not live or not facts.model:  # what asks for no name is sent without a look at these
            routing = Routing(self.snapshot, catalog_of(table, facts.path))
            return explain(routing, facts, means=self.means.values, may_use=may_use)

        def inflight(model: str) -> Sequence[int]:
            return endpoints.inflight(serving(table, model))

        def found(*, ejected: bool) -> Explanation:
            out = {e for e in _endpoints(table) if ejected is bool(endpoints.inside([e], now))}
            routing = Routing(self.snapshot, catalog_of(table, facts.path, without=out))
            # what is ejected is tried last and as it is written: no policy is asked, no turn is taken (`route._along`)
            return explain(
                routing, facts, balance=self.pools, inflight=inflight, means=self.means.values, as_written=ejected
            )

        first, last_resort = found(ejected=False), found(ejected=True)
        known = {tried.model for tried in first.candidates}
        candidates = (*first.candidates, *(t for t in last_resort.candidates if t.model not in known))
        return replace(first if first.candidates else last_resort, candidates=candidates)


def serving(table: RoutingTable, model: str) -> list[Endpoint]:
    """The endpoints of a model that are up."""
    found = table.models.get(model)
    return [e for e in found.endpoints if e.available] if found else []


def catalog_of(
    table: RoutingTable, path: str, *, without: set[Endpoint] | frozenset[Endpoint] = frozenset()
) -> Catalog:
    """What serves on a path, for a dry-run."""
    row = _row(path)

    def places(endpoints: Sequence[Endpoint]) -> tuple[Place, ...]:
        return tuple(
            Place(e.node, e.local_id, e.capabilities)
            for e in endpoints
            if e.available and e not in without and (row is None or paths.way(row, e.family) is not Way.REFUSE)
        )

    declared = dict.fromkeys(table.declared, ())
    serving_now = {name: places(model.endpoints) for name, model in table.models.items()}
    return Catalog(declared | serving_now, abilities={name: m.capabilities for name, m in table.models.items()})


def facts_of(
    request: web.BaseRequest,
    path: paths.Endpoint,
    facts: RequestFacts,
    raw: bytes,
    *,
    caller: Caller,
    budget_used_percent: float | None = None,
    request_id: str,
    now: float,
    looks_at: frozenset[str] = EVERYTHING,
) -> Facts:
    """What rules see of a request that was parsed already. `now`: wall clock.

    `looks_at`: the conditions that there are; what is dear to read and not looked at is left out.
    """
    body = facts.body
    is_sized = not looks_at.isdisjoint(_BY_SIZE)
    return Facts(
        path=path.path,
        model=facts.model,
        capability=path.capability,
        headers=lower_case(request.headers) if "headers" in looks_at else {},
        client="" if caller.is_gateway else caller.name,
        roles=caller.roles,
        stream=facts.stream,
        has_images=facts.has_images,
        has_tools=facts.has_tools,
        has_audio=facts.has_audio,
        input_tokens=estimated_tokens(body) if body is not None and is_sized else None,
        output_tokens=facts.max_tokens,
        user=_user_in_form(facts, raw) if body is None else bodies.user_of(body),
        metadata={} if body is None else bodies.metadata_of(body),
        budget_used_percent=budget_used_percent,
        at=now,
        request_id=request_id,
        body=body,
    )


def _looked_at(snapshot: Snapshot) -> frozenset[str]:
    chains = snapshot.by_name.values()
    return frozenset(c.name for chain in chains for rule in chain.rules for c in rule.conditions)


def _user_in_form(facts: RequestFacts, raw: bytes) -> str | None:
    try:
        return facts.form.text(raw, "user", MAX_USER_BYTES) if facts.form else None
    except InvalidBody:  # longer than any user
        return None


def _row(path: str) -> paths.Endpoint | None:
    try:
        return paths.find("POST", path).endpoint
    except GatewayError:
        return None


def _endpoints(table: RoutingTable) -> set[Endpoint]:
    return {endpoint for model in table.models.values() for endpoint in model.endpoints}


def _prices_of(table: RoutingTable) -> Prices:
    found = {
        name: tuple(dict.fromkeys(e.price for e in model.endpoints if e.price is not None))
        for name, model in table.models.items()
    }
    return {name: prices for name, prices in found.items() if prices}
