"""What a cluster without links does: every model is alone with its machine."""

import pytest

from turnout_api.lending import ModelRef
from turnout_cli.simulating.clusters import SimModel, SimNodeSpec, cluster_of
from turnout_cli.simulating.machine import ModelSpeed
from turnout_cli.simulating.requests import Ending
from turnout_cli.simulating.traffic import burst, poisson, text_arrival
from turnout_cli.simulating.world import Conditions, World

A = ModelRef("gpu-a", "m")


def test_jobs_run_one_after_the_other(alone):
    world = World(alone(), burst(5.0, 3, lambda at: text_arrival(at, A, 0, 0)))
    world.run()
    assert [request.ended_at for request in world.ledger.requests] == [15.0, 25.0, 35.0]
    results = world.results()
    assert (results.completion.mean, results.makespan_s, results.busy_share) == (20.0, 30.0, 1.0)
    assert results.endings == {"served": 3}


def test_a_client_that_leaves_frees_its_place(alone):
    arrivals = burst(0.0, 2, lambda at: text_arrival(at, A, 0, 0))
    world = World(alone())
    world.send([arrivals[0], arrivals[1]])
    world.run(until_s=4.0)
    world.nodes["gpu-a"].client_gone(world.ledger.requests[0])
    world.run()
    assert [request.ending for request in world.ledger.requests] == [Ending.CLIENT_GONE, Ending.SERVED]
    assert world.ledger.requests[1].ended_at == 14.0


def test_requests_of_a_node_that_crashes_are_lost_and_it_serves_again_later(alone):
    world = World(alone(), [text_arrival(at, A, 0, 0) for at in (0.0, 5.0, 20.0)])
    world.at(3.0, world.crash, "gpu-a")
    world.at(15.0, world.restart, "gpu-a")
    world.run()
    assert [request.ending for request in world.ledger.requests] == [Ending.LOST, Ending.REFUSED, Ending.SERVED]


def test_an_exclusive_machine_swaps_models():
    speed = ModelSpeed(fixed_s=1.0, load_s=7.0, unload_s=1.0)
    cluster = cluster_of([SimNodeSpec("gpu-a", (SimModel("m", speed), SimModel("n", speed)))])
    world = World(cluster, [text_arrival(0.0, ModelRef("gpu-a", "n"), 0, 0), text_arrival(0.0, A, 0, 0)])
    world.run()
    assert world.results().loads == 2
    assert max(request.ended_at for request in world.ledger.requests) == pytest.approx(18.0)


def _log(seed: int, run_seed: int) -> list[tuple[str, float]]:
    def make(at, random):
        return text_arrival(at, A, random.uniform(0, 9000), random.uniform(0, 500), random=random, noise=0.2)

    cluster = cluster_of([SimNodeSpec("gpu-a", (SimModel("m"),))])
    clocks = {"gpu-a": (1000.0 * run_seed, 1.001)}
    world = World(cluster, poisson(0.1, 2000.0, make, seed=seed), seed=run_seed, conditions=Conditions(clocks=clocks))
    world.run()
    return [(request.id, request.ended_at) for request in world.ledger.requests]


def test_the_same_seed_gives_the_same_run():
    assert _log(1, 1) == _log(1, 1)
    assert _log(1, 1) != _log(2, 1)
