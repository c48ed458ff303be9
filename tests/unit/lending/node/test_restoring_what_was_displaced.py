"""What borrowed work pushed out is loaded again, once nothing borrowed has come for a while and the node is quiet."""

import pytest

DELAY_S = 1.5


@pytest.fixture
def displaced(helper):
    """`own` was pushed out for `m`; the one borrowed request ended at 50."""

    def make(**more):
        restore = more.pop("restore", True)
        router = helper(**more)
        router.borrow("a", restore=restore)
        router.at(40.0)
        router.loaded()
        router.at(50.0)
        router.end("a")
        return router

    return make


def units(router):
    return [load.unit for load in router.loads]


def test_it_is_loaded_again_after_the_delay(displaced):
    router = displaced()
    router.at(50.0 + DELAY_S - 0.1)
    assert units(router) == ["u-m"]
    router.at(50.0 + DELAY_S)
    assert units(router) == ["u-m", "u-own"]
    assert router.loads[-1].displaced == ("u-m",)
    router.loaded()
    assert [(record.report.model, record.report.restore) for record in router.records] == [("m", False), ("own", True)]
    router.at(1000.0)
    assert units(router) == ["u-m", "u-own"]


def test_what_borrowed_work_itself_brought_back_is_restored_the_next_time_too(displaced):
    router = displaced()
    router.borrow("b", model="own")
    router.loaded()
    router.end("b")
    router.at(50.0 + DELAY_S)  # it is there: nothing to load
    router.borrow("c")
    router.loaded()
    router.end("c")
    router.at(50.0 + 2 * DELAY_S)
    assert units(router) == ["u-m", "u-own", "u-m", "u-own"]


def test_a_link_that_does_not_ask_for_it_leaves_things_as_they_are(displaced):
    router = displaced(restore=False)
    router.at(1000.0)
    assert units(router) == ["u-m"]


def test_more_borrowed_work_postpones_it(displaced):
    router = displaced()
    router.at(51.0)
    router.borrow("b")
    router.at(61.0)
    assert units(router) == ["u-m"]
    router.end("b")
    router.at(61.0 + DELAY_S)
    assert units(router) == ["u-m", "u-own"]


def test_borrowed_work_that_is_not_even_taken_postpones_it(displaced):
    router = displaced()
    router.at(51.0)
    router.borrow("b", model="m2", may_load=False)
    assert router.returned() == {"b": "load_needed"}
    router.at(51.0 + DELAY_S - 0.1)
    assert units(router) == ["u-m"]
    router.at(51.0 + DELAY_S)
    assert units(router) == ["u-m", "u-own"]


def test_borrowed_work_that_is_not_taken_while_other_borrowed_work_runs_brings_no_restore_nearer(displaced):
    router = displaced()
    router.at(51.0)
    router.borrow("b")
    router.borrow("c", model="m2", may_load=False)
    router.at(61.0)
    router.end("b")
    router.at(61.0 + DELAY_S - 0.1)
    assert units(router) == ["u-m"]
    router.at(61.0 + DELAY_S)
    assert units(router) == ["u-m", "u-own"]


def test_a_run_of_borrowed_work_for_several_models_restores_what_was_there_before_it(displaced):
    router = displaced()
    router.at(51.0)
    router.borrow("b", model="m2")
    router.at(60.0)
    router.loaded()
    router.end("b")
    router.at(60.0 + DELAY_S)
    assert units(router) == ["u-m", "u-m2", "u-own"]


def test_a_model_that_borrowing_had_put_there_is_not_what_was_there_before(router, helper):
    """Nothing was loaded when the run began, so nothing is restored."""
    made = router("m", "m2", links=helper().plan.links, node="h")
    made.take(made.core.on_health("u-m", "", 0.0, loaded=False, version=made.core.unit("u-m").version))
    made.borrow("a")
    made.loaded()
    made.borrow("b", model="m2")
    made.end("a")
    made.loaded()
    made.end("b")
    made.at(1000.0)
    assert units(made) == ["u-m", "u-m2"]


