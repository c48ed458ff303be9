"""The core among other nodes: whatever clients, helpers, owners and the master do, in whatever order, nothing is lost.

`a` lends, `b` borrows, `c` is in no link. The world keeps its own books: each request is at one place at a time.
"""

from collections import Counter
from dataclasses import replace

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from turnout_api.lending import Fit, Lease, LeaseAnswer, LeaseKind, ModelRef, Work
from turnout_api.vocabulary import Lane
from turnout_router.lending.effects import Write
from turnout_router.lending.job import Borrow, Done, Job
from turnout_router.lending.links import Link
from turnout_router.lending.measure import Measurements, Sample
from turnout_router.lending.settings import LendingSettings
from turnout_router.runtime.core import RuntimeCore
from turnout_router.runtime.effects import (
    Grant,
    Lend,
    LentEnding,
    News,
    Refuse,
    StartLoad,
    StartUnload,
    StopLent,
)
from turnout_router.runtime.interface import OffloadReturned
from turnout_router.runtime.plan import ModelSpec, Plan, UnitSpec
from turnout_router.runtime.state import Phase

QUEUE = 6
WAIT_S = 100.0
NAMES = ("a", "b", "c")
WORK = Work(1000.0, 100.0)
LINKS = (
    Link("lends", Lane.TEXT, ModelRef("here", "a"), ModelRef("h1", "m")),
    Link("lends too", Lane.TEXT, ModelRef("here", "a"), ModelRef("h2", "m")),
    Link("borrows", Lane.TEXT, ModelRef("there", "m"), ModelRef("here", "b")),
)
FIT = Fit(10.0, samples=20, uniform=WORK)
ENDINGS = list(LentEnding)


