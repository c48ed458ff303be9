"""The leases that the master honours.

A lease keeps its ID while owner, helper, link and kind stay (two models may be linked in both lanes); each plan renews it. It is honoured until a plan or a change of
links takes it away, or until it is `ttl + GRACE_S` old: the owner times it on its own clock from the moment it got it,
so the master must not be the first to end it. A probe's lease lets one request through; the next probe of the same pair
is a new lease. IDs begin with the epoch, so none comes back after a restart.
"""

from collections import OrderedDict
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from turnout_api.lending import Lease, LeaseKind, ModelRef
from turnout_router.lending.nodes import lease_prefix
from turnout_router.lending.planning import Granted, LiveLease

GRACE_S = 5.0
"""How much longer than its lifetime a lease is honoured: the way to the owner and back."""
PAST_LEASES = 256
"""Ended leases that are remembered, so that the row of a refused relay can say whose it was."""


@dataclass(slots=True)
class Held:
    """One lease, as the master holds it."""

    id: str
    granted: Granted
    first_at: float
    renewed_at: float
    used: int = 0
    """Requests that were let through under it."""

    @property
    def spent(self) -> bool:
        return self.granted.requests is not None and self.used >= self.granted.requests

    @property
    def terms(self) -> tuple[str, int, int | None]:
        """What the owner must know; the predictions beside it change with every plan."""
        return self.id, self.granted.slots, self.granted.requests


class LeaseBook:
    """All leases of one epoch."""

    def __init__(self, epoch: int) -> None:
        self._prefix = lease_prefix(epoch)
        self._count = 0
        self._by_id: dict[str, Held] = {}
        self._by_owner: dict[ModelRef, tuple[Held, ...]] = {}
        self._past: OrderedDict[str, Granted] = OrderedDict()
        self._probed_at: dict[tuple[ModelRef, ModelRef], float] = {}

    def replace(self, plan: Iterable[Granted], now: float, ttl_s: float) -> set[ModelRef]:
        """The leases are those of this plan, and no others. Returns the owners that must be told."""
        self._note_idle_probes(now, ttl_s)
        before = {_place(held.granted): held for held in self._by_id.values()}
        told = {owner: tuple(held.terms for held in leases) for owner, leases in self._by_owner.items()}
        by_owner: dict[ModelRef, tuple[Held, ...]] = {}
        for granted in plan:
            held = self._renew(before.get(_place(granted)), granted, now, ttl_s)
            by_owner[granted.owner] = (*by_owner.get(granted.owner, ()), held)
        self._by_owner = by_owner
        self._set([held for leases in by_owner.values() for held in leases])
        changed = {owner for owner, leases in by_owner.items() if tuple(h.terms for h in leases) != told.get(owner)}
        return changed | (told.keys() - by_owner.keys())

    def drop(self, gone: Collection[str], of_nodes: Collection[str] = ()) -> set[ModelRef]:
        """Without a plan: end leases by ID, and all to or of these nodes. Returns the owners that must be told."""

        def stays(held: Held) -> bool:
            granted = held.granted
            return held.id not in gone and granted.helper.node not in of_nodes and granted.owner.node not in of_nodes

        changed = {held.granted.owner for held in self._by_id.values() if not stays(held)}
        for owner in changed:
            left = tuple(held for held in self._by_owner[owner] if stays(held))
            if left:
                self._by_owner[owner] = left
            else:
                del self._by_owner[owner]
        self._set([held for held in self._by_id.values() if stays(held)])
        return changed

    def honoured(self, lease: str, now: float, ttl_s: float) -> Held | None:
        """The lease, if a request may go out under it."""
        held = self._by_id.get(lease)
        if held is None or held.spent or now > held.renewed_at + ttl_s + GRACE_S:
            return None
        return held

    def use(self, held: Held, now: float) -> None:
        """A request goes out under it."""
        held.used += 1
        if held.granted.kind is LeaseKind.PROBE:
            self._probed_at[held.granted.owner, held.granted.helper] = now

    def told_to(self, owner: ModelRef, now: float, ttl_s: float) -> tuple[Lease, ...]:
        """An owner's leases as they are said on the wire, with the lifetime that is left."""
        leases = []
        for held in self._by_owner.get(owner, ()):
            left_s = held.renewed_at + ttl_s - now
            if left_s > 0 and not held.spent:
                leases.append(_on_the_wire(held, left_s))
        return tuple(leases)

    def owners(self) -> Collection[ModelRef]:
        """Owners with a lease."""
        return self._by_owner.keys()

    def all(self) -> Iterable[Held]:
        return self._by_id.values()

    def past(self, lease: str) -> Granted | None:
        """The terms of a lease that is held or has ended lately."""
        held = self._by_id.get(lease)
        return held.granted if held is not None else self._past.get(lease)

    def live(self, now: float, ttl_s: float) -> tuple[LiveLease, ...]:
        """What a plan is told; a spent probe is among them."""
        return tuple(
            LiveLease(
                id=held.id,
                owner=held.granted.owner,
                helper=held.granted.helper,
                kind=held.granted.kind,
                slots=held.granted.slots,
                granted_at=held.renewed_at,
                used=held.used,
            )
            for held in self._by_id.values()
            if now <= held.renewed_at + ttl_s + GRACE_S
        )

    def probed_at(self) -> dict[tuple[ModelRef, ModelRef], float]:
        """(owner, helper) → when a probe of the pair was last used, or lay unused for a lifetime."""
        return dict(self._probed_at)

    def forget_pairs(self, linked: Collection[tuple[ModelRef, ModelRef]]) -> None:
        """Only these pairs are linked now."""
        self._probed_at = {pair: at for pair, at in self._probed_at.items() if pair in linked}

    def _note_idle_probes(self, now: float, ttl_s: float) -> None:
        """A probe that its owner had no request for must not keep the other pairs from their turn."""
        for held in self._by_id.values():
            if held.granted.kind is LeaseKind.PROBE and not held.used and now >= held.first_at + ttl_s:
                self._probed_at[held.granted.owner, held.granted.helper] = now

    def _renew(self, held: Held | None, granted: Granted, now: float, ttl_s: float) -> Held:
        same = held is not None and held.granted.kind is granted.kind
        if held is None or not same or held.spent or now > held.renewed_at + ttl_s + GRACE_S:
            self._count += 1
            return Held(f"{self._prefix}{self._count}", granted, now, now)
        held.granted, held.renewed_at = granted, now
        return held

    def _set(self, leases: list[Held]) -> None:
        before, self._by_id = self._by_id, {held.id: held for held in leases}
        for lease, held in before.items():
            if lease not in self._by_id:
                self._past[lease] = held.granted
        while len(self._past) > PAST_LEASES:
            self._past.popitem(last=False)


def _place(granted: Granted) -> tuple[ModelRef, ModelRef, str]:
    return granted.owner, granted.helper, granted.link


def _on_the_wire(held: Held, left_s: float) -> Lease:
    granted = held.granted
    return Lease(
        id=held.id,
        helper=granted.helper,
        slots=granted.slots,
        ttl_ms=max(1, round(left_s * 1000)),
        kind=granted.kind,
        switch_s=granted.switch_s,
        owner_fit=granted.owner_fit,
        helper_fit=granted.helper_fit,
        service_source=granted.service_source,
        requests=granted.requests,
        context_window=granted.context_window,
        vision=granted.vision,
        lane=granted.lane,
    )
