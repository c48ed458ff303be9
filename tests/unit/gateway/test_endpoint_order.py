"""Which endpoint of a model is tried first: by policy, and the ejected ones last."""

import pytest

from turnout_api.vocabulary import Capability, Family, Policy
from turnout_router.cluster.table import Endpoint, PublicModel
from turnout_router.families import paths
from turnout_router.gateway.ejection import EJECT_AFTER, Verdict
from turnout_router.gateway.endpoints import Endpoints, able, key_of


def endpoint(node: str, *capabilities: Capability, available: bool = True) -> Endpoint:
    return Endpoint(node, node, None, "m", "m", Family.OPENAI, frozenset(capabilities or {Capability.TEXT}), available)


A, B, C = (endpoint(node) for node in "abc")


def first(
    known: Endpoints, endpoints: tuple[Endpoint, ...], policy: Policy = Policy.ROUND_ROBIN, conversation: bytes = b""
) -> str:
    return known.order("m", endpoints, policy=policy, now=0.0, affinity=lambda: conversation)[0].node_id


def eject(known: Endpoints, out: Endpoint) -> None:
    for _ in range(EJECT_AFTER):
        known.ejections.ended(key_of(out), Verdict.BAD, 0.0)


def test_round_robin_takes_turns() -> None:
    known = Endpoints()
    assert [first(known, (A, B, C)) for _ in range(6)] == ["a", "b", "c", "a", "b", "c"]


def test_least_loaded_takes_the_one_with_fewest_open_exchanges_and_rotates_among_equals() -> None:
    known = Endpoints()
    known.balance.began(("a", "m"))
    assert {first(known, (A, B, C), Policy.LEAST_LOADED) for _ in range(6)} == {"b", "c"}
    known.balance.ended(("a", "m"))
    assert {first(known, (A, B, C), Policy.LEAST_LOADED) for _ in range(6)} == {"a", "b", "c"}


def test_lowest_latency_takes_the_faster_one_once_both_were_measured() -> None:
    known = Endpoints()
    known.balance.answered(("a", "m"), 2.0, 0.0)
    known.balance.answered(("b", "m"), 0.5, 0.0)
    assert [first(known, (A, B), Policy.LOWEST_LATENCY) for _ in range(4)] == ["b"] * 4


def test_a_conversation_returns_to_its_endpoint_and_only_those_of_a_lost_one_move() -> None:
    known = Endpoints()
    conversations = [bytes([i]) for i in range(30)]
    before = {c: first(known, (A, B, C), Policy.CACHE_AFFINITY, c) for c in conversations}
    after = {c: first(known, (A, B), Policy.CACHE_AFFINITY, c) for c in conversations}

    assert set(before.values()) == {"a", "b", "c"}
    assert all(after[c] == before[c] for c in conversations if before[c] != "c")


def test_an_ejected_endpoint_comes_last_and_takes_no_turns() -> None:
    known = Endpoints()
    eject(known, A)
    orders = [[e.node_id for e in known.order("m", (A, B, C), policy=Policy.ROUND_ROBIN, now=0.0)] for _ in range(4)]
    assert orders == [["b", "c", "a"], ["c", "b", "a"]] * 2


def test_the_only_endpoint_is_tried_although_it_is_ejected() -> None:
    known = Endpoints()
    eject(known, A)
    assert first(known, (A,)) == "a"


def test_endpoints_that_are_down_or_lack_a_capability_or_the_path_are_left_out() -> None:
    seeing = endpoint("b", Capability.TEXT, Capability.VISION)
    down = endpoint("c", Capability.TEXT, Capability.VISION, available=False)
    whisper = Endpoint("w", "w", None, "m", "m", Family.WHISPER, frozenset({Capability.TEXT, Capability.VISION}), True)
    model = PublicModel("m", (A, seeing, down, whisper), frozenset(Capability))
    chat = paths.find("POST", "/v1/chat/completions").endpoint
    assert able(model, frozenset({Capability.TEXT, Capability.VISION}), chat) == [seeing]


def test_an_exchange_cannot_end_more_often_than_it_began() -> None:
    with pytest.raises(KeyError):
        Endpoints().balance.ended(("a", "m"))
