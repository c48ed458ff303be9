"""Which endpoint is tried first, by policy."""

import pytest

from turnout_api.vocabulary import Capability, Family, Policy
from turnout_router.cluster.table import Endpoint
from turnout_router.gateway.select import EndpointStats, order


def endpoint(node: str, *capabilities: Capability, available: bool = True) -> Endpoint:
    return Endpoint(node, node, None, "m", "m", Family.OPENAI, frozenset(capabilities or {Capability.TEXT}), available)


def first(endpoints: list[Endpoint], stats: EndpointStats, policy: Policy, affinity: bytes = b"") -> str:
    needs = frozenset({Capability.TEXT})
    return order("m", endpoints, needs=needs, policy=policy, stats=stats, affinity=affinity)[0].node_id


def test_round_robin_takes_turns() -> None:
    stats, nodes = EndpointStats(), [endpoint("a"), endpoint("b"), endpoint("c")]
    assert [first(nodes, stats, Policy.ROUND_ROBIN) for _ in range(6)] == ["a", "b", "c", "a", "b", "c"]


def test_least_loaded_takes_the_one_with_fewest_open_exchanges_and_rotates_among_equals() -> None:
    stats, nodes = EndpointStats(), [endpoint("a"), endpoint("b"), endpoint("c")]
    stats.began(("a", "m"))
    assert {first(nodes, stats, Policy.LEAST_LOADED) for _ in range(6)} == {"b", "c"}
    stats.ended(("a", "m"))
    assert {first(nodes, stats, Policy.LEAST_LOADED) for _ in range(6)} == {"a", "b", "c"}


def test_lowest_latency_measures_each_once_then_takes_the_fastest() -> None:
    stats, nodes = EndpointStats(), [endpoint("a"), endpoint("b")]
    stats.answered(("a", "m"), 0.5)
    assert first(nodes, stats, Policy.LOWEST_LATENCY) == "b"
    stats.answered(("b", "m"), 1.0)
    assert {first(nodes, stats, Policy.LOWEST_LATENCY) for _ in range(4)} == {"a"}


def test_lowest_latency_counts_what_waits_there_already() -> None:
    stats, nodes = EndpointStats(), [endpoint("a"), endpoint("b")]
    stats.answered(("a", "m"), 0.5)
    stats.answered(("b", "m"), 0.8)
    stats.began(("a", "m"))
    assert {first(nodes, stats, Policy.LOWEST_LATENCY) for _ in range(4)} == {"b"}


def test_one_fast_answer_does_not_make_a_slow_endpoint_the_fastest() -> None:
    stats, nodes = EndpointStats(), [endpoint("a"), endpoint("b")]
    stats.answered(("a", "m"), 0.5)
    stats.answered(("b", "m"), 1.0)
    stats.answered(("b", "m"), 0.1)
    assert {first(nodes, stats, Policy.LOWEST_LATENCY) for _ in range(4)} == {"a"}


def test_cache_affinity_keeps_a_prompt_on_its_node_and_moves_only_the_prompts_of_a_node_that_goes() -> None:
    stats, nodes = EndpointStats(), [endpoint("a"), endpoint("b"), endpoint("c")]
    prompts = [str(i).encode() for i in range(60)]
    before = {p: first(nodes, stats, Policy.CACHE_AFFINITY, p) for p in prompts}
    after = {p: first(nodes[:2], stats, Policy.CACHE_AFFINITY, p) for p in prompts}
    assert set(before.values()) == {"a", "b", "c"}
    assert {p for p in prompts if before[p] != after[p]} == {p for p in prompts if before[p] == "c"}


def test_an_endpoint_without_the_capability_or_unavailable_is_left_out() -> None:
    vision = frozenset({Capability.TEXT, Capability.VISION})
    nodes = [endpoint("text"), endpoint("eye", *vision), endpoint("down", *vision, available=False)]
    found = order("m", nodes, needs=vision, policy=Policy.ROUND_ROBIN, stats=EndpointStats())
    assert [e.node_id for e in found] == ["eye"]


def test_an_end_without_a_beginning_is_a_defect_that_shows() -> None:
    with pytest.raises(KeyError):
        EndpointStats().ended(("a", "m"))
