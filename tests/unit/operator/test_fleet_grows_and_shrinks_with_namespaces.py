"""A namespace that is heard of has a worker until nothing is declared there any more; those that were named have theirs from the start to the end."""

import asyncio
from collections.abc import Callable
from functools import partial

from turnout_operator.fleet import Fleet
from turnout_operator.worker import Worker


class Heard:
    """Namespaces whose rounds began."""

    def __init__(self) -> None:
        self.rounds: asyncio.Queue[str] = asyncio.Queue()
        self.empty: set[str] = set()
        self.at_the_end_of_a_round: Callable[[], object] = lambda: None

    async def run(self, namespace: str) -> int | None:
        self.rounds.put_nowait(namespace)
        self.at_the_end_of_a_round()
        return None if namespace in self.empty else 0

    def worker(self, namespace: str, *, stays: bool = False) -> Worker:
        return Worker(namespace, self.run, resync_s=1000, quiet_s=0, stays=stays)


async def test_named_namespaces_have_rounds_without_being_heard_of():
    heard = Heard()

    async with Fleet(heard.worker, ["team-a"]).running():
        assert await heard.rounds.get() == "team-a"


async def test_a_namespace_that_is_heard_of_has_one_worker():
    heard = Heard()
    fleet = Fleet(heard.worker, [])

    async with fleet.running():
        fleet.wake("team-b")
        fleet.wake("team-b")
        assert await heard.rounds.get() == "team-b"

    assert [worker.namespace for worker in fleet.workers] == ["team-b"]


async def test_it_goes_on_with_what_it_heard_of_when_it_runs_again():
    heard = Heard()
    fleet = Fleet(heard.worker, [])
    async with fleet.running():
        fleet.wake("team-b")
        await heard.rounds.get()

    async with fleet.running():
        assert await heard.rounds.get() == "team-b"


async def test_a_worker_ends_where_nothing_is_declared_any_more_and_an_object_that_comes_has_another():
    heard, ended = Heard(), asyncio.Queue[str]()
    fleet = Fleet(heard.worker, [], ended.put_nowait)
    async with fleet.running():
        fleet.wake("team-b")
        fleet.wake("team-c")
        await heard.rounds.get()
        await heard.rounds.get()

        heard.empty.add("team-b")
        fleet.wake("team-b")
        assert await heard.rounds.get() == "team-b"
        assert await ended.get() == "team-b"
        assert [worker.namespace for worker in fleet.workers] == ["team-c"]

        heard.empty.clear()
        fleet.wake("team-b")
        assert await heard.rounds.get() == "team-b"
        assert [worker.namespace for worker in fleet.workers] == ["team-c", "team-b"]


async def test_what_comes_while_a_worker_finds_nothing_is_not_lost():
    heard, ended = Heard(), asyncio.Queue[str]()
    fleet = Fleet(heard.worker, [], ended.put_nowait)
    heard.empty.add("team-b")

    def comes() -> None:
        heard.at_the_end_of_a_round = heard.empty.clear
        fleet.wake("team-b")

    heard.at_the_end_of_a_round = comes
    async with fleet.running():
        fleet.wake("team-b")
        assert await heard.rounds.get() == "team-b"
        assert await heard.rounds.get() == "team-b"

    assert ended.empty()
    assert [worker.namespace for worker in fleet.workers] == ["team-b"]


async def test_a_named_namespace_keeps_its_worker_when_it_is_emptied():
    heard = Heard()
    heard.empty.add("team-a")
    fleet = Fleet(partial(heard.worker, stays=True), ["team-a"])

    async with fleet.running():
        await heard.rounds.get()
        fleet.wake("team-a")
        await heard.rounds.get()

        assert [worker.namespace for worker in fleet.workers] == ["team-a"]
