"""The core against a made-up world: whatever happens in whatever order, its invariants hold and nobody starves.

The world carries out loads and unloads whenever the machine lets it, loses processes, fails loads, changes the
configuration, and keeps its own books of who waits, who runs and what is in memory.
"""

from collections import Counter

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from turnout_router.runtime.core import RuntimeCore
from turnout_router.runtime.effects import Grant, Loaded, Refuse, StartLoad, StartUnload, Unloaded
from turnout_router.runtime.interface import QueueFull
from turnout_router.runtime.plan import ModelSpec, Plan, UnitSpec
from turnout_router.runtime.state import Phase

FOR_EVER_S = 1e6
QUEUE = 4
NAMES = ["a", "b", "c", "d", "url"]
UNIT_OF = {"a": "A", "b": "B", "c": "CD", "d": "CD", "url": "URL"}
"""`c` and `d` share a process; `url` is somebody else's server."""


def plan_with(names, *, exclusive: bool, eager: bool, generation: int, depth: int) -> Plan:
    """A configuration that declares these models; another generation moves `a` to another process."""

    def unit(name: str) -> str:
        return f"A{generation}" if name == "a" else UNIT_OF[name]

    return Plan(
        exclusive=exclusive,
        eager=eager,
        max_queue_depth=QUEUE,
        max_queue_wait_s=FOR_EVER_S,
        probe_interval_s=5.0,
        units=tuple(
            UnitSpec(name, name, name, supervised=name != "URL", kept=eager and not exclusive and name != "URL")
            for name in dict.fromkeys(map(unit, names))
        ),
        models=tuple(ModelSpec(name, unit(name), name, depth, direct=False) for name in names),
    )


