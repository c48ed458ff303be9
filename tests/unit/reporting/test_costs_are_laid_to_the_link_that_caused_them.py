"""Own waits and loads of a helper are laid to the link that had something there at that moment."""

from turnout_api.lending import ModelRef
from turnout_cli.reporting.costs import costs
from turnout_cli.reporting.journeys import journeys
from turnout_cli.reporting.log import ClusterLog, NodeLog, Pair
from turnout_router.runtime.interface import LoadRecord

A_TO_B = Pair(ModelRef("a", "m"), ModelRef("b", "n"))
C_TO_B = Pair(ModelRef("c", "m"), ModelRef("b", "n"))


def laid(rows, nodes):
    return costs(journeys(ClusterLog(rows, nodes)), rows, nodes)


def wait_of(row, ts, waited_s):
    return row("native_waited_behind_borrowed", ts, owner_node="", owner_model="", waited_s=waited_s)


def test_an_own_wait_is_of_the_link_whose_request_was_there(row, request_row):
    rows = [
        row("lent", 100.0, request_id="r"),
        row("lent", 500.0, request_id="s", owner_node="c"),
        wait_of(row, 108.0, 5.0),
        wait_of(row, 300.0, 7.0),
    ]
    nodes = {"a": NodeLog([request_row("r", 90.0, 20.0)])}
    found, unlaid = laid(rows, nodes)
    assert found[A_TO_B].own_waits == [(108.0, 5.0)]
    assert found[C_TO_B].own_waits == []
    assert unlaid == [7.0]


def test_a_load_for_borrowed_work_and_the_way_back_of_what_it_displaced_are_costs(row, request_row):
    loads = [
        LoadRecord("n", 101.0, 40.0, ("x",)),
        LoadRecord("x", 160.0, 25.0, ("n",)),
        LoadRecord("x", 900.0, 24.0, ()),
    ]
    nodes = {"a": NodeLog([request_row("r", 90.0, 60.0)]), "b": NodeLog(loads=loads)}
    found, _ = laid([row("lent", 100.0, request_id="r")], nodes)
    assert (found[A_TO_B].loads, found[A_TO_B].restores) == ([40.0], [25.0])


def test_a_load_that_an_own_request_asked_for_is_none(row, request_row):
    nodes = {
        "a": NodeLog([request_row("r", 90.0, 60.0)]),
        "b": NodeLog([request_row("own", 100.5, 50.0, node="b")], [LoadRecord("n", 101.0, 40.0, ())]),
    }
    found, _ = laid([row("lent", 100.0, request_id="r")], nodes)
    assert found[A_TO_B].loads == []


def test_a_load_that_failed_or_with_nothing_lent_is_none(row, request_row):
    loads = [LoadRecord("n", 101.0, 40.0, (), "no memory"), LoadRecord("n", 700.0, 40.0, ())]
    nodes = {"a": NodeLog([request_row("r", 90.0, 60.0)]), "b": NodeLog(loads=loads)}
    found, _ = laid([row("lent", 100.0, request_id="r")], nodes)
    assert found[A_TO_B].loads == []


def test_what_answered_requests_took_at_the_helper_is_counted_without_their_wait(row, request_row):
    at_helper = request_row("r", 100.0, 12.0, node="b", queued_s=4.0)
    nodes = {"a": NodeLog([request_row("r", 90.0, 23.0)]), "b": NodeLog([at_helper])}
    found, _ = laid([row("lent", 100.0, request_id="r")], nodes)
    assert found[A_TO_B].borrowed_s == 8.0
