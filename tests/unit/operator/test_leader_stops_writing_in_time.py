"""A leader that cannot renew its Lease stops before another may start; one that ends gives it up."""

import asyncio

import pytest

from turnout_operator.api import ApiError
from turnout_operator.leader import Leader


class Api:
    """One Lease, which can be out of reach."""

    def __init__(self) -> None:
        self.lease_there = None
        self.away = False
        self.writes = 0

    async def lease(self, _namespace, _name):
        self._reach()
        return self.lease_there

    async def write_lease(self, document):
        self._reach()
        there = self.lease_there
        if there is not None and document["metadata"].get("resourceVersion") != there["metadata"]["resourceVersion"]:
            raise ApiError(409, "another version is there")
        self.writes += 1
        self.lease_there = document | {"metadata": document["metadata"] | {"resourceVersion": str(self.writes)}}
        return self.lease_there

    def _reach(self) -> None:
        if self.away:
            raise ApiError(0, "the API server was not reached")


class Work:
    """What a leader runs."""

    def __init__(self) -> None:
        self.began, self.ended = asyncio.Event(), asyncio.Event()

    async def __call__(self) -> None:
        self.began.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.ended.set()


async def knows(leader: Leader, holder: str) -> None:
    """It has looked at the Lease, and found that holder."""
    async with asyncio.timeout(10):
        while leader.holder != holder:  # noqa: ASYNC110 - nothing is told to anybody when a candidate looks
            await asyncio.sleep(0)


@pytest.fixture
def api():
    return Api()


@pytest.fixture
def candidate(api):
    def candidate(me: str) -> Leader:
        return Leader(api, name="turnout", namespace="test", me=me, duration_s=0.3)

    return candidate


@pytest.fixture
async def run():
    tasks = []

    def run(leader: Leader, work: Work) -> asyncio.Task[None]:
        tasks.append(asyncio.create_task(leader.run(work)))
        return tasks[-1]

    yield run
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_the_second_waits_until_the_first_gives_it_up(api, candidate, run):
    first, second = candidate("first"), candidate("second")
    work, other = Work(), Work()
    running = run(first, work)
    await work.began.wait()
    run(second, other)
    await knows(second, "first")
    assert (first.leads, second.leads, second.waits) == (True, False, True)

    running.cancel()

    await other.began.wait()
    assert work.ended.is_set()
    assert (first.leads, second.leads) == (False, True)
    assert api.lease_there["spec"]["leaseTransitions"] == 1


async def test_a_leader_that_cannot_renew_stops_what_it_runs_and_comes_back(api, candidate, run):
    leader, work = candidate("me"), Work()
    run(leader, work)
    await work.began.wait()
    work.began.clear()

    api.away = True

    await work.ended.wait()
    assert not leader.leads
    assert not leader.waits  # nobody else is known to have it

    api.away = False
    await work.began.wait()
    assert (leader.leads, leader.terms) == (True, 2)


async def test_a_lease_that_another_one_has_taken_ends_the_term(api, candidate, run):
    leader, work = candidate("me"), Work()
    run(leader, work)
    await work.began.wait()

    taken = api.lease_there["spec"] | {"holderIdentity": "other", "leaseDurationSeconds": 60}
    api.lease_there = api.lease_there | {"spec": taken, "metadata": {"resourceVersion": "other"}}

    await work.ended.wait()
    await knows(leader, "other")
    assert (leader.leads, leader.waits) == (False, True)


async def test_work_that_breaks_ends_the_leader_with_its_error(api, candidate):
    async def broken() -> None:
        raise RuntimeError("a defect")

    with pytest.raises(RuntimeError, match="a defect"):
        await candidate("me").run(broken)

    assert api.lease_there["spec"]["holderIdentity"] == ""