def test_an_own_request_cancels_it_and_loads_what_it_needs(displaced):
    router = displaced()
    router.at(51.0)
    router.claim("1", model="m2")
    router.at(60.0)
    router.loaded()
    router.end("1")
    router.at(1000.0)
    assert units(router) == ["u-m", "u-m2"]


def test_an_own_request_for_the_borrowed_model_keeps_it(displaced):
    router = displaced()
    router.at(51.0)
    router.claim("1")
    router.end("1")
    router.at(1000.0)
    assert units(router) == ["u-m"]
    assert router.core.state(1000.0).displaces == "m"


def test_own_work_that_comes_while_borrowed_work_runs_ends_the_run(helper):
    router = helper()
    router.borrow("a")
    router.loaded()
    router.claim("1")
    router.end("a")
    router.end("1")
    router.at(1000.0)
    assert units(router) == ["u-m"]


def test_while_it_loads_the_node_takes_nothing_and_is_not_idle(displaced):
    router = displaced()
    router.at(52.0)
    state = router.core.state(52.0)
    assert (state.accepting, state.idle_s) == (False, 0.0)
    router.borrow("b")
    assert router.returned() == {"b": "busy_on_arrival"}
    router.at(77.0)
    router.loaded()
    state = router.core.state(80.0)
    assert (state.accepting, state.idle_s) == (True, 3.0)


def test_borrowed_work_that_went_back_while_its_model_loaded_is_followed_by_a_restore(helper):
    router = helper()
    router.borrow("a")
    router.at(10.0)
    router.leave("a")
    router.at(40.0)
    router.loaded()
    router.at(40.0 + DELAY_S)
    assert units(router) == ["u-m", "u-own"]


def test_a_load_that_failed_is_followed_by_a_restore(helper):
    router = helper()
    router.borrow("a")
    router.take(router.core.on_unloaded("u-own", 10.0))
    router.at(10.0)
    router.take(router.core.on_load_failed("u-m", "no memory", 10.0))
    router.at(10.0 + DELAY_S)
    assert units(router) == ["u-m", "u-own"]


@pytest.mark.parametrize(("load_s", "delay_s"), [(25.0, 25.0), (0.2, 1.5)])
def test_without_a_delay_of_its_own_it_waits_as_long_as_the_load_takes(displaced, load_s, delay_s):
    router = displaced(restore_delay_s=None, loads={"own": load_s})
    router.at(50.0 + delay_s - 0.1)
    assert units(router) == ["u-m"]
    router.at(50.0 + delay_s)
    assert units(router) == ["u-m", "u-own"]


def test_it_is_looked_at_again_after_each_delay_while_its_server_is_not_ready(displaced):
    router = displaced()
    router.take(router.core.on_health("u-own", "connection refused", 50.0, loaded=None, version=-1))
    router.at(52.0)
    assert units(router) == ["u-m"]
    router.take(router.core.on_health("u-own", "", 52.0, loaded=False, version=router.core.unit("u-own").version))
    router.at(50.0 + 2 * DELAY_S)
    assert units(router) == ["u-m", "u-own"]


def test_a_model_that_is_gone_is_not_restored(displaced):
    router = displaced()
    router.configure(models=router.plan.models[1:], units=router.plan.units[1:])
    router.at(1000.0)
    assert units(router) == ["u-m"]


def test_a_draining_node_restores_nothing(displaced):
    router = displaced()
    router.take(router.core.drain(50.0))
    router.at(1000.0)
    assert units(router) == ["u-m"]


def test_an_unload_by_hand_ends_the_run(displaced):
    router = displaced()
    _, effects = router.core.unload("m", 50.0)
    router.take(effects)
    router.take(router.core.on_unloaded("u-m", 51.0))
    router.at(1000.0)
    assert units(router) == ["u-m"]
