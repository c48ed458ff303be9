"""What each policy promises, over many requests. Everything is seeded: a bound that holds once holds always.

Where a bound comes from chance it is five standard deviations wide, so that another seed would not break it either.
"""

from collections import Counter
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnout_api.routing.balance import EXPLORE_EVERY, HALF_LIFE_S, Balance, Latency, Seen, averaged, order
from turnout_api.vocabulary import Policy

NAMES = [f"node-{i}" for i in range(8)]


def first(policy, members=NAMES, *, turn=0, seen=None, **given):
    return order(policy, members, turn=turn, seen=seen or Seen(), **given)[0]


@given(
    policy=st.sampled_from([None, *Policy]),
    members=st.lists(st.sampled_from(NAMES), unique=True, max_size=8),
    turn=st.integers(0, 10**12),
    seen=st.builds(
        Seen,
        st.dictionaries(st.sampled_from(NAMES), st.integers(0, 5)),
        st.dictionaries(st.sampled_from(NAMES), st.builds(Latency, st.floats(0, 99), st.floats(0, 99))),
    ),
    given_too=st.fixed_dictionaries(
        {
            "weights": st.dictionaries(st.sampled_from(NAMES), st.integers(1, 10**6)),
            "affinity": st.binary(max_size=99),
        }
    ),
)
def test_every_policy_orders_each_member_once_and_the_same_question_has_the_same_answer(
    policy, members, turn, seen, given_too
):
    def asked():
        return order(policy, members, turn=turn, seen=seen, **given_too)

    assert sorted(asked()) == sorted(members)
    assert asked() == asked()


def test_a_split_by_weight_gives_each_its_share_at_any_time():
    weights = {"a": 3, "b": 1, "c": 96}
    taken: Counter[str] = Counter()

    for turn in range(5000):
        taken[first(None, list(weights), turn=turn, weights=weights)] += 1
        for key, weight in weights.items():
            assert abs(taken[key] - (turn + 1) * weight / 100) < 4  # far below what chance would give: √n/2


def test_a_split_by_weight_comes_in_no_bursts():
    """With 3 : 1 nobody waits longer than a few turns."""
    rare = [turn for turn in range(2000) if first(None, ["a", "b"], turn=turn, weights={"a": 3, "b": 1}) == "b"]

    assert max(later - earlier for earlier, later in pairwise(rare)) <= 5


def test_of_a_split_the_others_follow_by_their_weights():
    """Where the chosen member fails, its share goes to the others by theirs."""
    weights = {"a": 50, "b": 30, "c": 20}
    second = Counter(
        ordered[1]
        for turn in range(10_000)
        if (ordered := order(None, list(weights), turn=turn, seen=Seen(), weights=weights))[0] == "a"
    )

    assert abs(second["b"] / second.total() - 0.6) < 0.02


def test_a_missing_weight_is_one():
    taken = Counter(first(None, ["a", "b"], turn=turn) for turn in range(1000))

    assert abs(taken["a"] - 500) < 4


@pytest.mark.parametrize("members", [2, 3, 7])
def test_round_robin_gives_each_the_same_number_give_or_take_one(members):
    taken: Counter[str] = Counter()

    for turn in range(1000):
        taken[first(Policy.ROUND_ROBIN, NAMES[:members], turn=turn)] += 1
        assert max(taken.values()) - (min(taken.values()) if len(taken) == members else 0) <= 1


@given(st.dictionaries(st.sampled_from(NAMES), st.integers(0, 9), min_size=2), st.integers(0, 99))
def test_least_loaded_never_takes_one_while_another_has_fewer(inflight, turn):
    ordered = order(Policy.LEAST_LOADED, sorted(inflight), turn=turn, seen=Seen(inflight))

    assert [inflight[key] for key in ordered] == sorted(inflight.values())


def test_least_loaded_takes_turns_among_equals():
    assert Counter(first(Policy.LEAST_LOADED, turn=turn) for turn in range(800)) == dict.fromkeys(NAMES, 100)