class World(RuleBasedStateMachine):
    exclusive = True

    @initialize(eager=st.booleans(), depth=st.integers(1, 3))
    def begin(self, eager, depth):
        self.now, self.generation, self.last_seq = 0.0, 0, 0
        self.shape = {"exclusive": self.exclusive, "eager": eager, "depth": depth}
        self.core = RuntimeCore(plan_with(NAMES, generation=0, **self.shape), 0.0)
        self.waiting, self.running, self.asking, self.answered = set(), set(), set(), set()
        self.jobs: list[StartLoad | StartUnload] = []
        self.memory: set[str] = set()
        self.accepted = self.ended = 0
        self.turn_model, self.turn_start, self.turns = None, 0, {}
        self.take(self.core.start(0.0))
        self.see("URL", "")

    # The world's books

    def take(self, effects):
        for effect in effects:
            match effect:
                case Grant(ticket):
                    self.answer(ticket, self.waiting)
                    self.running.add(ticket)
                    self.check_fair(ticket)
                case Refuse(ticket, _):
                    self.answer(ticket, self.waiting if ticket in self.waiting else self.asking)
                    self.ended += bool(ticket.request_id)
                case Loaded(ticket) | Unloaded(ticket):
                    self.answer(ticket, self.asking)
                case StartLoad() | StartUnload():
                    self.jobs.append(effect)
                case _:
                    pass

    def answer(self, ticket, among):
        assert ticket in among, "answered, and did not wait"
        assert ticket not in self.answered
        self.answered.add(ticket)
        among.remove(ticket)

    def check_fair(self, ticket):
        if not self.exclusive:
            return
        contenders = [other for other in self.waiting if other.model != ticket.model and self.could_go(other.model)]
        if ticket.model != self.turn_model:
            self.turn_model, self.turn_start = ticket.model, self.last_seq
            for other in contenders:
                turns = self.turns.setdefault(other, Counter())
                turns[ticket.model] += 1
                assert turns[ticket.model] <= 1, "a second turn while another model waited for its first"
        for other in contenders:
            assert ticket.seq < max(other.seq, self.turn_start + 1), "a later arrival overtook another model"

    def disturbed(self):
        """What fails or vanishes loses its turn; counting begins anew."""
        self.turns.clear()

    def could_go(self, model: str) -> bool:
        unit = self.core.model(model).unit
        pausing = unit.phase is Phase.ABSENT and self.now < unit.retry_at
        return not (unit.down or unit.doubted or unit.leaving or pausing)

    def see(self, unit: str, down: str):
        if any(state.spec.id == unit for state in self.core.units()):
            version = self.core.unit(unit).version
            self.take(self.core.on_health(unit, down, self.now, loaded=None, version=version))

    def declared(self):
        return [model.spec.id for model in self.core.models()]

    def pick(self, data, tickets):
        return data.draw(st.sampled_from(sorted(tickets, key=lambda ticket: ticket.seq)))

    # What happens

    @rule(models=st.lists(st.sampled_from(NAMES), min_size=1, max_size=8))
    def requests_come(self, models):
        for model in models:
            self.request_comes(model)

    @rule(first=st.sampled_from(NAMES), second=st.sampled_from(NAMES), count=st.integers(1, 4))
    def requests_alternate(self, first, second, count):
        for model in [first, second] * count:
            self.request_comes(model)
            self.go_on_with(0, 0)

    def request_comes(self, model):
        ticket, effects = self.core.claim(model, "r", self.now)
        self.accepted += 1
        self.enter(ticket, effects, self.waiting)
        if any(isinstance(effect, Refuse) and isinstance(effect.error, QueueFull) for effect in effects):
            assert sum(other.model == model for other in self.waiting) == QUEUE

    def enter(self, ticket, effects, among):
        assert ticket.seq > self.last_seq
        self.last_seq = ticket.seq
        among.add(ticket)
        self.take(effects)

    @rule(choices=st.lists(st.tuples(st.integers(0, 1), st.integers(0, 9)), min_size=1, max_size=12))
    def life_goes_on(self, choices):
        for what, index in choices:
            self.go_on_with(what, index)

    @rule(choices=st.lists(st.integers(0, 9), min_size=1, max_size=12))
    def life_goes_on_in_order(self, choices):
        for index in choices:
            self.go_on_with(int(not self.jobs), index)

    def go_on_with(self, what, index):
        if what == 0 and self.jobs:
            self.go_on(index % len(self.jobs))
        elif what == 1 and self.running:
            self.end(sorted(self.running, key=lambda ticket: ticket.seq)[index % len(self.running)])
        self.check()

    def end(self, ticket):
        self.running.remove(ticket)
        self.ended += 1
        self.take(self.core.release(ticket, self.now))

    @precondition(lambda self: self.waiting or self.asking)
    @rule(data=st.data())
    def who_waits_leaves(self, data):
        ticket = self.pick(data, self.waiting | self.asking)
        self.ended += ticket in self.waiting
        self.waiting.discard(ticket)
        self.asking.discard(ticket)
        self.answered.add(ticket)
        self.take(self.core.cancel(ticket, self.now))

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def who_runs_leaves(self, data):
        ticket = self.pick(data, self.running)
        self.running.remove(ticket)
        self.ended += 1
        self.take(self.core.cancel(ticket, self.now))

    @rule(model=st.sampled_from(NAMES), unload=st.booleans())
    def somebody_asks(self, model, unload):
        if unload:
            self.disturbed()
        self.enter(*(self.core.unload if unload else self.core.load)(model, self.now), self.asking)

    def go_on(self, index):
        match job := self.jobs[index]:
            case StartUnload(unit):
                del self.jobs[index]
                self.memory.discard(unit)
                self.take(self.core.on_unloaded(unit, self.now))
            case StartLoad(displaced=()):
                del self.jobs[index]
                assert not (self.exclusive and self.memory), "loading into memory that is not free"
                self.memory |= {job.unit} - {"URL"}
                self.turn_start = self.last_seq
                self.take(self.core.on_loaded(job.unit, self.now, measured=True))
            case StartLoad(unit, displaced):
                self.jobs[index] = StartLoad(unit, displaced[1:])
                self.memory.discard(displaced[0])
                self.take(self.core.on_unloaded(displaced[0], self.now))

    @rule(what=st.sampled_from(["load", "process", "doubt", "no doubt", "server", "server is back"]), data=st.data())
    def something_breaks(self, what, data):
        self.disturbed()
        loads = [job for job in self.jobs if isinstance(job, StartLoad) and not job.displaced]
        alive = sorted(unit for unit in self.memory if self.core.unit(unit).phase is Phase.LOADED)
        if what == "load" and loads:
            self.jobs.remove(loads[0])
            self.take(self.core.on_load_failed(loads[0].unit, "no memory", self.now))
        elif what == "process" and alive:
            unit = data.draw(st.sampled_from(alive))
            self.memory.remove(unit)
            self.take(self.core.on_lost(unit, "killed", self.now))
        elif what.endswith("doubt") and alive:
            self.take(self.core.doubt(data.draw(st.sampled_from(alive)), self.now, doubted=what == "doubt"))
        elif what.startswith("server"):
            self.see("URL", "connection refused" if what == "server" else "")

    @rule(seconds=st.sampled_from([0.5, 1.0, 2.0, 5.0, 10.0, 61.0, FOR_EVER_S]))
    def time_passes(self, seconds):
        self.now += seconds
        self.take(self.core.on_time(self.now))
        if seconds == FOR_EVER_S:
            assert all(ticket.since == self.now for ticket in self.waiting), "somebody waits beyond the limit"

    @rule(
        names=st.lists(st.sampled_from(NAMES), min_size=3, unique=True), moves=st.booleans(), deeper=st.integers(0, 2)
    )
    def the_configuration_changes(self, names, moves, deeper):
        self.disturbed()
        self.generation += moves
        self.shape["depth"] += deeper
        plan = plan_with(names, generation=self.generation, **self.shape)
        before = self.states()
        effects = self.core.reconfigure(plan, self.now)
        if before.get(self.turn_model) is not self.states().get(self.turn_model):
            self.turn_model = None  # one that was taken out or moved has no turn any more, though it may come back
        self.take(effects)
        self.see("URL", "")

    def states(self):
        return {state.spec.id: state for state in self.core.models()}

    # What must hold

    @invariant()
    def check(self):
        if hasattr(self, "core"):
            self.check_exclusive()
            self.check_pipes()
            self.check_books()
            self.check_nobody_waits_who_could_go()
            self.check_deadlines()

    def check_exclusive(self):
        if not self.exclusive:
            return
        assert len(self.jobs) <= 1
        loading = {job.unit for job in self.jobs if isinstance(job, StartLoad) and not job.displaced}
        assert len(self.memory | (loading - {"URL"})) <= 1
        assert len({self.core.holder(ticket) for ticket in self.running}) <= 1, "two pipes are filled"

    def check_pipes(self):
        for model, running in Counter(self.core.holder(ticket) for ticket in self.running).items():
            assert running <= model.spec.depth

    def check_books(self):
        assert self.accepted == len(self.waiting) + len(self.running) + self.ended
        assert sum(len(model.waiting) for model in self.core.models()) == len(self.waiting)

    def check_nobody_waits_who_could_go(self):
        if self.jobs:
            return
        contenders = {ticket.model for ticket in self.waiting if self.could_go(ticket.model)}
        if self.exclusive:
            assert not contenders or self.running
            if len(contenders) == 1:
                self.check_no_slot_is_wasted(*contenders)
            return
        for model in contenders:
            assert self.core.model(model).unit.phase is Phase.LOADED
            assert not self.core.model(model).has_slot

    def check_no_slot_is_wasted(self, name):
        model = self.core.model(name)
        others = {ticket for ticket in self.running if self.core.holder(ticket) is not model}
        if not others and model.unit.phase is Phase.LOADED and not any(t.model != name for t in self.asking):
            assert not model.has_slot

    def check_deadlines(self):
        deadline = self.core.next_deadline()
        for ticket in self.waiting:
            unit = self.core.model(ticket.model).unit
            assert deadline is not None
            assert deadline <= ticket.since + FOR_EVER_S
            if unit.phase is Phase.ABSENT and unit.retry_at > self.now:
                assert deadline <= unit.retry_at

    def teardown(self):
        """Left alone, with nothing failing any more, everybody who waits is served."""
        if not hasattr(self, "core"):
            return
        self.disturbed()
        self.see("URL", "")
        for unit in [unit.spec.id for unit in self.core.units()]:
            self.take(self.core.doubt(unit, self.now, doubted=False))
        waiting = len(self.waiting)
        for _ in range(20 * (waiting + len(NAMES))):
            if self.jobs:
                self.go_on(0)
            elif self.running:
                self.end(min(self.running, key=lambda ticket: ticket.seq))
            elif (deadline := self.core.next_deadline()) is not None and deadline < self.now + 100:
                self.now = deadline
                self.take(self.core.on_time(self.now))
        assert not self.waiting, "somebody starves"
        assert not self.asking, "somebody was never answered"


class SharedWorld(World):
    exclusive = False


MANY = settings(max_examples=150, stateful_step_count=30, suppress_health_check=[HealthCheck.too_slow])
TestExclusiveRuntime = World.TestCase
TestExclusiveRuntime.settings = MANY
TestSharedRuntime = SharedWorld.TestCase
TestSharedRuntime.settings = MANY


def test_a_model_that_was_taken_out_and_came_back_begins_a_turn_anew():
    """Found by the machine above: what it had of a turn is gone, so all that wait when it gets its next one go first."""
    world = World()
    world.begin(eager=False, depth=1)
    world.requests_alternate(count=1, first="a", second="c")
    world.life_goes_on(choices=[(1, 0), (0, 0), (0, 0)])
    world.the_configuration_changes(deeper=0, moves=False, names=["a", "b", "d"])
    world.the_configuration_changes(deeper=0, moves=False, names=["a", "b", "c"])
    world.requests_alternate(count=2, first="c", second="a")
    world.check()
    world.teardown()
