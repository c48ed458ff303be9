"""The core as tables of events: who gets a slot, who waits, what is loaded and what is refused."""

from dataclasses import replace

import pytest

from turnout_router.runtime.core import RuntimeCore
from turnout_router.runtime.effects import Grant, Loaded, Record, Refuse, StartLoad, StartUnload, Unloaded
from turnout_router.runtime.interface import Draining, LoadFailed, NotReady, QueueFull, QueueTimeout, UnknownModel
from turnout_router.runtime.plan import ModelSpec, Plan, UnitSpec

DEPTH = 2


def unit(name: str, *, supervised: bool = True, kept: bool = False) -> UnitSpec:
    return UnitSpec(f"u-{name}", f"b-{name}", name, supervised, kept)


def model(name: str, *, depth: int | None = DEPTH, direct: bool = False, of: str = "") -> ModelSpec:
    return ModelSpec(name, f"u-{of or name}", name, depth, direct)


def plan(*names: str, exclusive: bool = True, depth: int | None = DEPTH, queue: int = 100, **more) -> Plan:
    return Plan(
        exclusive=exclusive,
        eager=False,
        max_queue_depth=queue,
        max_queue_wait_s=60.0,
        probe_interval_s=5.0,
        units=more.get("units", tuple(unit(name) for name in names)),
        models=more.get("models", tuple(model(name, depth=depth) for name in names)),
    )


def granted(effects) -> list[str]:
    return [effect.ticket.request_id for effect in effects if isinstance(effect, Grant)]


def refused(effects) -> list[tuple[str, type]]:
    return [(effect.ticket.request_id, type(effect.error)) for effect in effects if isinstance(effect, Refuse)]


def loads(effects) -> list[tuple[str, tuple[str, ...]]]:
    return [(effect.unit, effect.displaced) for effect in effects if isinstance(effect, StartLoad)]


class Node:
    """A core with a clock and the tickets by request."""

    def __init__(self, plan: Plan) -> None:
        self.now = 0.0
        self.core = RuntimeCore(plan, 0.0)
        self.tickets = {}
        self.start = self.core.start(0.0)

    def claim(self, model: str, request_id: str):
        self.tickets[request_id], effects = self.core.claim(model, request_id, self.now)
        return effects

    def release(self, request_id: str):
        return self.core.release(self.tickets[request_id], self.now)

    def loaded(self, name: str):
        return self.core.on_loaded(f"u-{name}", self.now, measured=True)

    def with_loaded(self, name: str, request_id: str = "first") -> "Node":
        assert loads(self.claim(name, request_id)) == [(f"u-{name}", ())]
        assert granted(self.loaded(name)) == [request_id]
        return self


def test_a_model_without_a_gate_is_granted_whatever_its_load_state():
    node = Node(plan(models=(model("a", depth=None, direct=True),), units=(unit("a"),), exclusive=False))
    for number in range(50):
        assert granted(node.claim("a", str(number))) == [str(number)]
        assert not loads(node.start)


def test_a_supervised_model_without_a_gate_waits_only_for_its_process():
    node = Node(plan("a", exclusive=False, depth=None))
    assert loads(node.claim("a", "1")) == [("u-a", ())]
    assert not node.claim("a", "2")
    assert granted(node.loaded("a")) == ["1", "2"]
    assert granted(node.claim("a", "3")) == ["3"]


def test_at_most_depth_requests_are_at_the_backend_and_each_end_wakes_the_next():
    node = Node(plan("a")).with_loaded("a")
    assert granted(node.claim("a", "2")) == ["2"]
    assert granted(node.claim("a", "3")) == []
    assert granted(node.claim("a", "4")) == []
    assert granted(node.release("2")) == ["3"]
    assert granted(node.release("first")) == ["4"]


