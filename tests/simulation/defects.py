"""Defects, each of which replaces one function of the product: the seeds of CI must catch every one.

To add one: name the function, and say what is put in its place; `original` is what stands there.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import Any
from unittest.mock import patch

from turnout_router.lending.owner_leases import Changes
from turnout_router.runtime.effects import Refuse

Made = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Defect:
    """One way in which the product could be wrong."""

    what: str
    target: str
    """`module:Class.function`."""
    make: Callable[[Made], object]
    """The original → what is put in its place."""

    @contextmanager
    def applied(self) -> Iterator[None]:
        """The product has this defect."""
        owner_name, _, name = self.target.rpartition(".")
        owner = resolve_name(owner_name)
        original = owner.__dict__[name]
        function = original.fget if isinstance(original, property) else original
        replacement = self.make(function)
        with patch.object(owner, name, property(replacement) if isinstance(original, property) else replacement):
            yield


def _twice(original: Made) -> Made:
    """A request that came back may be lent again."""

    def lendable(self, ticket):
        was, ticket.was_lent = ticket.was_lent, False
        try:
            return original(self, ticket)
        finally:
            ticket.was_lent = was

    return lendable


def _not_coalesced(original: Made) -> Made:
    def tell(self, trigger):
        self._telling.on_its_way = False
        return original(self, trigger)

    return tell


def _ignores_clearing(original: Made) -> Made:
    return lambda self, answer, now: original(self, answer, now) if answer.leases else Changes()


def _one_slot_more(_: Made) -> Made:
    return lambda self, held, now: (
        held.live(now) and not held.exhausted and self.lent.count(held.lease.helper) <= held.lease.slots
    )


def _at_the_tail(original: Made) -> Made:
    """A request that came back stands behind all others."""

    def take_back(self, ticket, now):
        original(self, ticket, now)
        waiting = self._board.models[ticket.model].waiting
        if ticket in waiting:
            del waiting[ticket]
            waiting[ticket] = None

    return take_back


def _silent_return(original: Made) -> Made:
    """A borrowed request is handed back without a row."""

    def refuse(self, ticket, reason, now, detail=""):
        before = len(self._board.effects)
        original(self, ticket, reason, now, detail)
        self._board.effects[before:] = [e for e in self._board.effects[before:] if isinstance(e, Refuse)]

    return refuse


def _forgetful(original: Made) -> Made:
    def apply(self, answer, now):
        self._heard = (0, 0)
        return original(self, answer, now)

    return apply


DEFECTS = (
    Defect(
        "a 409 is lost: own work that arrives hands nothing back",
        "turnout_router.lending.helper:HelperSide.own_wish",
        lambda _: lambda *_: None,
    ),
    Defect("a request that came back is lent again", "turnout_router.lending.backlog:Backlog.lendable", _twice),
    Defect("events are not coalesced", "turnout_router.lending.owner:OwnerQueue.tell", _not_coalesced),
    Defect(
        "a lease is kept after it was cleared", "turnout_router.lending.owner_leases:Leases.apply", _ignores_clearing
    ),
    Defect(
        "the depth is one too many",
        "turnout_router.runtime.state:ModelState.has_slot",
        lambda _: lambda self: self.spec.depth is None or self.running <= self.spec.depth,
    ),
    Defect("a slot too many is lent", "turnout_router.lending.owner:OwnerQueue._is_free", _one_slot_more),
    Defect("a lease has no end", "turnout_router.lending.owner_leases:Held.live", lambda _: lambda *_: True),
    Defect(
        "a probe lends more than one", "turnout_router.lending.owner_leases:Held.exhausted", lambda _: lambda _: False
    ),
    Defect(
        "a request that came back stands at the tail",
        "turnout_router.runtime.core:RuntimeCore._take_back",
        _at_the_tail,
    ),
    Defect(
        "a request is handed back without its row", "turnout_router.lending.helper:HelperSide.refuse", _silent_return
    ),
    Defect(
        "a client that leaves leaves its lent request behind",
        "turnout_router.runtime.core:RuntimeCore.cancel",
        lambda _: lambda *_: [],
    ),
    Defect("what is too late is not cut off", "turnout_router.lending.lent:Lent.overdue", lambda _: lambda *_: []),
    Defect("an old answer of the master counts", "turnout_router.lending.owner_leases:Leases.apply", _forgetful),
)
