"""The nearest deadline rings; a later one than the timer that is set costs no new timer."""

import asyncio
from dataclasses import dataclass, field

import pytest

from turnout_router.alarm import Alarm


@dataclass
class Loop:
    """Timers that ring when the test says so."""

    now: float = 0.0
    timers: list[tuple[float, object]] = field(default_factory=list)
    cancelled: int = 0

    def call_later(self, pause, call):
        timer = self.now + pause, call
        self.timers.append(timer)
        return self

    def cancel(self):
        self.cancelled += 1
        self.timers.pop()

    def ring(self):
        self.now, call = self.timers.pop()
        call()


@pytest.fixture
def loop(monkeypatch):
    loop = Loop()
    monkeypatch.setattr(asyncio, "get_running_loop", lambda: loop)
    return loop


@pytest.fixture
def rang():
    return []


@pytest.fixture
def alarm(loop, rang):
    return Alarm(lambda: rang.append(loop.now), lambda: loop.now)


def test_it_rings_at_the_deadline_and_once(alarm, loop, rang):
    alarm.set(5.0)
    loop.ring()
    assert (rang, loop.timers) == ([5.0], [])


def test_a_nearer_deadline_takes_the_place_of_the_one_that_is_set(alarm, loop):
    alarm.set(5.0)
    alarm.set(3.0)
    assert ([at for at, _ in loop.timers], loop.cancelled) == ([3.0], 1)


def test_for_a_later_deadline_the_timer_stays_and_rings_early(alarm, loop, rang):
    alarm.set(3.0)
    alarm.set(5.0)
    assert ([at for at, _ in loop.timers], loop.cancelled) == ([3.0], 0)
    loop.ring()
    alarm.set(5.0)
    loop.ring()
    assert rang == [3.0, 5.0]


def test_without_a_deadline_and_after_cancel_nothing_rings(alarm, loop):
    alarm.set(3.0)
    alarm.set(None)
    assert loop.timers == []
    alarm.set(3.0)
    alarm.cancel()
    alarm.cancel()
    assert loop.timers == []


def test_a_deadline_that_has_passed_rings_at_once(alarm, loop):
    loop.now = 9.0
    alarm.set(5.0)
    assert [at for at, _ in loop.timers] == [9.0]
