"""The design's worked examples, step by step: the cores of an owner and a helper, and the plan between them.

Nothing takes time but loads and jobs: the master decides and hands over in the moment of each event.
"""

from dataclasses import replace

import pytest

from turnout_api.lending import Lease, LeaseKind, ModelRef, Outcome
from turnout_router.lending.job import Borrow
from turnout_router.lending.plan import plan
from turnout_router.lending.planning import OwnerView, PlanInput
from turnout_router.runtime.effects import LentEnding

OWNER, HELPER = ModelRef("o", "m"), ModelRef("h", "m")
OWN_S, HELPER_S, LOAD_S, RESTORE_S = 10.0, 8.0, 40.0, 25.0


class Pair:
    """Two routers that a master and two machines drive."""

    def __init__(self, owner, helper, clock):
        self.owner, self.helper, self.clock = owner, helper, clock
        self.ends: dict[str, float] = {}
        self.plans = []
        self.seq = 0

    def go_on(self, until):
        """Everything that happens up to a moment."""
        while (moment := min(self.moments(), default=until + 1)) <= until:
            self.at(moment)
            self.end_what_is_done()
            self.decide()
        self.at(until)

    def at(self, moment):
        for router in (self.owner, self.helper):
            router.at(moment)

    def moments(self):
        for router in (self.owner, self.helper):
            if (deadline := router.core.next_deadline()) is not None:
                yield deadline
        for router, seconds in ((self.owner, OWN_S), (self.helper, HELPER_S)):
            pipe = router.core.model("m").pipe
            if pipe:
                yield next(iter(pipe)).began_at + seconds
        if (unit := self.helper.core.unit("u-m")).phase.value == "loading":
            yield unit.phase_since + LOAD_S

    def end_what_is_done(self):
        now = self.clock.now
        unit = self.helper.core.unit("u-m")
        if unit.phase.value == "loading" and now >= unit.phase_since + LOAD_S:
            self.helper.loaded()
        for router, seconds in ((self.owner, OWN_S), (self.helper, HELPER_S)):
            head = next(iter(router.core.model("m").pipe), None)
            if head is not None and now >= head.began_at + seconds:
                router.end(head.request_id)
                self.ends[head.request_id] = now
                if router is self.helper:
                    self.owner.lent_ends(head.request_id, LentEnding.SERVED)

    def decide(self):
        """The master answers each event at once, and passes on what is lent."""
        while (event := self.owner.event()) is not None:
            now = self.clock.now
            given = PlanInput(
                now=now,
                settings=self.owner.plan.lending,
                links=self.owner.plan.links,
                owners={OWNER: OwnerView(event, self.owner.measurements.fit("m", now), event.trigger)},
                helpers={"h": self.helper.core.state(now), "o": self.owner.core.state(now)},
                probed_at={},
            )
            decided = plan(given)
            self.plans.append((now, *decided.rows, decided.probe_due_s))
            self.seq += 1
            self.owner.answer(*map(_lease, decided.granted), seq=self.seq)
            self.pass_on()

    def pass_on(self):
        for name, lease in list(self.owner.lent.items()):
            if name not in self.helper.tickets:
                borrow = Borrow(lease.id, may_load=True, restore=True, owner=OWNER)
                job = self.owner.tickets[name].job
                self.helper.tickets[name], effects = self.helper.core.claim("m", name, self.clock.now, job, borrow)
                self.helper.take(effects)


def _lease(granted):
    probe = granted.kind is LeaseKind.PROBE
    return Lease(
        id=f"{granted.kind}",
        helper=granted.helper,
        slots=granted.slots,
        ttl_ms=30_000,
        kind=granted.kind,
        switch_s=granted.switch_s,
        owner_fit=granted.owner_fit,
        helper_fit=granted.helper_fit,
        service_source=granted.service_source,
        requests=1 if probe else None,
        context_window=granted.context_window,
    )


@pytest.fixture
def pair(owner, router, clock):
    """Ten equal requests come to the owner at once when the helper has been idle for so long."""

    def make(idle_s=100.0):
        lender = owner(helpers=("h",))
        loads = {"own": RESTORE_S, "m": LOAD_S}
        borrower = router("own", "m", node="h", links=lender.plan.links, times={"m": HELPER_S}, loads=loads)
        for made in (lender, borrower):
            specs = tuple(replace(spec, context_window=8192) for spec in made.plan.models)
            made.configure(models=specs)
        clock.now = idle_s
        made = Pair(lender, borrower, clock)
        lender.claim(*map(str, range(1, 11)))
        made.decide()
        return made

    return make


@pytest.fixture
def from_0(pair):
    """The example's clock: the requests come at 0."""
    made = pair()

    def go_on(until):
        made.go_on(100.0 + until)
        return made

    return go_on


