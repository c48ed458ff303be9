"""Defects, each of which replaces one function of the product: the seeds of CI must catch every one.

To add one: name the function, and say what is put in its place; `original` is what stands there.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from pkgutil import resolve_name
from typing import Any
from unittest.mock import patch

from turnout_api.lending import ModelRef, Outcome, Reason, Work
from turnout_cli.simulating.scenarios import Kind
from turnout_router.lending.hold import Hold
from turnout_router.lending.job import Done
from turnout_router.lending.owner_leases import Changes
from turnout_router.runtime.effects import Refuse

Made = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Defect:
    """One way in which the product could be wrong."""

    what: str
    target: str
    """`module:Class.function`, or `module:function`."""
    make: Callable[[Made], object]
    """The original → what is put in its place."""
    caught_by: tuple[Kind, int] = Kind.MIXED, 1
    """The seed that is tried first, so that the test is quick; when it does not catch it, one of the others has to."""

    @contextmanager
    def applied(self) -> Iterator[None]:
        """The product has this defect."""
        module, _, path = self.target.partition(":")
        owner_path, _, name = path.rpartition(".")
        owner = resolve_name(f"{module}:{owner_path}") if owner_path else import_module(module)
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
        self._telling.heard = (0, 0)
        return original(self, answer, now)

    return apply


def _rounds_again(original: Made) -> Made:
    """A new kind of lease keeps the ID of the one before it."""

    def renew(self, held, granted, now, ttl_s):
        count = self._count
        made = original(self, held, granted, now, ttl_s)
        if held is not None and made is not held:
            made.id, self._count = held.id, count
        return made

    return renew


def _says_less(original: Made) -> Made:
    """The plan has rows of what it grants alone."""

    def plan(self, current, names, now):
        result = original(self, current, names, now)
        return replace(result, rows=tuple(row for row in result.rows if not row.reason))

    return plan


def _without_rows(outcome: Outcome) -> Callable[[Made], Made]:
    """Rows of one outcome are lost."""

    def make(original: Made) -> Made:
        return lambda self, row: None if row.outcome is outcome else original(self, row)

    return make


def _any_end_is_well(original: Made) -> Made:
    """A job that failed, or whose client left, counts as a sample."""

    def release(self, ticket, now, done=None):
        known = done is not None and done.work is not None
        return original(self, ticket, now, Done(True, done.work if known else Work(input_tokens=100, output_tokens=50)))

    return release


def _waiting_counts(original: Made) -> Made:
    """A job is timed from when it was handed to the backend."""

    def sample(self, ticket, done, now):
        ticket.began_at = ticket.granted_at
        return original(self, ticket, done, now)

    return sample


def _admits_the_dead(_: Made) -> Made:
    """A lease that the master has ended still lets requests through."""
    return lambda self, lease, _: self._book.past(lease)


def _shared_helper(original: Made) -> Made:
    """A plan forgets that it has given a helper away."""

    def plan(self, current, names, now):
        result = original(self, current, names, now)
        have = {granted.owner for granted in result.granted}
        for row in result.rows:
            owner, helper = ModelRef(row.owner_node, row.owner_model), ModelRef(row.helper_node, row.helper_model)
            first = next((granted for granted in result.granted if granted.helper.node == helper.node), None)
            if first is not None and owner not in have:
                row.outcome, row.reason = Outcome.GRANTED, ""
                return replace(result, granted=(*result.granted, replace(first, owner=owner, helper=helper)))
        return result

    return plan


def _but(reason: Reason) -> Callable[[Made], Made]:
    """One reason against a lease is overlooked."""

    def make(original: Made) -> Made:
        return lambda offer: None if (found := original(offer)) is reason else found

    return make


def _last_displaced(original: Made) -> Made:
    """The model that was displaced last is restored, an intermediate one."""

    def displaced(self, unit, *, own, wanted):
        self.unit = unit
        return original(self, unit, own=own, wanted=wanted)

    return displaced


def _newest_first(original: Made) -> Made:
    """Not the oldest, but the newest lendable request is lent."""

    def request_for(self, held, now):
        waiting = self.model.waiting
        self.model.waiting = dict(reversed(waiting.items()))
        try:
            return original(self, held, now)
        finally:
            self.model.waiting = waiting

    return request_for


def _streams_too(_: Made) -> Made:
    def lendable(self, ticket):
        job = ticket.job
        return job is not None and not ticket.was_lent and ticket.borrow is None and job.lane is self.lane

    return lendable


def _postpone(restore):
    restore.due = None


def _measured(core, report, now):
    core._measurements.add_load(report.model, report.seconds, now)
    return report


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
    Defect(
        "a lease has no end",
        "turnout_router.lending.owner_leases:Held.live",
        lambda _: lambda *_: True,
        caught_by=(Kind.CROWDED, 36),
    ),
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
    Defect(
        "what is too late is not cut off",
        "turnout_router.lending.lent:Lent.overdue",
        lambda _: lambda *_: [],
        caught_by=(Kind.CROWDED, 2),
    ),
    Defect(
        "an old answer of the master counts",
        "turnout_router.lending.owner:OwnerQueue.apply",
        _forgetful,
        caught_by=(Kind.CROWDED, 1),
    ),
    Defect(
        "news is lost while an event is on its way",
        "turnout_router.lending.owner:OwnerQueue.tell",
        lambda original: lambda self, trigger: None if self._telling.on_its_way else original(self, trigger),
    ),
    Defect("a stream is lent", "turnout_router.lending.backlog:Backlog.lendable", _streams_too),
    Defect("the newest request is lent first", "turnout_router.lending.owner:OwnerQueue._request_for", _newest_first),
    Defect(
        "a slot of a lease stays empty",
        "turnout_router.lending.owner:OwnerQueue._is_free",
        lambda original: lambda self, held, now: original(self, held, now) and not self.lent.count(held.lease.helper),
    ),
    Defect(
        "a lease goes on after something came back under it",
        "turnout_router.lending.owner_leases:Leases.rest",
        lambda _: lambda *_: None,
    ),
    Defect(
        "a healthy job is cut off",
        "turnout_router.lending.lent:Lent.overdue",
        lambda _: lambda self, now: [out for out in self.all.values() if not out.stopping and now > out.at + 5.0],
    ),
    Defect(
        "a returned request has no row",
        "turnout_router.lending.owner:OwnerQueue._write",
        _without_rows(Outcome.RETURNED),
    ),
    Defect(
        "a cleared lease has no row",
        "turnout_router.lending.owner:OwnerQueue._write",
        _without_rows(Outcome.LEASE_CLEARED),
    ),
    Defect(
        "a hold has no row",
        "turnout_router.lending.owner:OwnerQueue._write",
        _without_rows(Outcome.HELD_FOR_HELPER),
        caught_by=(Kind.CROWDED, 19),
    ),
    Defect(
        "a hold has no end",
        "turnout_router.lending.hold:Prospect.hold",
        lambda _: lambda self, ticket, now: Hold(ticket, self.helper, now + 1e6),
        caught_by=(Kind.MIXED, 117),
    ),
    Defect(
        "an owner that generates nothing holds",
        "turnout_router.runtime.core:RuntimeCore._give",
        lambda original: lambda self, now: None if self._owners.lend(now) else original(self, now),
        caught_by=(Kind.CROWDED, 19),
    ),
    Defect("a job that ended badly is a sample", "turnout_router.runtime.core:RuntimeCore.release", _any_end_is_well),
    Defect(
        "a sample has the time of the job before it",
        "turnout_router.runtime.serving:Serving._sample",
        _waiting_counts,
    ),
    Defect(
        "a load that failed is measured",
        "turnout_router.runtime.core:RuntimeCore._end_load",
        lambda original: lambda self, unit, now, *more: _measured(self, original(self, unit, now, *more), now),
        caught_by=(Kind.CROWDED, 3),
    ),
    Defect(
        "own work that waits behind borrowed work leaves no row",
        "turnout_router.lending.helper:HelperSide._is_in_the_way",
        lambda _: lambda *_: False,
    ),
    Defect(
        "borrowed work is taken beside own work",
        "turnout_router.lending.helper:HelperSide.own_works",
        lambda _: lambda _: False,
    ),
    Defect(
        "more borrowed work than may be is beyond recall",
        "turnout_router.lending.helper:HelperSide.has_room",
        lambda _: lambda *_: True,
        caught_by=(Kind.CROWDED, 23),
    ),
    Defect(
        "a helper is leased although its link forbids the load",
        "turnout_router.lending.pricing:_forbidden",
        _but(Reason.LOAD_FORBIDDEN),
        caught_by=(Kind.CROWDED, 4),
    ),
    Defect(
        "a helper is leased although it is busy with its own work",
        "turnout_router.lending.pricing:_forbidden",
        _but(Reason.HELPER_NOT_ACCEPTING),
    ),
    Defect(
        "what was displaced is not restored",
        "turnout_router.lending.restore:Restore.wait",
        lambda _: lambda *_: None,
        caught_by=(Kind.CROWDED, 5),
    ),
    Defect(
        "an intermediate model is restored",
        "turnout_router.lending.restore:Restore.displaced",
        _last_displaced,
        caught_by=(Kind.CROWDED, 5),
    ),
    Defect(
        "a restore does not wait for its delay",
        "turnout_router.lending.restore:Restore.wait",
        lambda original: lambda self, now, delay_s: original(self, now, delay_s / 2),
    ),
    Defect(
        "own work only postpones a restore",
        "turnout_router.lending.restore:Restore.cancel",
        lambda _: _postpone,
        caught_by=(Kind.CROWDED, 19),
    ),
    Defect(
        "a request passes under a dead lease",
        "turnout_router.lending.master:MasterCore._overtaken",
        _admits_the_dead,
    ),
    Defect(
        "a request under a live lease is refused",
        "turnout_router.lending.leases:LeaseBook.honoured",
        lambda original: lambda self, lease, now, ttl_s: original(self, lease, now, ttl_s / 10 - 4.9),
    ),
    Defect(
        "a probe that was used is told again",
        "turnout_router.lending.leases:LeaseBook.use",
        lambda _: lambda *_: None,
        caught_by=(Kind.CROWDED, 4),
    ),
    Defect("a helper is leased to two owners", "turnout_router.lending.master:MasterCore._plan", _shared_helper),
    Defect("a decision against a helper has no row", "turnout_router.lending.master:MasterCore._plan", _says_less),
    Defect("an ended lease gives its ID to the next", "turnout_router.lending.leases:LeaseBook._renew", _rounds_again),
    Defect(
        "an owner is not told that its lease is gone",
        "turnout_router.lending.leases:LeaseBook.replace",
        lambda original: lambda *given: original(*given) and set(),
    ),
    Defect(
        "an event is never answered",
        "turnout_router.lending.owners:Owner.abandon",
        lambda original: lambda self: original(self) and None,
        caught_by=(Kind.CROWDED, 9),
    ),
    Defect(
        "what a helper still runs is taken from it",
        "turnout_router.lending.stalls:Relays.said",
        lambda original: lambda self, node, _, as_of, now: original(self, node, set(), as_of, now),
        caught_by=(Kind.CROWDED, 2),
    ),
    Defect(
        "a relay that could not be passed on has no row",
        "turnout_router.lending.master:MasterCore.relay_ended",
        lambda original: lambda self, *given, **more: original(self, *given, **more) and [],
    ),
)