class World(RuleBasedStateMachine):
    exclusive = True

    @initialize(
        depth=st.integers(1, 3),
        first_that_gains=st.booleans(),
        beyond=st.sampled_from([None, 1]),
        restore=st.sampled_from([1.5, None]),
        counts_ahead=st.booleans(),
    )
    def begin(self, depth, first_that_gains, beyond, restore, counts_ahead):
        self.now = 0.0
        self.lending = LendingSettings(
            backend_depth=depth,
            first_that_gains=first_that_gains,
            borrowed_beyond_recall=beyond,
            restore_delay_s=restore,
            cut_off_counts_ahead=counts_ahead,
        )
        measurements = Measurements(self.lending)
        for _ in range(20):
            measurements.add(Sample("a", 0.0, 10.0, WORK, 4000))
        self.core = RuntimeCore(self.plan(LINKS), 0.0, measurements, "run")
        self.waiting, self.running, self.lent = {}, set(), {}
        self.stopping, self.were_lent, self.slots = set(), set(), Counter()
        self.accepted = self.ended = self.seq = self.returned = 0
        self.on_its_way = self.announced = False
        self.job: StartLoad | StartUnload | None = None
        self.drained = False
        self.jobs: list = []
        self.take(self.core.start(0.0))

    def plan(self, links):
        return Plan(
            exclusive=self.exclusive,
            eager=False,
            max_queue_depth=QUEUE,
            max_queue_wait_s=WAIT_S,
            probe_interval_s=5.0,
            units=tuple(UnitSpec(f"u-{name}", name, name, supervised=True, kept=False) for name in NAMES),
            models=tuple(
                ModelSpec(name, f"u-{name}", name, self.lending.backend_depth, direct=False) for name in NAMES
            ),
            node="here",
            links=links,
            lending=self.lending,
        )

    # The world's books

    def take(self, effects):
        for effect in effects:
            match effect:
                case Grant(ticket):
                    self.granted(ticket)
                case Lend(ticket, lease):
                    self.lend(ticket, lease)
                case Refuse(ticket, error):
                    self.refused(ticket, error)
                case _:
                    self.take_other(effect)

    def take_other(self, effect):
        match effect:
            case StopLent(ticket):
                assert ticket in self.lent
                assert ticket not in self.stopping, "stopped twice"
                self.stopping.add(ticket)
            case News():
                assert not self.on_its_way, "one event at a time"
                assert not self.announced, "announced twice"
                self.announced = True
            case StartLoad() | StartUnload():
                self.jobs.append(effect)
                if isinstance(effect, StartLoad):
                    self.check_load(effect)
            case Write(row):
                assert row.outcome

    def granted(self, ticket):
        del self.waiting[ticket]
        self.running.add(ticket)
        for other in self.waiting:
            if (other.borrow is None) == (ticket.borrow is None) and other.model == ticket.model:
                assert ticket.seq < other.seq, "out of order"
            assert ticket.borrow is None or other.borrow is not None, "borrowed work went before own work"

    def lend(self, ticket, lease):
        del self.waiting[ticket]
        assert ticket.job.lendable
        assert ticket.borrow is None
        assert ticket not in self.were_lent, "lent again"
        self.were_lent.add(ticket)
        self.lent[ticket] = lease
        out = sum(other.helper == lease.helper for other in self.lent.values())
        assert out <= lease.slots, "more is out than the lease has slots"
        if not self.lending.first_that_gains:
            older = [other for other in self.waiting if other.model == "a" and other.seq < ticket.seq]
            assert not [other for other in older if other.job.lendable and other not in self.were_lent]

    def refused(self, ticket, error):
        del self.waiting[ticket]
        assert isinstance(error, OffloadReturned) is (ticket.borrow is not None)
        self.ended += 1

    def check_load(self, load):
        """A load that only borrowed work asks for has a link that allows it."""
        unit = self.core.unit(load.unit)
        if unit.borrowed:
            waits = [ticket for ticket in self.waiting if f"u-{ticket.model}" == load.unit]
            assert any(ticket.borrow is not None and ticket.borrow.may_load for ticket in waits)

    def pick(self, data, tickets):
        return data.draw(st.sampled_from(sorted(tickets, key=lambda ticket: ticket.seq)))

    # Clients and owners elsewhere

    @rule(models=st.lists(st.sampled_from("aaabc"), min_size=1, max_size=6), stream=st.booleans())
    def own_requests_come(self, models, stream):
        for model in models:
            self.enter(model, Job(body_bytes=4000, lendable=not stream), None)

    @rule(
        models=st.lists(st.sampled_from("bbc"), min_size=1, max_size=4), may_load=st.booleans(), restore=st.booleans()
    )
    def borrowed_requests_come(self, models, may_load, restore):
        for model in models:
            self.enter(model, Job(body_bytes=4000), Borrow("l", may_load, restore, ModelRef("there", "m")))

    def enter(self, model, job, borrow):
        own_before = [t for t in (*self.waiting, *self.running) if t.borrow is None]
        ticket, effects = self.core.claim(model, "r", self.now, job, borrow)
        self.accepted += 1
        self.waiting[ticket] = None
        self.take(effects)
        if borrow is not None and own_before:
            assert ticket not in self.waiting
            assert ticket not in self.running, "borrowed work was taken while there was own work"
        self.check()

    @precondition(lambda self: self.waiting or self.running or self.lent)
    @rule(data=st.data())
    def a_client_leaves(self, data):
        ticket = self.pick(data, [*self.waiting, *self.running, *self.lent])
        self.waiting.pop(ticket, None)
        self.running.discard(ticket)
        self.lent.pop(ticket, None)
        self.ended += 1
        self.take(self.core.cancel(ticket, self.now))

    # The machine

    @precondition(lambda self: self.running)
    @rule(data=st.data(), ok=st.booleans(), seconds=st.sampled_from([0.0, 4.0, 10.0]))
    def a_job_ends(self, data, ok, seconds):
        self.pass_time(seconds)
        self.end(self.pick(data, self.running), ok=ok)

    def end(self, ticket, *, ok=True):
        self.running.remove(ticket)
        self.ended += 1
        self.take(self.core.release(ticket, self.now, Done(ok, WORK)))

    @precondition(lambda self: self.jobs)
    @rule(fails=st.sampled_from([False, False, False, True]), seconds=st.sampled_from([0.0, 3.0, 40.0]))
    def a_load_ends(self, fails, seconds):
        self.pass_time(seconds)
        self.finish(fails=fails)

    def finish(self, *, fails=False):
        match job := self.jobs.pop(0):
            case StartUnload(unit):
                self.take(self.core.on_unloaded(unit, self.now))
            case StartLoad(unit, displaced):
                for other in displaced:
                    self.take(self.core.on_unloaded(other, self.now))
                if fails:
                    self.take(self.core.on_load_failed(unit, "no memory", self.now))
                else:
                    self.take(self.core.on_loaded(unit, self.now, measured=True))
        assert job not in self.jobs

    @rule(what=st.sampled_from(["lost", "doubted", "trusted"]), name=st.sampled_from(NAMES))
    def a_process_is_in_trouble(self, what, name):
        if what == "lost":
            self.take(self.core.on_lost(f"u-{name}", "killed", self.now))
        else:
            self.take(self.core.doubt(f"u-{name}", self.now, doubted=what == "doubted"))

    # The master and the helpers

    @rule(
        slots=st.lists(st.integers(1, 3), max_size=2),
        job_s=st.sampled_from([None, 4.0, 40.0]),
        ttl_s=st.sampled_from([5.0, 30.0]),
        probe=st.booleans(),
        stale=st.booleans(),
    )
    def the_master_speaks(self, slots, job_s, ttl_s, probe, stale):
        self.seq += 1
        answer = LeaseAnswer(1, self.seq - 2 * stale, "a", tuple(self.leases(slots, job_s, ttl_s, probe)))
        if self.on_its_way:
            self.on_its_way = False
            self.take(self.core.answered("a", None if stale else answer, self.now))
        else:
            self.take(self.core.leases(answer, self.now))

    @precondition(lambda self: self.announced or self.on_its_way)
    @rule()
    def the_event_is_sent(self):
        event = self.core.event("a", self.now)
        assert not (event and self.on_its_way), "one event at a time"
        if self.announced:
            self.announced, self.on_its_way = False, event is not None
        self.check_event(event)

    def leases(self, slots, job_s, ttl_s, probe):
        fit = None if job_s is None or probe else Fit(job_s, samples=20, uniform=WORK)
        for number, count in enumerate(slots, start=1):
            yield Lease(
                id=f"{number}{probe}",
                helper=ModelRef(f"h{number}", "m"),
                slots=1 if probe else count,
                ttl_ms=round(1000 * ttl_s),
                kind=LeaseKind.PROBE if probe else LeaseKind.PRICED,
                switch_s=0.0,
                owner_fit=None if probe else FIT,
                helper_fit=fit,
                requests=1 if probe else None,
            )

    def check_event(self, event):
        if event is None:
            return
        own = [ticket for ticket in self.waiting if ticket.model == "a" and ticket.borrow is None]
        assert event.held_count == len(own)
        assert event.lendable_count == sum(t.job.lendable and t not in self.were_lent for t in own)
        assert len(event.lent) == len(self.lent)
        assert len(event.pipe) == sum(ticket.model == "a" for ticket in self.running)

    @precondition(lambda self: self.lent)
    @rule(data=st.data(), how=st.sampled_from(ENDINGS), seconds=st.sampled_from([0.0, 4.0, 40.0]))
    def a_lent_request_ends(self, data, how, seconds):
        self.pass_time(seconds)
        if self.lent:
            self.lent_ends(self.pick(data, self.lent), how)

    def lent_ends(self, ticket, how):
        del self.lent[ticket]
        self.stopping.discard(ticket)
        if how in {LentEnding.SERVED, LentEnding.CLIENT_GONE}:
            self.ended += 1
        else:
            self.waiting[ticket] = None
            self.returned += 1
        self.take(self.core.lent_ended(ticket, how, self.now))
        self.take(self.core.lent_ended(ticket, LentEnding.RETURNED, self.now))  # said twice

    @precondition(lambda self: self.lent)
    @rule(data=st.data())
    def an_answer_begins(self, data):
        ticket = self.pick(data, self.lent)
        self.take(self.core.lent_began(ticket, self.now))

    # Time and people

    @rule(seconds=st.sampled_from([0.5, 2.0, 10.0, 60.0, 200.0]))
    def time_passes(self, seconds):
        self.pass_time(seconds)

    def pass_time(self, seconds):
        until = self.now + seconds
        while (deadline := self.core.next_deadline()) is not None and deadline <= until:
            self.now = max(self.now, deadline)
            self.take(self.core.on_time(self.now))
            after = self.core.next_deadline()
            assert after is None or after > self.now, "a deadline that passes again and again"
        self.now = until
        for ticket in self.waiting:
            assert ticket.borrow is not None or self.now < ticket.since + ticket.lent_s + WAIT_S, "waits too long"

    @rule(hold=st.booleans(), linked=st.sampled_from([True, True, False]), depth=st.integers(1, 3))
    def the_configuration_changes(self, hold, linked, depth):
        self.lending = replace(self.lending, hold_for_faster=hold, backend_depth=depth)
        effects = self.core.reconfigure(self.plan(LINKS if linked else LINKS[2:]), self.now)
        self.announced = self.announced and linked
        self.take(effects)

    @precondition(lambda self: self.accepted > 20 and not self.drained)
    @rule(really=st.sampled_from([False, False, True]))
    def the_node_drains(self, really):
        if really:
            self.drained = True
            self.take(self.core.drain(self.now))
            assert not self.waiting

    # What must hold

    @invariant()
    def check(self):
        if not hasattr(self, "core"):
            return
        assert self.accepted == len(self.waiting) + len(self.lent) + len(self.running) + self.ended
        waits = {ticket.borrow is None for ticket in self.waiting}
        assert len(waits) <= 1, "own and borrowed work wait at once"
        self.check_places()
        self.check_slots()
        self.check_queue()
        self.check_nobody_waits_who_could_go()

    def check_places(self):
        assert {t for model in self.core.models() for t in model.waiting} == set(self.waiting)
        owner = self.core.owner("a")
        assert set(() if owner is None else owner.lent.all) == set(self.lent)

    def check_slots(self):
        for model in self.core.models():
            running = [ticket for ticket in self.running if ticket.model == model.spec.id]
            assert set(model.pipe) == set(running)
            assert [t for t in model.pipe if t.began_at is not None] == list(model.pipe)[:1]
            borrowed = sum(ticket.borrow is not None for ticket in running)
            assert borrowed == model.borrowed_running <= (self.lending.borrowed_beyond_recall or 3)

    def check_queue(self):
        for name in NAMES:
            never_lent = [t for t in self.waiting if t.model == name and t not in self.were_lent]
            assert len(never_lent) <= QUEUE

    def check_nobody_waits_who_could_go(self):
        """But for one that is held while its owner generates."""
        moving = any(unit.phase in {Phase.LOADING, Phase.UNLOADING} for unit in self.core.units())
        if moving or self.exclusive or not self.waiting:
            return
        for model in self.core.models():
            head = next(iter(model.waiting), None)
            unit = model.unit
            if head is None or unit.phase is not Phase.LOADED or unit.doubted or not model.has_slot:
                continue
            owner = self.core.owner(model.spec.id)
            if owner is not None and owner.held is not None:
                assert model.running == 1
            else:
                assert head.borrow is not None, "an own request waits and could go"
                assert model.borrowed_running >= (self.lending.borrowed_beyond_recall or 3)

    def teardown(self):
        """Left alone, everybody who waits is served, and what is lent comes back."""
        if not hasattr(self, "core"):
            return
        for name in NAMES:
            self.take(self.core.doubt(f"u-{name}", self.now, doubted=False))
        for _ in range(2000):
            if self.jobs:
                self.finish()
            elif self.running:
                self.end(min(self.running, key=lambda ticket: ticket.seq))
            elif self.lent:
                self.lent_ends(next(iter(self.lent)), LentEnding.RETURNED)
            elif (deadline := self.core.next_deadline()) is not None:
                self.pass_time(max(0.0, deadline - self.now))
            else:
                break
        assert not self.waiting, "somebody starves"
        assert self.accepted == self.ended


class SharedWorld(World):
    exclusive = False


MANY = settings(max_examples=150, stateful_step_count=40, suppress_health_check=[HealthCheck.too_slow])
TestExclusiveRuntime = World.TestCase
TestExclusiveRuntime.settings = MANY
TestSharedRuntime = SharedWorld.TestCase
TestSharedRuntime.settings = MANY