def _row(made, moment):
    """The last plan of a moment, counted from the requests' arrival."""
    return [row for at, row, _ in made.plans if at == 100.0 + moment][-1]


def _parts(row):
    return row.outcome, row.owner_drain_s, row.borrowed_s, row.switch_s, row.restore_s, row.service_s, row.slots


class TestExampleA:
    def test_at_0_the_lease_is_granted_and_3_and_4_are_lent(self, from_0):
        made = from_0(0.0)
        first = made.plans[0][1]
        assert _parts(first) == (Outcome.GRANTED, 100.0, 0.0, 40.0, 25.0, 8.0, 2)
        assert list(made.owner.lent) == ["3", "4"]
        assert made.owner.running == ["1", "2"]

    def test_at_20_it_stays_and_nothing_is_cleared(self, from_0):
        made = from_0(20.0)
        assert _parts(_row(made, 20.0)) == (Outcome.GRANTED, 60.0, 16.0, 20.0, 0.0, 8.0, 2)
        assert made.owner.rows_of("lease_cleared") == []

    def test_at_48_3_is_back_and_9_is_lent(self, from_0):
        made = from_0(47.9)
        assert list(made.owner.lent) == ["3", "4"]
        made.go_on(148.0)
        assert list(made.owner.lent) == ["4", "9"]

    def test_at_50_10_is_not_held(self, from_0):
        made = from_0(50.0)
        assert made.owner.running == ["8", "10"]
        assert made.owner.rows_of("held_for_helper") == []

    def test_everything_ends_when_the_example_says(self, from_0):
        made = from_0(70.0)
        ends = {int(name): at - 100.0 for name, at in made.ends.items()}
        assert ends == {1: 10, 2: 20, 5: 30, 6: 40, 3: 48, 7: 50, 4: 56, 8: 60, 9: 64, 10: 70}
        assert sum(ends.values()) / 10 == pytest.approx(44.8)
        lent = [row.request_id for row in made.owner.rows_of("lent")]
        assert lent == ["3", "4", "9"]

    @pytest.mark.parametrize(
        ("idle_s", "outcome", "reason", "due_s"),
        [
            (59.0, Outcome.SKIPPED, "helper_recently_busy", 1.0),
            (62.0, Outcome.PROBE, "helper_recently_busy", None),
            (65.0, Outcome.GRANTED, "", None),
        ],
    )
    def test_a_helper_that_was_busy_lately_is_probed_before_it_is_leased(self, pair, idle_s, outcome, reason, due_s):
        _, row, due = pair(idle_s).plans[0]
        assert (row.outcome, row.reason, due) == (outcome, reason, due_s)


class TestExampleB:
    """At 0 one runs with 8 s left, `a` (3 s left) and `b` are lent to a helper that takes 4 s, and `r` is next."""

    @pytest.fixture
    def at_0(self, owner, lease, clock):
        def make(job_s=10.0, left_s=8.0):
            clock.now = left_s - job_s
            router = owner(times={"m": job_s})
            router.claim("run", "fill")
            router.at(-1.0)
            router.claim("a", "b")
            router.push(lease(2, job_s=4.0, own_s=job_s, ttl_s=1000.0))
            router.at(0.0)
            router.leave("fill")
            router.claim("r")
            return router

        return make

    def test_r_is_held_since_18_is_more_than_11_and_its_deadline_is_15(self, at_0):
        router = at_0()
        (row,) = router.rows_of("held_for_helper")
        assert (row.owner_finish_s, row.owner_job_s, row.helper_job_s) == (18.0, 10.0, 4.0)
        assert router.core.next_deadline() == 15.0

    def test_when_a_returns_at_3_r_is_lent_and_done_at_11(self, at_0):
        router = at_0()
        router.at(3.0)
        router.lent_ends("a")
        assert list(router.lent) == ["b", "r"]
        event = router.event()
        assert event.drain_parts.pipe_s + event.drain_parts.rest_s == 5.0, "r is not a part of it any more"
        assert router.core.owner("m").lent.remaining_s(HELPER, 3.0) == 8.0

    def test_with_a_silent_helper_r_goes_to_the_owner_at_8_when_it_would_idle(self, at_0):
        router = at_0()
        router.at(7.9)
        assert router.held() == "r"
        router.at(8.0)
        router.end("run")
        assert router.running == ["r"]

    def test_with_40_s_left_r_enters_the_second_slot_at_15_by_the_timer(self, at_0):
        router = at_0(job_s=50.0, left_s=40.0)
        router.at(14.9)
        assert router.running == ["run"]
        router.at(15.0)
        assert router.running == ["run", "r"]
