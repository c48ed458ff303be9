"""When a namespace has its rounds: at the start, after a change, by the interval, again after a failure."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from turnout_operator.api import ApiError, WritesRefused
from turnout_operator.worker import Worker

NEVER_S = 1000.0


class Rounds:
    """Counts rounds; a test awaits `reached`, and says which of them fail."""

    def __init__(self, *failing: Exception | None) -> None:
        self.count = 0
        self.gate = asyncio.Event()
        self.gate.set()
        self._failing = list(failing)
        self._changed = asyncio.Condition()

    async def run(self, _namespace: str) -> int:
        async with self._changed:
            self.count += 1
            self._changed.notify_all()
        await self.gate.wait()
        failure = self._failing.pop(0) if self._failing else None
        if failure:
            raise failure
        return 2

    async def reached(self, count: int) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: self.count >= count)


@asynccontextmanager
async def running(rounds: Rounds, *, resync_s: float = NEVER_S):
    worker = Worker("test", rounds.run, resync_s=resync_s, quiet_s=0)
    task = asyncio.create_task(worker.run())
    try:
        yield worker
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_the_first_round_needs_no_event():
    rounds = Rounds()
    async with running(rounds):
        await rounds.reached(1)


async def test_a_round_that_ends_badly_is_not_stuck():
    rounds = Rounds(*[ApiError(422, "the object is invalid")] * 3)
    async with running(rounds) as worker:
        await rounds.reached(2)
        assert worker.trouble
        assert worker.stuck_s() < worker.age_s()


async def test_a_round_that_never_ends_is_stuck():
    rounds = Rounds()
    rounds.gate.clear()
    async with running(rounds) as worker:
        await rounds.reached(1)
        assert worker.stuck_s() > 0


async def test_a_change_during_a_round_makes_another_one():
    rounds = Rounds()
    rounds.gate.clear()
    async with running(rounds) as worker:
        await rounds.reached(1)
        worker.wake()
        worker.wake()
        rounds.gate.set()

        await rounds.reached(2)


async def test_without_any_event_the_interval_makes_a_round():
    rounds = Rounds()
    async with running(rounds, resync_s=0.001):
        await rounds.reached(3)


@pytest.mark.parametrize("failure", [ApiError(409, "the object has been modified"), RuntimeError("a defect")])
async def test_a_failed_round_is_tried_again_and_said(failure, caplog, monkeypatch):
    monkeypatch.setattr("turnout_operator.worker._LEAST_PAUSE_S", 0.001)
    monkeypatch.setattr("turnout_operator.worker._FIRST_PAUSE_S", 0.001)
    rounds = Rounds(failure)
    async with running(rounds):
        await rounds.reached(2)

        assert "the round of test failed" in caplog.text


async def test_a_change_does_not_wait_out_the_pause_after_a_failure(monkeypatch):
    monkeypatch.setattr("turnout_operator.worker._LEAST_PAUSE_S", 0.0)
    monkeypatch.setattr("turnout_operator.worker._FIRST_PAUSE_S", NEVER_S)
    monkeypatch.setattr("turnout_operator.worker.LONGEST_PAUSE_S", NEVER_S)
    rounds = Rounds(WritesRefused(422, "no"))
    async with running(rounds) as worker:
        await rounds.reached(1)
        worker.wake()
        await rounds.reached(2)


@pytest.mark.parametrize(("failure", "completed"), [(WritesRefused(422, "no quantity"), 1), (ApiError(0, "away"), 0)])
async def test_a_round_that_did_all_but_what_was_refused_is_complete(failure, completed):
    rounds = Rounds(failure)
    worker = Worker("test", rounds.run, resync_s=NEVER_S)
    task = asyncio.create_task(worker.run())
    while not worker.failed:  # noqa: ASYNC110 - nobody is told of the end of a round
        await asyncio.sleep(0)

    assert (worker.rounds, worker.completed, worker.trouble) == (0, completed, str(failure))
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_good_rounds_and_their_writes_are_counted():
    rounds = Rounds()
    async with running(rounds, resync_s=0.001) as worker:
        await rounds.reached(3)

        assert worker.rounds >= 2
        assert worker.writes == 2 * worker.rounds


async def test_a_round_waits_longer_for_the_rest_of_many_changes_than_for_that_of_one(monkeypatch):
    monkeypatch.setattr("turnout_operator.worker._MANY", 3)
    for name in ("_QUIET_AFTER_MANY_S", "_FIRST_BURST_S"):
        monkeypatch.setattr(f"turnout_operator.worker.{name}", NEVER_S)
    rounds = Rounds()
    async with running(rounds) as worker:
        await rounds.reached(1)
        worker.wake()
        await rounds.reached(2)

        for _ in range(3):
            worker.wake()
        for _ in range(100):
            await asyncio.sleep(0)
        assert rounds.count == 2


async def test_changes_that_do_not_end_are_no_reason_to_wait_for_ever():
    rounds = Rounds()
    worker = Worker("test", rounds.run, resync_s=NEVER_S, quiet_s=NEVER_S)
    task = asyncio.create_task(worker.run())
    await rounds.reached(1)
    second = asyncio.create_task(rounds.reached(2))

    while not second.done():
        worker.wake()
        await asyncio.sleep(0)

    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_it_ends_when_it_is_told_to_at_the_moment_of_a_change():
    rounds = Rounds()
    async with running(rounds) as worker:
        task = next(task for task in asyncio.all_tasks() if task.get_coro().__qualname__ == "Worker.run")
        await rounds.reached(1)
        while not worker.rounds:  # noqa: ASYNC110 - nobody is told of the end of a round
            await asyncio.sleep(0)

        worker.wake()
        await asyncio.sleep(0)  # what waits for the change has noticed it, and the worker has not
        task.cancel()

        await asyncio.wait({task}, timeout=10)
        assert task.cancelled()
