"""A status that turns all the time rests between its writes; what somebody declared is written at once."""

from itertools import pairwise
from typing import Any

from turnout_api.resolve import Key
from turnout_operator.damping import FREE, REFILL_S, Damper

KEY = Key("RouterNode", "gpu-a")


def writes(every_s: float, seconds: float) -> list[float]:
    """When a status is written that has news that often."""
    damper, written, now = Damper(), [], 0.0
    while now < seconds:
        if KEY not in damper.resting("test", now):
            damper.wrote("test", KEY, now)
            written.append(now)
        now += every_s
    return written


def test_a_cluster_that_comes_up_is_written_as_it_does() -> None:
    assert len(writes(every_s=1, seconds=FREE)) == FREE


def test_one_that_turns_all_day_is_written_some_times_an_hour() -> None:
    written = writes(every_s=5, seconds=4 * 3600)

    assert len(written) <= FREE + 4 * 3600 / REFILL_S
    assert max(later - earlier for earlier, later in pairwise(written)) <= REFILL_S + 5


def test_one_that_turns_now_and_then_is_always_written() -> None:
    assert len(writes(every_s=REFILL_S, seconds=4 * 3600)) == 4 * 3600 / REFILL_S


def test_namespaces_rest_on_their_own() -> None:
    damper = Damper()
    for _ in range(FREE):
        damper.wrote("test", KEY, 0.0)

    assert damper.resting("test", 1.0) == {KEY}
    assert damper.resting("other", 1.0) == frozenset()


def test_while_it_rests_only_what_was_declared_is_written(namespace: Any, specs: Any, saying: Any) -> None:
    namespace.round()
    resting = frozenset({Key("RouterNode", "gpu-a")})

    quiet = namespace.round(readings=saying(models={("gpu-a", "gpu-a-ff"): True}), resting=resting)
    assert "gpu-a" not in {status.key.name for status in quiet.statuses}

    namespace.put("RouterNode", "gpu-a", specs.slave("gpu-a", parallel=2))
    loud = namespace.round(resting=resting)
    assert [status.declared for status in loud.statuses if status.key.name == "gpu-a"] == [True]


def test_what_routers_say_is_not_declared(namespace: Any, saying: Any) -> None:
    namespace.round()

    planned = namespace.round(readings=saying(models={("gpu-a", "gpu-a-ff"): True}))

    assert {status.declared for status in planned.statuses} == {False}
