"""A router over a real socket is read with the cluster token; one that fails once keeps what it said."""

import asyncio
from dataclasses import replace

import aiohttp
import pytest

from turnout_api.resources import RouterNode
from turnout_operator.api import ApiError
from turnout_operator.picture import Reached
from turnout_operator.plan import Told
from turnout_operator.reader import Reader
from turnout_operator.readings import Said, Unread

TOKEN = "cluster-0123456789abcdef"


@pytest.fixture
async def reader():
    """With the cluster's token, unless a test sets another in `token`; `news` are the namespaces that it woke."""
    token = {"is": TOKEN}
    news: asyncio.Queue[str] = asyncio.Queue()

    async def token_of(_namespace, _reference):
        if token["is"] == "unreadable":
            raise ApiError(0, "the API server was not reached")
        return token["is"]

    async with aiohttp.ClientSession() as session:
        found = Reader(session, token_of, news.put_nowait)
        found.token, found.news = token, news
        yield found


def told(router, generation: int = 0) -> Told:
    url = f"http://127.0.0.1:{router.port}"
    node = {
        "kind": "RouterNode",
        "metadata": {"name": router.config.cluster.node_id, "namespace": "test"},
        "spec": {"role": "Master", "publicURL": url, "tokenSecretRef": {"name": "token"}},
    }
    return Told(RouterNode.parse(node), router.config.model_copy(update={"generation": generation}), url)


async def test_what_a_master_says_is_known_by_its_url(cluster, reader):
    router = await cluster.master()
    one = told(router)
    reader.follow("test", [one])
    assert reader.readings("test") == {}

    assert await reader.read("test")

    said = reader.readings("test")[one.url]
    assert isinstance(said, Said)
    assert (said.node_id, said.generation, said.suspended) == (router.config.cluster.node_id, 0, {})
    assert said.version == router.status().version
    assert not await reader.read("test"), "the same again is no news"


async def test_one_failure_is_none_and_the_second_says_why(cluster, reader):
    one = told(await cluster.master())
    reader.follow("test", [one])
    await reader.read("test")
    reader.token["is"] = "another-0123456789abcdef"

    assert not await reader.read("test")
    assert await reader.read("test")

    assert reader.readings("test")[one.url] == Unread("it answered 401")


async def test_a_token_that_cannot_be_read_says_nothing_of_the_router(cluster, reader):
    one = told(await cluster.master())
    reader.follow("test", [one])
    await reader.read("test")
    reader.token["is"] = "unreadable"

    assert not await reader.read("test")
    assert not await reader.read("test")

    assert isinstance(reader.readings("test")[one.url], Said)


async def test_of_a_router_that_was_told_something_new_it_is_unknown_what_it_runs(cluster, reader):
    router = await cluster.master()
    reader.follow("test", [told(router)])
    await reader.read("test")

    reader.follow("test", [told(router, 7)])

    (said,) = reader.readings("test").values()
    assert said.generation is None
    assert await reader.read("test"), "it runs the old one"


async def test_that_a_router_runs_what_it_was_told_is_no_news(cluster, reader):
    router = await cluster.master()
    reader.follow("test", [told(router)])
    await reader.read("test")
    await router.reconfigure(router.config.model_copy(update={"generation": 7}))

    reader.follow("test", [told(router, 7)])

    assert not await reader.read("test")
    (said,) = reader.readings("test").values()
    assert said.generation == 7


async def test_a_router_that_took_its_first_configuration_is_asked_before_anything_is_said_of_it(cluster, reader):
    one = told(await cluster.master())
    other = replace(one, url="http://127.0.0.1:9")
    reader.follow("test", [one, other])

    await reader.meet("test", {one.url: Reached(0), other.url: Reached(0, "it refused")})
    assert list(reader.readings("test")) == [one.url]

    reader.token["is"] = "another-0123456789abcdef"
    await reader.meet("test", {one.url: Reached(0)})
    await reader.meet("test", {one.url: Reached(0)})
    assert isinstance(reader.readings("test")[one.url], Said), "one that is known is not asked"


async def test_a_router_that_is_gone_is_forgotten(cluster, reader):
    reader.follow("test", [told(await cluster.master())])
    await reader.read("test")

    reader.follow("test", [])

    assert reader.readings("test") == {}


async def test_routers_that_are_new_are_read_at_once_and_wake_their_namespace(cluster, reader):
    router = await cluster.master()
    running = asyncio.create_task(reader.run(interval_s=3600))
    try:
        reader.follow("test", [told(router)])
        async with asyncio.timeout(20):
            assert await reader.news.get() == "test"
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
