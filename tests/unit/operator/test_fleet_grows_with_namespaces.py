"""A namespace that is heard of gets its worker, which runs until the end and again; those that were named have theirs from the start."""

import asyncio

from turnout_operator.fleet import Fleet
from turnout_operator.worker import Worker


class Heard:
    """Namespaces whose rounds began."""

    def __init__(self) -> None:
        self.rounds: asyncio.Queue[str] = asyncio.Queue()

    async def run(self, namespace: str) -> int:
        self.rounds.put_nowait(namespace)
        return 0

    def worker(self, namespace: str) -> Worker:
        return Worker(namespace, self.run, resync_s=1000, quiet_s=0)


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
