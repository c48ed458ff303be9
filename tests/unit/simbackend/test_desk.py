"""Slots, queue and loads of the stand-in."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnout_router.simbackend.desk import (
    Arrive,
    Desk,
    Leave,
    Loaded,
    Preload,
    Start,
    StartLoad,
    StopLoad,
    Unload,
)

ONE = Desk(slots=1, exclusive=False, loaded=frozenset({"a", "b"}))
EMPTY = Desk(slots=2, exclusive=True)


def run(desk, *events):
    """The desk after these events, and the effects of the last one."""
    effects = []
    for event in events:
        desk, effects = desk.on(event)
    return desk, effects


def test_a_request_for_a_loaded_model_starts_at_once():
    assert run(ONE, Arrive(1, "a"))[1] == [Start(1)]


def test_a_request_without_a_free_slot_waits_until_one_leaves():
    desk, effects = run(ONE, Arrive(1, "a"), Arrive(2, "a"))
    assert effects == []
    assert desk.on(Leave(1))[1] == [Start(2)]


def test_the_queue_is_in_order_of_arrival():
    desk, _ = run(ONE, Arrive(1, "a"), Arrive(2, "b"), Arrive(3, "a"))
    desk, effects = desk.on(Leave(1))
    assert effects == [Start(2)]
    assert desk.on(Leave(2))[1] == [Start(3)]


def test_whoever_leaves_the_queue_is_never_started():
    desk, _ = run(ONE, Arrive(1, "a"), Arrive(2, "a"), Arrive(3, "a"), Leave(2))
    assert desk.on(Leave(1))[1] == [Start(3)]


def test_leaving_twice_changes_nothing():
    desk, _ = run(ONE, Arrive(1, "a"), Leave(1))
    assert desk.on(Leave(1)) == (desk, [])


def test_a_request_loads_its_model_and_starts_when_it_is_there():
    desk, effects = run(EMPTY, Arrive(1, "a"))
    assert effects == [StartLoad("a", ())]
    assert desk.on(Loaded())[1] == [Start(1)]


def test_an_exclusive_load_waits_for_what_runs_and_displaces_it():
    desk, _ = run(EMPTY, Arrive(1, "a"), Loaded())
    desk, effects = desk.on(Arrive(2, "b"))
    assert effects == []
    desk, effects = desk.on(Leave(1))
    assert effects == [StartLoad("b", ("a",))]
    assert desk.loaded == frozenset()


def test_nobody_overtakes_a_head_that_waits_for_a_load():
    desk, _ = run(EMPTY, Arrive(1, "a"), Loaded(), Arrive(2, "b"))
    assert desk.on(Arrive(3, "a"))[1] == []


def test_a_desk_that_is_not_exclusive_keeps_what_was_loaded():
    desk, effects = run(replace(EMPTY, exclusive=False), Preload("a"), Loaded(), Preload("b"))
    assert effects == [StartLoad("b", ())]
    assert desk.loaded == {"a"}


def test_an_unloaded_model_goes_when_its_last_request_has_ended():
    desk, _ = run(ONE, Arrive(1, "a"), Unload("a"))
    assert desk.loaded == {"a", "b"}
    assert desk.on(Leave(1))[0].loaded == {"b"}


def test_a_request_behind_an_unload_loads_its_model_again():
    desk, effects = run(ONE, Arrive(1, "a"), Unload("a"), Arrive(2, "a"))
    assert effects == []
    assert desk.on(Leave(1))[1] == [StartLoad("a", ())]


def test_unloading_what_is_loading_takes_the_load_back():
    desk, effects = run(EMPTY, Preload("a"), Unload("a"))
    assert effects == [StopLoad("a")]
    assert (desk.loading, desk.queue) == (None, ())


def test_a_request_that_waits_for_a_load_that_was_taken_back_starts_it_again():
    assert run(EMPTY, Arrive(1, "a"), Unload("a"))[1] == [StopLoad("a"), StartLoad("a", ())]


def test_loaded_without_a_load_is_a_broken_protocol():
    with pytest.raises(AssertionError):
        ONE.on(Loaded())


MODELS = st.sampled_from("abc")
STEPS = st.lists(
    st.one_of(
        MODELS.map(lambda model: ("arrive", model)),
        st.integers(0, 30).map(lambda ticket: ("leave", ticket)),
        MODELS.map(lambda model: ("preload", model)),
        MODELS.map(lambda model: ("unload", model)),
        st.just(("loaded", "")),
    ),
    max_size=60,
)


def events(steps):
    """Steps as events; tickets count up, and Loaded comes only while something is loading."""
    tickets = 0
    for kind, value in steps:
        match kind:
            case "arrive":
                yield Arrive(tickets, value)
                tickets += 1
            case "leave":
                yield Leave(value)
            case "preload":
                yield Preload(value)
            case "unload":
                yield Unload(value)
            case _:
                yield Loaded()


@given(steps=STEPS, slots=st.integers(1, 3), exclusive=st.booleans())
def test_whatever_happens_the_invariants_hold(steps, slots, exclusive):
    desk = Desk(slots=slots, exclusive=exclusive)
    started = []
    for event in events(steps):
        if isinstance(event, Loaded) and desk.loading is None:
            continue
        desk, effects = desk.on(event)
        started += [effect.ticket for effect in effects if isinstance(effect, Start)]
        assert len(desk.running) <= slots
        assert {entry.model for entry in desk.running} <= desk.loaded
        assert not exclusive or len(desk.loaded) + (desk.loading is not None) <= 1
        assert desk.loading not in desk.loaded
    assert len(started) == len(set(started))
    assert started == sorted(started)


@given(steps=STEPS, slots=st.integers(1, 3), exclusive=st.booleans())
def test_whatever_happened_everybody_who_stays_is_served(steps, slots, exclusive):
    desk = Desk(slots=slots, exclusive=exclusive)
    for event in events(steps):
        if not (isinstance(event, Loaded) and desk.loading is None):
            desk, _ = desk.on(event)
    for _ in range(500):
        if desk.loading is not None:
            desk, _ = desk.on(Loaded())
        elif desk.running:
            desk, _ = desk.on(Leave(desk.running[0].ticket))
    assert (desk.queue, desk.running) == ((), ())