def test_a_swap_waits_until_what_runs_has_ended():
    node = Node(plan("a", "b")).with_loaded("a")
    assert node.claim("b", "b1") == []
    assert loads(node.release("first")) == [("u-b", ("u-a",))]
    assert node.core.on_unloaded("u-a", 1.0) == []
    effects = node.core.on_loaded("u-b", 3.0, measured=True)
    assert granted(effects) == ["b1"]
    (record,) = [effect.report for effect in effects if isinstance(effect, Record)]
    assert (record.model, record.seconds, record.displaced) == ("b", 3.0, ("a",))


def test_later_arrivals_for_the_loaded_model_do_not_overtake_another_model():
    node = Node(plan("a", "b")).with_loaded("a")
    node.claim("b", "b1")
    assert granted(node.claim("a", "late")) == [], "a slot is free, but b1 came first"
    assert loads(node.release("first")) == [("u-b", ("u-a",))]


def test_requests_that_alternate_between_two_models_are_served_in_batches():
    node = Node(plan("a", "b", depth=1)).with_loaded("a")
    for number in range(3):
        node.claim("b", f"b{number}")
        node.claim("a", f"a{number}")
    swaps = loads(node.release("first"))
    node.core.on_unloaded("u-a", 0.0)
    order = granted(node.loaded("b"))
    while len(order) < 6:
        effects = node.release(order[-1])
        for name, displaced in loads(effects):
            swaps.append((name, displaced))
            node.core.on_unloaded(displaced[0], 0.0)
            effects = node.core.on_loaded(name, 0.0, measured=True)
        order += granted(effects)
    assert order == ["b0", "b1", "b2", "a0", "a1", "a2"]
    assert [name for name, _ in swaps] == ["u-b", "u-a"]


def test_who_comes_while_a_model_loads_is_part_of_its_turn():
    node = Node(plan("a", "b"))
    node.claim("a", "a1")
    node.claim("b", "b1")
    node.claim("a", "a2")
    assert granted(node.loaded("a")) == ["a1", "a2"]


def test_one_process_for_several_models_is_loaded_once_and_still_serves_one_of_them_at_a_time():
    node = Node(plan(models=(model("a"), model("b", of="a")), units=(unit("a"),)))
    node.claim("a", "a1")
    node.claim("b", "b1")
    assert granted(node.loaded("a")) == ["a1"]
    effects = node.release("a1")
    assert granted(effects) == ["b1"]
    assert loads(effects) == []


def test_a_full_queue_refuses_and_says_when_to_come_back():
    node = Node(plan("a", queue=2, depth=1)).with_loaded("a")
    node.claim("a", "2")
    node.now = 10.0
    node.release("first")
    node.claim("a", "3")
    node.claim("a", "4")
    (effect,) = node.claim("a", "5")
    assert isinstance(effect.error, QueueFull)
    assert effect.error.retry_after_s == pytest.approx(30.0), "one runs and two wait, ten seconds each"


def test_nothing_measured_means_no_retry_after():
    node = Node(plan("a", queue=1))
    node.claim("a", "1")
    (effect,) = node.claim("a", "2")
    assert isinstance(effect.error, QueueFull)
    assert effect.error.retry_after_s is None


def test_who_waited_too_long_is_refused_and_the_rest_stays():
    node = Node(plan("a", depth=1)).with_loaded("a")
    node.claim("a", "1")
    node.now = 30.0
    node.claim("a", "2")
    assert node.core.next_deadline() == 60.0
    assert refused(node.core.on_time(60.0)) == [("1", QueueTimeout)]
    assert node.core.next_deadline() == 90.0
    assert granted(node.release("first")) == ["2"]


def test_who_waited_too_long_is_told_when_the_queue_will_have_been_served():
    node = Node(plan("a", depth=1)).with_loaded("a")
    node.claim("a", "1")
    node.now = 10.0
    node.release("first")
    node.claim("a", "2")
    (effect,) = node.core.on_time(70.0)
    assert isinstance(effect.error, QueueTimeout)
    assert effect.error.retry_after_s is not None


def test_who_waited_in_vain_for_a_model_that_is_not_there_is_told_that_it_is_not_ready():
    node = Node(plan("a"))
    node.claim("a", "1")
    (effect,) = node.core.on_time(60.0)
    assert isinstance(effect.error, NotReady)
    assert str(effect.error) == "waited 60 s for this model, which is not loaded"


