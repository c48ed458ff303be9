"""Probes: one request to a helper that nobody could price, after offload_probe_idle; twelve times that for a switch."""

from staging.setting import pair
from staging.stage import IN_ONE_PROCESS, Stage

from turnout_api.lending import DecisionRow, Outcome

IDLE = 4


async def _probe(stage: Stage, load: float) -> DecisionRow:
    await stage.open(pair(load=load, offload_probe_idle=IDLE))
    await stage.measure("h/other" if load else "h/theirs", lengths=(1,))
    await stage.raise_curtain()
    for name, beats in {"a": 150, "b": 10, "c": 10, "d": 10}.items():
        await stage.send(name, beats=beats)
    probe = await stage.row(Outcome.PROBE)
    await stage.ended("c")
    await stage.dismiss(*"abd")
    story = await stage.finish()
    assert story.server("c") == "h"
    assert {row.out for row in story.rows(Outcome.LENT)} == {1}  # one at a time, whatever waits
    assert probe.reason == "owner_unpriced"
    assert probe.slots == 1
    assert probe.helper_idle_s is not None
    return probe


@IN_ONE_PROCESS
async def test_a_loaded_model_after_the_plain_time(stage: Stage) -> None:
    probe = await _probe(stage, load=0)
    assert IDLE * stage.beat_s <= probe.helper_idle_s < 12 * IDLE * stage.beat_s


async def test_one_that_must_be_loaded_after_twelve_times_as_long(stage: Stage) -> None:
    probe = await _probe(stage, load=10)
    assert probe.trigger == "probe_due"  # decided at the very moment
    assert probe.helper_idle_s >= 12 * IDLE * stage.beat_s
