"""An API server that is away, forgets, falls silent or is busy: routers serve on, and what changed meanwhile is acted on."""

import aiohttp
import pytest

QUICK = ("--lease-duration", "3s", "--watch-renewal", "2s")


@pytest.fixture
def settled(objects, behind, manifests):
    """An operator that has delivered, and does no round without an event."""
    objects.apply(*manifests.all())
    operator = behind(*QUICK)
    objects.accepted("routinglink", "a-to-b")
    return operator


def changed(objects, manifests) -> None:
    objects.apply(manifests.slave("gpu-a", 2048))
    objects.accepted("routernode", "gpu-a")
    assert objects.config("gpu-a")["models"]["local"][0]["context_window"] == 2048


def test_a_change_while_it_was_away_is_acted_on_when_it_is_back(settled, between, objects, manifests, until):
    between.away = True
    between.cut()
    until(lambda: "lost the Lease" in settled.log(), "it did not notice")
    assert settled.health()["leads"] is False
    objects.apply(manifests.slave("gpu-a", 2048))

    between.away = False

    changed(objects, manifests)
    assert settled.log().count("lost the Lease") == 1
    assert "Traceback" not in settled.log()


async def test_what_was_served_is_served_on_while_it_is_away(behind, between, routers, objects, eventually):
    operator = behind(*QUICK)
    running = await routers("master", "gpu-a")
    await eventually(lambda: all(node.healthy for node in running["master"].status().nodes), "the slave did not come")

    between.away = True
    between.cut()
    await eventually(lambda: "lost the Lease" in operator.log(), "it did not notice")

    body = {"model": "cc11", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 1}
    async with (
        aiohttp.ClientSession(headers={"Authorization": "Bearer a key of a client"}) as client,
        client.post(
            f"{objects.get('routernode', 'master')['spec']['publicURL']}/v1/chat/completions", json=body
        ) as answer,
    ):
        assert (answer.status, answer.headers["x-turnout-node"]) == (200, "gpu-a")


def test_connections_that_break_lose_no_change(settled, between, objects, manifests):
    for context in (1024, 2048):
        between.cut()
        objects.apply(manifests.slave("gpu-a", context))
        objects.accepted("routernode", "gpu-a")

    assert objects.config("gpu-a")["models"]["local"][0]["context_window"] == 2048
    assert "Traceback" not in settled.log()


def test_a_watch_of_what_is_forgotten_begins_anew(settled, between, objects, manifests, until):
    lists = len([asked for asked in between.asked if asked.path.endswith("routernodes") and not asked.watch])
    between.expired = True  # the API server answers 410

    until(
        lambda: len([a for a in between.asked if a.path.endswith("routernodes") and not a.watch]) > lists,
        "it did not list anew",
    )
    between.expired = False

    changed(objects, manifests)
    assert "Traceback" not in settled.log()


def test_a_watch_that_falls_silent_is_given_up(settled, between, objects, manifests):
    between.silent_after = 0
    between.cut()

    changed(objects, manifests)

    ages = settled.metric(
        f'turnout_operator_watch_age_seconds{{namespace="{objects.namespace}",resource="routernodes"}}'
    )
    assert ages < 60


def test_a_busy_api_server_is_asked_again_when_it_says(objects, behind, between, manifests):
    objects.apply(*manifests.all())
    refused = iter([429] * 20)  # one after the other, each a second later: a start takes that many seconds
    between.refuse = lambda asked: 0 if "leases" in asked.path else next(refused, 0)

    operator = behind(*QUICK)

    objects.becomes_accepted("routinglink", "a-to-b")
    assert next(refused, None) is None
    assert "Traceback" not in operator.log()


def test_a_start_over_200_objects_loses_none_to_a_busy_api_server(objects, behind, between, manifests):
    names = [f"alias-{number:03d}" for number in range(200)]
    objects.apply(*manifests.all(), *(manifests.ruled(name) for name in names))
    between.again_s = 2
    turns = iter([429, 0] * 20)  # a round that began anew at each would begin twenty times
    between.refuse = lambda asked: 0 if "leases" in asked.path else next(turns, 0)

    operator = behind(*QUICK)

    objects.becomes_accepted("frontendmodel", names[-1])
    assert next(turns, None) is None
    assert {frontend["name"] for frontend in objects.config("master")["frontends"]} >= set(names)
    assert "Traceback" not in operator.log()


def test_a_server_that_refuses_everything_for_long_ends_nothing(settled, between, objects, manifests, until):
    before = objects.config("gpu-a")
    refused = iter([503] * 40)
    between.refuse = lambda _asked: next(refused, 0)
    between.cut()
    until(lambda: "lost the Lease" in settled.log(), "it did not notice")
    assert objects.config("gpu-a") == before

    changed(objects, manifests)

    assert next(refused, None) is None
    assert settled.log().count("lost the Lease") == 1
    assert "Traceback" not in settled.log()


def test_kinds_that_come_later_are_waited_for(objects, behind, between, manifests, until):
    objects.apply(*manifests.all())
    between.refuse = lambda asked: 404 if asked.path == "/apis/turnout.dev/v1alpha1" else 0
    operator = behind(*QUICK)
    until(lambda: "waits for the CustomResourceDefinitions of RouterNode" in operator.log(), "it did not say so")

    between.refuse = lambda _asked: 0

    objects.becomes_accepted("routinglink", "a-to-b")
    assert operator.log().count("waits for the CustomResourceDefinitions") == 1