def test_a_cancelled_waiter_leaves_the_queue():
    node = Node(plan("a", depth=1)).with_loaded("a")
    node.claim("a", "2")
    node.claim("a", "3")
    assert node.core.cancel(node.tickets["2"], 0.0) == []
    assert granted(node.release("first")) == ["3"]


def test_a_claim_that_was_granted_and_cancelled_gives_its_slot_back():
    node = Node(plan("a", depth=1)).with_loaded("a")
    node.claim("a", "2")
    assert granted(node.core.cancel(node.tickets["first"], 0.0)) == ["2"]


def test_a_slot_is_given_back_only_once():
    node = Node(plan("a")).with_loaded("a")
    node.release("first")
    with pytest.raises(KeyError):
        node.release("first")


def test_a_failed_load_tells_all_who_wait_for_it_and_pauses():
    node = Node(plan("a"))
    node.claim("a", "1")
    node.claim("a", "2")
    effects = node.core.on_load_failed("u-a", "out of memory", 1.0)
    assert refused(effects) == [("1", LoadFailed), ("2", LoadFailed)]
    node.now = 1.5
    (effect,) = node.claim("a", "3")
    assert isinstance(effect.error, LoadFailed)
    assert effect.error.detail == "out of memory"
    assert "out of memory" not in str(effect.error), "a client is told no output of a server"
    assert effect.error.retry_after_s == pytest.approx(0.5)
    node.now = 2.0
    assert loads(node.claim("a", "4")) == [("u-a", ())]


def test_pauses_grow_with_each_failure():
    node = Node(plan("a"))
    pauses = []
    for _ in range(9):
        node.claim("a", "x")
        node.core.on_load_failed("u-a", "no", node.now)
        pauses.append(node.core.unit("u-a").retry_at - node.now)
        node.now = node.core.unit("u-a").retry_at
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60, 60]


def test_a_model_that_cannot_be_loaded_does_not_stop_the_others():
    node = Node(plan("a", "b"))
    node.claim("a", "a1")
    node.claim("b", "b1")
    assert loads(node.core.on_load_failed("u-a", "no", 0.0)) == [("u-b", ())]


def test_a_lost_process_is_started_again_after_a_pause_for_those_who_wait():
    node = Node(plan("a", depth=1)).with_loaded("a")
    node.claim("a", "2")
    assert loads(node.core.on_lost("u-a", "exited with 1", 5.0)) == []
    node.now = 5.0
    assert loads(node.release("first")) == []
    assert node.core.next_deadline() == 6.0
    assert loads(node.core.on_time(6.0)) == [("u-a", ())]


def test_a_pause_that_passes_after_the_last_look_is_still_a_deadline():
    node = Node(plan("a", depth=1)).with_loaded("a")
    node.claim("a", "2")
    node.core.on_lost("u-a", "exited with 1", 5.0)
    node.now = 5.999
    node.release("first")
    assert node.core.next_deadline() == 6.0, "however late this is asked"
    assert loads(node.core.on_time(6.0)) == [("u-a", ())]
    node.core.on_load_failed("u-a", "no", 6.1)
    assert node.core.next_deadline() is None, "nobody waits any more"


def test_a_kept_unit_starts_with_nobody_asking_and_again_when_it_is_lost():
    node = Node(plan(models=(model("a"),), units=(unit("a", kept=True),), exclusive=False))
    assert loads(node.start) == [("u-a", ())]
    node.loaded("a")
    assert loads(node.core.on_lost("u-a", "exited with 1", 100.0)) == []
    assert loads(node.core.on_time(101.0)) == [("u-a", ())]


def test_the_startup_model_of_an_exclusive_runtime_is_loaded_once_and_not_fought_for():
    node = Node(plan(models=(model("a"), model("b")), units=(unit("a", kept=True), unit("b"))))
    assert loads(node.start) == [("u-a", ())]
    node.loaded("a")
    assert loads(node.claim("b", "b1")) == [("u-b", ("u-a",))]
    node.core.on_unloaded("u-a", 1.0)
    assert loads(node.loaded("b")) == []
    assert loads(node.release("b1")) == []