class Machines:
    """Members that answer one request after the other, each at its own pace; a request comes every `every_s`."""

    def __init__(self, policy, pace_s, every_s=1.0):
        self.policy, self.pace_s, self.every_s = policy, dict(pace_s), every_s
        self.balance: Balance[str] = Balance()
        self.now = 0.0
        self.running: list[tuple[float, str, float]] = []
        self.free_at = dict.fromkeys(pace_s, 0.0)

    def send(self, members=None, affinity=b""):
        self.now += self.every_s
        for ended in sorted(r for r in self.running if r[0] <= self.now):
            self.running.remove(ended)
            self.balance.ended(ended[1])
            self.balance.answered(ended[1], ended[0] - ended[2], ended[0])
        turn = self.balance.take_turn("all")
        key = order(self.policy, members or list(self.pace_s), turn=turn, seen=self.balance.seen, affinity=affinity)[0]
        self.balance.began(key)
        self.free_at[key] = max(self.free_at[key], self.now) + self.pace_s[key]
        self.running.append((self.free_at[key], key, self.now))
        return key


def test_lowest_latency_sends_most_to_the_fastest_and_measures_the_others_now_and_then():
    machines = Machines(Policy.LOWEST_LATENCY, {"slow": 3.0, "fast": 0.3, "slower": 4.0})

    taken = Counter(machines.send() for _ in range(3200))

    assert taken["fast"] > 0.9 * 3200
    # 200 requests explore, and the least recently measured idle one is nearly always one of the two slow ones
    assert min(taken["slow"], taken["slower"]) >= 3200 / EXPLORE_EVERY / 3


def test_lowest_latency_finds_a_member_that_recovered():
    machines = Machines(Policy.LOWEST_LATENCY, {"a": 0.5, "b": 5.0})
    for _ in range(300):
        machines.send()
    machines.pace_s["b"] = 0.05

    for _ in range(10 * EXPLORE_EVERY):
        machines.send()

    assert Counter(machines.send() for _ in range(100))["b"] > 90


def test_lowest_latency_leaves_a_member_that_became_slow():
    machines = Machines(Policy.LOWEST_LATENCY, {"a": 0.1, "b": 0.5})
    for _ in range(300):
        machines.send()
    machines.pace_s["a"] = 5.0
    for _ in range(50):
        machines.send()

    assert Counter(machines.send() for _ in range(100))["b"] > 85


def test_lowest_latency_tries_one_that_was_never_measured_with_one_request_at_a_time():
    latency = {"a": Latency(1.0, 0.0)}

    assert first(Policy.LOWEST_LATENCY, ["a", "new"], seen=Seen({}, latency)) == "new"
    assert first(Policy.LOWEST_LATENCY, ["a", "new"], seen=Seen({"new": 2}, latency)) == "a"
    assert first(Policy.LOWEST_LATENCY, ["a", "new"], seen=Seen({"a": 1, "new": 2}), turn=0) == "a"


def test_lowest_latency_counts_what_waits_there_already():
    latency = {"a": Latency(0.5, 0.0), "b": Latency(0.8, 0.0)}

    assert first(Policy.LOWEST_LATENCY, ["a", "b"], seen=Seen({}, latency)) == "a"
    assert first(Policy.LOWEST_LATENCY, ["a", "b"], seen=Seen({"a": 1}, latency)) == "b"


def test_lowest_latency_explores_no_member_that_is_busy():
    latency = {"a": Latency(0.1, 9.0), "b": Latency(9.0, 0.0)}

    assert first(Policy.LOWEST_LATENCY, ["a", "b"], turn=EXPLORE_EVERY - 1, seen=Seen({"b": 1}, latency)) == "a"
    assert first(Policy.LOWEST_LATENCY, ["a", "b"], turn=EXPLORE_EVERY - 1, seen=Seen({}, latency)) == "b"


def test_an_average_gives_way_to_a_measurement_the_sooner_the_older_it_is():
    before = Latency(1.0, at=100.0)

    assert averaged(None, 3.0, 7.0) == Latency(3.0, 7.0)
    assert averaged(before, 2.0, 100.0).seconds == pytest.approx(1.2)
    assert averaged(before, 2.0, 100.0 + HALF_LIFE_S).seconds == pytest.approx(1.5)
    assert averaged(before, 2.0, 100.0 + 20 * HALF_LIFE_S).seconds == pytest.approx(2.0, abs=1e-5)
    assert averaged(before, 2.0, 50.0).seconds == pytest.approx(1.2)  # a clock that went back


