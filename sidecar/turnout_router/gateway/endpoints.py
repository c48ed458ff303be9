"""What the gateway knows of its endpoints, and in which order it tries those of one model. Pure.

One mechanism shares requests over the endpoints of a model and over the members of a pool: `turnout_api.routing.balance`.
Endpoints that are unavailable, or lack a capability that the request needs, are left out; those that are ejected come
last. The first of the order is the policy's choice.

Invariant: `balance.inflight` is the number of open exchanges of each endpoint; only `Exchanges.open` and the end of what
it opened change it.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from turnout_api.routing.balance import Balance, order
from turnout_api.vocabulary import Capability, Policy
from turnout_router.cluster.table import Endpoint, PublicModel, RoutingTable
from turnout_router.families import paths
from turnout_router.families.paths import Way
from turnout_router.gateway.ejection import Ejections

Key = tuple[str, str]
"""Node ID and local model ID."""


def no_conversation() -> bytes:
    """For requests that belong to none."""
    return b""


def key_of(endpoint: Endpoint) -> Key:
    """What names it for good."""
    return endpoint.node_id, endpoint.local_id


def able(model: PublicModel, needs: frozenset[Capability], path: paths.Endpoint) -> list[Endpoint]:
    """Endpoints that could answer now."""
    return [
        e
        for e in model.endpoints
        if e.available and needs <= e.capabilities and paths.way(path, e.family) is not Way.REFUSE
    ]


@dataclass(slots=True)
class Endpoints:
    """One owner: the gateway of this process."""

    balance: Balance[Key] = field(default_factory=Balance)
    ejections: Ejections[Key] = field(default_factory=Ejections)

    def order(
        self,
        model: str,
        endpoints: Sequence[Endpoint],
        *,
        policy: Policy,
        now: float,
        affinity: Callable[[], bytes] = no_conversation,
    ) -> list[Endpoint]:
        """The endpoints, best first; those that are ejected last. Takes a turn of the model where there is a choice."""
        inside = self.inside(endpoints, now)
        if len(inside) == len(endpoints):
            return self._ordered(model, endpoints, policy, affinity)
        self.pass_by(endpoints, now)
        return [*self._ordered(model, inside, policy, affinity), *(e for e in endpoints if e not in inside)]

    def inside(self, endpoints: Iterable[Endpoint], now: float) -> list[Endpoint]:
        """Those that are not ejected."""
        return [e for e in endpoints if not self.ejections.is_out((e.node_id, e.local_id), now)]

    def pass_by(self, endpoints: Iterable[Endpoint], now: float) -> None:
        """One request has the choice of these, and goes to those first that are not ejected."""
        if self.ejections.any_ejected():
            for key in {key_of(e) for e in endpoints}:
                if self.ejections.is_out(key, now):
                    self.ejections.passed_by(key)

    def inflight(self, endpoints: Iterable[Endpoint]) -> list[int]:
        """Open exchanges of each."""
        counts = self.balance.inflight
        return [int(counts.get((e.node_id, e.local_id), 0)) for e in endpoints]

    def keep(self, table: RoutingTable) -> None:
        """Forget what the table does not hold any more."""
        keys = {key_of(e) for model in table.models.values() for e in model.endpoints}
        self.balance.keep(keys, {*table.models, *(g for g in self.balance.turns if g.startswith("("))})
        self.ejections.keep(keys)

    def _ordered(
        self, model: str, endpoints: Sequence[Endpoint], policy: Policy, affinity: Callable[[], bytes]
    ) -> list[Endpoint]:
        if len(endpoints) < 2:
            return list(endpoints)
        by_key = {key_of(e): e for e in endpoints}
        key = affinity() if policy is Policy.CACHE_AFFINITY else b""
        turn = self.balance.take_turn(model)
        return [by_key[k] for k in order(policy, list(by_key), turn=turn, seen=self.balance.seen, affinity=key)]