def test_a_load_without_a_request_has_its_turn_and_takes_no_slot():
    node = Node(plan("a", "b", depth=1)).with_loaded("a")
    ticket, effects = node.core.load("b", 0.0)
    assert effects == []
    assert loads(node.release("first")) == [("u-b", ("u-a",))]
    node.core.on_unloaded("u-a", 2.0)
    (answer,) = [effect for effect in node.core.on_loaded("u-b", 7.0, measured=True) if isinstance(effect, Loaded)]
    assert answer.ticket is ticket
    assert (answer.report.seconds, answer.report.displaced) == (7.0, ("a",))
    assert granted(node.claim("b", "b1")) == ["b1"]


def test_what_a_process_needs_to_start_is_no_part_of_what_a_model_needs_to_load():
    node = Node(plan("a"))
    assert loads(node.claim("a", "1")) == [("u-a", ())]
    effects = node.core.on_loaded("u-a", 5.0, measured=True, starting_s=3.5)
    assert [effect.report.seconds for effect in effects if isinstance(effect, Record)] == [1.5]


def test_units_become_one_when_their_process_has_all_models_at_once():
    apart = tuple(replace(unit(name), backend="p", switched=True) for name in "ab")
    models = tuple(model(name, depth=1) for name in "ab")
    node = Node(plan(models=models, units=apart, exclusive=True))
    assert loads(node.claim("a", "a1")) == [("u-a", ())]
    assert node.claim("b", "b1") == []
    whole = replace(unit("p"), id="p", backend="p", name="")
    one = plan(models=tuple(replace(each, unit="p") for each in models), units=(whole,), exclusive=True)
    assert granted(node.core.on_whole("u-a", one, 1.0, measured=True)) == ["a1"]
    assert [each.spec.id for each in node.core.units()] == ["p"]
    effects = node.release("a1")
    assert (loads(effects), granted(effects)) == ([], ["b1"]), "nothing is loaded for it"


def test_loading_what_is_loaded_takes_no_time():
    node = Node(plan("a")).with_loaded("a")
    _, (effect,) = node.core.load("a", 9.0)
    assert effect.report.seconds == 0.0


def test_an_unload_waits_for_what_runs_and_grants_nothing_in_between():
    node = Node(plan("a")).with_loaded("a")
    ticket, effects = node.core.unload("a", 0.0)
    assert effects == []
    assert node.claim("a", "2") == []
    assert node.release("first") == [StartUnload("u-a")]
    effects = node.core.on_unloaded("u-a", 1.0)
    assert Unloaded(ticket) in effects
    assert loads(effects) == [("u-a", ())], "who waits loads it again"


def test_a_draining_node_refuses_who_waits_and_lets_run_what_runs():
    node = Node(plan("a", depth=1)).with_loaded("a")
    node.claim("a", "2")
    assert refused(node.core.drain(0.0)) == [("2", Draining)]
    assert refused(node.claim("a", "3")) == [("3", Draining)]
    assert node.release("first") == []


def test_an_unknown_model_is_refused():
    assert refused(Node(plan("a")).claim("x", "1")) == [("1", UnknownModel)]


