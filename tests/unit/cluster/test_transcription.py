"""Transcription without a model: which node gets it."""

from turnout_api.vocabulary import Capability, Family
from turnout_router.cluster.table import Endpoint
from turnout_router.cluster.transcription import Candidate, order
from turnout_router.upstream.interface import Origin


def candidate(node: str, *, local: bool = False, loaded: bool = False, workload: int = 0) -> Candidate:
    origin = None if local else Origin("127.0.0.1", 1)
    endpoint = Endpoint(node, node, origin, "w", "w", Family.OPENAI, frozenset({Capability.TRANSCRIPTION}), True)
    return Candidate("w", endpoint, loaded, workload)


def best(*candidates: Candidate, cursor: int = 0) -> str:
    return order(candidates, cursor)[0].endpoint.node_id


def test_a_loaded_local_configuration_goes_first_even_when_it_is_busier() -> None:
    assert best(candidate("far", loaded=True), candidate("here", local=True, loaded=True, workload=5)) == "here"


def test_then_the_loaded_remote_node_with_the_least_work() -> None:
    busy, calm = candidate("busy", loaded=True, workload=3), candidate("calm", loaded=True, workload=1)
    assert best(candidate("here", local=True), busy, calm) == "calm"


def test_then_a_wholly_idle_node_that_can_load_it() -> None:
    assert best(candidate("here", local=True, workload=1), candidate("idle")) == "idle"


def test_when_all_are_busy_the_local_queue() -> None:
    assert best(candidate("far", workload=1), candidate("here", local=True, workload=9)) == "here"


def test_when_all_are_busy_and_none_is_local_the_shortest_queue() -> None:
    assert best(candidate("long", workload=4), candidate("short", workload=2)) == "short"


def test_equal_candidates_take_turns() -> None:
    nodes = [candidate("a"), candidate("b")]
    assert [best(*nodes, cursor=i) for i in range(4)] == ["a", "b", "a", "b"]


def test_no_candidates_no_order() -> None:
    assert order([], 3) == []
