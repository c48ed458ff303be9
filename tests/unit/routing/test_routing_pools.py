"""A chain of targets becomes models to try: a pool expands in place."""

from collections import Counter

import pytest

from turnout_api.routing.balance import Balance
from turnout_api.routing.pools import Candidate, choosing, expand
from turnout_api.routing.snapshot import Member, Pool, Target
from turnout_api.vocabulary import Policy

FAST = Pool("fast", Policy.ROUND_ROBIN, (Member("a"), Member("b"), Member("c")))
CHAIN = (Target("first"), Target(pool_name="fast", pool=FAST), Target("last"))


def models(targets, balance=None, away=(), *, looks_only=False, **given):
    choose = choosing(balance or Balance(), looks_only=looks_only, **given)
    return [c.model for c in expand(targets, serves=lambda model: model not in away, choose=choose)]


def test_a_pool_expands_in_place_its_chosen_member_then_its_others_then_the_next_target():
    balance = Balance()

    assert models(CHAIN, balance) == ["first", "a", "b", "c", "last"]
    assert models(CHAIN, balance) == ["first", "b", "c", "a", "last"]


def test_what_does_not_serve_is_passed_over_before_the_policy_chooses():
    balance = Balance()
    taken = Counter(models(CHAIN, balance, away={"first", "b"})[0] for _ in range(100))

    assert taken == {"a": 50, "c": 50}


def test_a_pool_that_nobody_serves_or_that_does_not_exist_is_passed_over():
    chain = (Target(pool_name="gone"), *CHAIN)

    assert models(chain, away={"a", "b", "c"}) == ["first", "last"]


def test_nothing_serving_is_no_candidate():
    assert models(CHAIN, away={"first", "a", "b", "c", "last"}) == []


def test_no_model_is_tried_twice():
    assert models((Target("b"), Target(pool_name="fast", pool=FAST), Target("a"), Target("b"))) == ["b", "a", "c"]


def test_a_pool_takes_a_turn_only_when_the_chain_gets_to_it():
    balance = Balance()
    candidates = expand(CHAIN, serves=lambda _model: True, choose=choosing(balance))

    assert next(candidates) == Candidate("first")
    assert balance.turns == {}
    assert next(candidates) == Candidate("a", "fast")
    assert balance.turns == {"fast": 1}


def test_a_dry_run_takes_no_turn():
    balance = Balance()

    assert [models(CHAIN, balance, looks_only=True)[1] for _ in range(3)] == ["a", "a", "a"]
    assert balance.turns == {}


def test_two_pools_with_the_same_members_differ_in_policy_and_turns():
    loaded = Pool("loaded", Policy.LEAST_LOADED, FAST.members)
    balance = Balance(inflight={"a": 2, "b": 1})

    assert models((Target(pool_name="loaded", pool=loaded),), balance)[0] == "c"
    assert models((Target(pool_name="fast", pool=FAST),), balance)[0] == "a"


@pytest.mark.parametrize("conversation", [b"one", b"two", b"three"])
def test_a_conversation_stays_in_an_affine_pool(conversation):
    pool = Pool("affine", Policy.CACHE_AFFINITY, tuple(Member(f"m{i}") for i in range(5)))
    chain, balance = (Target(pool_name="affine", pool=pool),), Balance()

    assert len({models(chain, balance, affinity=lambda: conversation)[0] for _ in range(20)}) == 1