class TestBackendsReachedByUrl:
    def node(self, *, exclusive: bool = False, direct: bool = True) -> Node:
        depth = None if direct else DEPTH
        models = (model("a", depth=depth, direct=direct), model("b", depth=depth, direct=direct))
        units = (unit("a", supervised=False), unit("b", supervised=False))
        return Node(plan(models=models, units=units, exclusive=exclusive))

    def health(self, node: Node, name: str, down: str = "", loaded: bool | None = None):
        version = node.core.unit(f"u-{name}").version
        return node.core.on_health(f"u-{name}", down, node.now, loaded=loaded, version=version)

    def test_they_are_not_ready_before_their_first_probe(self):
        node = self.node()
        (effect,) = node.claim("a", "1")
        assert isinstance(effect.error, NotReady)
        assert effect.error.retry_after_s == 5.0
        self.health(node, "a")
        assert granted(node.claim("a", "2")) == ["2"]

    def test_who_waits_for_one_that_stops_answering_is_told(self):
        node = self.node(direct=False)
        self.health(node, "a")
        for request_id in "123":
            node.claim("a", request_id)
        assert refused(self.health(node, "a", "connection refused")) == [("3", NotReady)]
        self.health(node, "a")
        assert granted(node.release("1")) == []
        assert granted(node.claim("a", "4")) == ["4"]

    def test_on_an_exclusive_runtime_the_first_that_answers_counts_as_loaded(self):
        node = self.node(exclusive=True, direct=False)
        self.health(node, "a")
        self.health(node, "b")
        assert granted(node.claim("a", "1")) == ["1"]
        assert node.claim("b", "2") == []
        assert loads(node.release("1")) == [("u-b", ("u-a",))]

    def test_what_was_seen_before_a_change_is_out_of_date(self):
        node = self.node(exclusive=True, direct=False)
        self.health(node, "a", loaded=False)
        stale = node.core.unit("u-a").version
        node.claim("a", "1")
        node.loaded("a")
        node.core.on_health("u-a", "", 1.0, loaded=False, version=stale)
        assert granted(node.claim("a", "2")) == ["2"]

    def test_a_model_that_the_server_dropped_by_itself_is_loaded_again(self):
        node = self.node(exclusive=True, direct=False)
        self.health(node, "a", loaded=True)
        self.health(node, "a", loaded=False)
        assert loads(node.claim("a", "1")) == [("u-a", ())]

    def test_a_second_model_that_somebody_else_loaded_on_an_exclusive_runtime_is_unloaded(self):
        node = self.node(exclusive=True, direct=False)
        self.health(node, "b", loaded=False)
        self.health(node, "a", loaded=True)
        assert self.health(node, "b", loaded=True) == [StartUnload("u-b")]


class TestReconfigure:
    def test_who_waits_for_a_model_that_vanished_is_told_and_what_runs_finishes(self):
        node = Node(plan("a", "b", exclusive=False, depth=1)).with_loaded("a")
        node.claim("a", "2")
        effects = node.core.reconfigure(plan("b", exclusive=False, depth=1), 1.0)
        assert refused(effects) == [("2", UnknownModel)]
        assert node.release("first") == [StartUnload("u-a")]

    def test_what_is_unchanged_is_not_disturbed(self):
        node = Node(plan("a", depth=1)).with_loaded("a")
        node.claim("a", "2")
        assert node.core.reconfigure(plan("a", "b", depth=1), 1.0) == []
        assert granted(node.release("first")) == ["2"]

    def test_who_waits_moves_to_the_new_server_of_a_model(self):
        node = Node(plan("a", exclusive=False, depth=1)).with_loaded("a")
        node.claim("a", "2")
        moved = plan(models=(model("a", depth=1, of="a2"),), units=(unit("a2"),), exclusive=False)
        assert loads(node.core.reconfigure(moved, 1.0)) == [("u-a2", ())]
        assert granted(node.loaded("a2")) == ["2"], "the old one still runs a request of its own"
        assert StartUnload("u-a") in node.release("first")

    def test_a_runtime_that_becomes_exclusive_keeps_one_model(self):
        node = Node(plan("a", "b", exclusive=False)).with_loaded("a").with_loaded("b", "b1")
        node.release("first")
        assert node.core.reconfigure(plan("a", "b"), 1.0) == [StartUnload("u-a")]

    def test_slots_that_appear_at_once_go_only_to_who_came_before_another_model(self):
        node = Node(plan("a", "b", depth=1)).with_loaded("a")
        node.claim("a", "early")
        node.claim("b", "b1")
        node.claim("a", "late")
        assert granted(node.core.reconfigure(plan("a", "b", depth=3), 1.0)) == ["early"]
