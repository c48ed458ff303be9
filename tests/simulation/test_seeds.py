"""Made-up clusters with traffic and faults, by seed: whatever happens, what must always hold does.

The set is fixed and small enough for every change; `python -m turnout_cli.simulating.seeds FIRST LAST` runs others, and
`python -m turnout_cli.simulating.seeds SEED` replays one with its story. A seed that ever failed stays in `KEPT`.
"""

import pytest

from turnout_cli.simulating.scenarios import Kind, scenario
from turnout_cli.simulating.seeds import FIXED, digest_of, main, replay_command, run_seed

CHUNK, LARGEST = 10, 20
"""Nodes at most: a seed with another limit is another scenario."""
KEPT = {
    (
        Kind.MIXED,
        5,
        LARGEST,
    ): "a hold that ran out while no slot was free was looked at again and again in the same moment",
    (
        Kind.MIXED,
        60,
        LARGEST,
    ): "with a restore delay of 0 a busy node looked whether it is quiet again and again in the same moment",
    (
        Kind.MIXED,
        77,
        LARGEST,
    ): "what a later loan itself had loaded again was taken for borrowed, and was not restored the next time",
    (Kind.MIXED, 79, LARGEST): "a backend that says it did infinite work made every later size a division by zero",
    (Kind.MIXED, 363, LARGEST): "own work of a model without a link was counted where only linked models have a part",
    (Kind.MIXED, 695, LARGEST): "a load that a killed router had begun went on beside that of its successor",
    (
        Kind.MIXED,
        107,
        LARGEST,
    ): "a model whose links came back sent a second event beside the one under way, numbered from 1 again",
    (Kind.MIXED, 2034, 50): "the watch missed a hold that began while another model had its turn",
    (Kind.MIXED, 2258, 50): "the watch took a request that waits for its turn for one that is still held",
    (
        Kind.MIXED,
        4524,
        50,
    ): "the watch and the router did not agree on whether a borrowed request that is refused on arrival postpones a restore",
    (Kind.MIXED, 10527, 50): "nobody was told that a load was broken off because its backend died",
    (Kind.MIXED, 102459, 50): "a model whose links came back heard answers from before they went",
    (
        Kind.MIXED,
        302200,
        50,
    ): "the watch took what was answered to an earlier run of an owner for what its next one was told",
    (Kind.CROWDED, 360, 50): "the watch took a kept model that is brought up for the end of a run of borrowed work",
}
"""(kind, seed, nodes at most) → what it had found."""


@pytest.mark.parametrize("first", range(0, len(FIXED), CHUNK))
def test_what_must_always_hold_does(first):
    failed = [
        f"{replay_command(seed, largest, kind)}: {result.error}\n{result.where}"
        for kind, seed, largest in FIXED[first : first + CHUNK]
        if (result := run_seed(seed, largest=largest, kind=kind)).error
    ]
    assert not failed, "\n".join(failed)


@pytest.mark.parametrize(("kind", "seed", "largest"), KEPT)
def test_what_once_failed_holds(kind, seed, largest):
    result = run_seed(seed, largest=largest, kind=kind)
    assert not result.error, result.where


@pytest.mark.parametrize("seed", [3, 4])
def test_a_seed_gives_the_same_run_event_by_event(seed):
    first, again = run_seed(seed), run_seed(seed)
    assert (first.digest, first.events) == (again.digest, again.events)
    assert first.requests > 0


def test_another_seed_gives_another_run():
    assert run_seed(3).digest != run_seed(4).digest


def test_the_seeds_reach_what_they_are_for():
    reached = set()
    for kind, seed, largest in FIXED[:40]:
        reached |= run_seed(seed, largest=largest, kind=kind).outcomes.keys()
    wanted = {
        "lent",
        "held_for_helper",
        "granted",
        "probe owner_unpriced",
        "returned offload_returned",
        "borrowed_returned own_work_arrived",
        "borrowed_returned busy_on_arrival",
        "native_waited_behind_borrowed",
        "relay_refused no_live_lease",
        "lease_cleared",
    }
    assert wanted - reached == set()


def test_a_failing_seed_is_printed_with_the_command_that_replays_it(monkeypatch, capsys):
    monkeypatch.setattr("turnout_cli.simulating.world.World.check_quiet", lambda _: 1 / 0)
    assert main(["5", "6", "--jobs", "1"]) == 1
    printed = capsys.readouterr().out
    assert "seed 5: ZeroDivisionError: division by zero" in printed
    assert "python -m turnout_cli.simulating.seeds 5" in printed


def test_one_seed_is_replayed_with_its_story(capsys):
    assert main(["5"]) == 0
    printed = capsys.readouterr().out
    assert printed.rstrip().endswith(f"everything held {digest_of(scenario(5).run())}")