def keys(count, seed=7):
    random = Random(seed)  # noqa: S311 - a test that comes out the same every time
    return [random.randbytes(16) for _ in range(count)]


def homes(members, conversations):
    return {key: first(Policy.CACHE_AFFINITY, members, affinity=key) for key in conversations}


def test_cache_affinity_returns_a_conversation_to_its_member_and_spreads_conversations_evenly():
    conversations = keys(8000)

    at = homes(NAMES, conversations)

    assert at == homes(list(reversed(NAMES)), conversations)
    assert {first(Policy.CACHE_AFFINITY, turn=turn, affinity=conversations[0]) for turn in range(50)} == {
        at[conversations[0]]
    }
    taken = Counter(at.values())
    deviation = (8000 * (1 / 8) * (7 / 8)) ** 0.5
    assert all(abs(count - 1000) < 5 * deviation for count in taken.values())


def test_a_member_that_goes_moves_only_its_own_conversations_and_gets_them_back():
    conversations = keys(4000)
    before = homes(NAMES, conversations)

    without = homes(NAMES[1:], conversations)

    assert {key for key in conversations if before[key] != without[key]} == {
        k for k in conversations if before[k] == NAMES[0]
    }
    assert homes(NAMES, conversations) == before
    gained = Counter(without[key] for key in conversations if before[key] == NAMES[0])
    deviation = (gained.total() * (1 / 7) * (6 / 7)) ** 0.5
    assert all(abs(count - gained.total() / 7) < 5 * deviation for count in gained.values())


def test_cache_affinity_bounds_the_imbalance_however_hot_a_conversation_is():
    balance: Balance[str] = Balance()
    hot = keys(1)[0]

    for sent in range(1, 400):
        balance.began(first(Policy.CACHE_AFFINITY, affinity=hot, seen=balance.seen))
        assert max(balance.inflight.values()) <= -int(-1.25 * sent // len(NAMES)) + 1


def test_a_conversation_that_is_turned_away_goes_to_the_next_one_always_the_same():
    key = keys(1)[0]
    ranking = order(Policy.CACHE_AFFINITY, NAMES, turn=0, seen=Seen(), affinity=key)

    assert first(Policy.CACHE_AFFINITY, affinity=key, seen=Seen({ranking[0]: 50})) == ranking[1]
    assert order(Policy.CACHE_AFFINITY, NAMES, turn=0, seen=Seen({ranking[0]: 50}), affinity=key)[-1] == ranking[0]


def test_cache_affinity_keeps_conversations_at_home_under_usual_load():
    """40 conversations of 25 requests each, in any order, eight machines that are half busy."""
    machines = Machines(Policy.CACHE_AFFINITY, dict.fromkeys(NAMES, 4.0))
    conversations = keys(40)
    asked = [key for key in conversations for _ in range(25)]
    Random(3).shuffle(asked)  # noqa: S311 - a test that comes out the same every time
    at = homes(NAMES, conversations)

    stayed = sum(machines.send(affinity=key) == at[key] for key in asked)

    assert stayed > 0.85 * len(asked)


def test_without_a_conversation_the_least_loaded_is_taken():
    assert first(Policy.CACHE_AFFINITY, ["a", "b"], seen=Seen({"a": 1})) == "b"


def test_a_dry_run_takes_no_turn():
    balance: Balance[str] = Balance()

    assert [balance.turn("p"), balance.turn("p"), balance.take_turn("p"), balance.turn("p")] == [0, 0, 0, 1]


def test_every_request_that_began_and_ended_leaves_nothing():
    balance: Balance[tuple[str, str]] = Balance()

    balance.began(("n", "m"))
    balance.began(("n", "m"))
    balance.ended(("n", "m"))
    assert balance.inflight == {("n", "m"): 1}
    balance.ended(("n", "m"))
    assert balance.inflight == {}


def test_what_is_gone_is_forgotten_but_for_requests_in_flight():
    balance: Balance[str] = Balance()
    for key in ("a", "b"):
        balance.began(key)
        balance.answered(key, 1.0, 0.0)
        balance.take_turn(key)

    balance.keep({"a"}, {"a"})

    assert (set(balance.latency), set(balance.turns), set(balance.inflight)) == ({"a"}, {"a"}, {"a", "b"})
