"""Objects for which a Secret is too small, and a Secret that cannot be read: statuses say so, routers go on with what they had, and it heals."""

import asyncio
import json
import random
import string
import urllib.request
from typing import Any

import pytest

pytestmark = pytest.mark.timeout(900)  # a megabyte of objects, several times over
FIT, NOT_REMEMBERED = 12, 26
"""So many frontend models fit into the Secret of a router, compressed, and one more does not; so many are too large to be remembered."""
RULES = 64
TEXT = 1017
ALPHABET = "".join(sorted(set(string.ascii_letters + string.digits + string.punctuation) - set("\"'\\")))


def frontends(manifests: Any, numbers: range, size: int = TEXT) -> list[dict[str, Any]]:
    """With these numbers, of rules whose texts cannot be compressed much."""
    dice = random.Random(numbers.start)  # noqa: S311 - nothing secret

    def rule(number: int) -> dict[str, Any]:
        text = "closed " + "".join(dice.choices(ALPHABET, k=size))
        when = {"metadata": {"ticket": str(number)}}
        return {"name": f"no-{number}", "when": when, "action": "Deny", "denyStatus": 403, "denyMessage": text}

    return [
        manifests.ruled(f"large-{at}", to="cc11", rules=[rule(number) for number in range(RULES)]) for at in numbers
    ]


def conditions(objects: Any) -> dict[str, dict[str, dict[str, Any]]]:
    """Of all objects: kind/name → type → condition."""
    shown = json.loads(objects.cluster.kubectl("get", "turnout", "-n", objects.namespace, "-o", "json").stdout)
    return {
        f"{item['kind']}/{item['metadata']['name']}": {
            condition["type"]: condition for condition in item.get("status", {}).get("conditions", [])
        }
        for item in shown["items"]
    }


def why(found: dict[str, Any], type_: str) -> tuple[str, str] | None:
    return (found[type_]["status"], found[type_]["reason"]) if type_ in found else None


async def test_a_configuration_that_is_too_large_is_kept_back_and_said_and_delivered_when_it_shrank(
    objects: Any, start: Any, manifests: Any, routers: Any, eventually: Any
) -> None:
    operator = start()
    running = await routers("master", "gpu-a")
    objects.apply(manifests.frontend("assistant", "cc11"))

    async def until_each(type_: str, *wanted: tuple[str, str]) -> None:
        """That is no slave: what a slave is given does not grow."""

        def holds() -> bool:
            return all(why(found, type_) in wanted for key, found in conditions(objects).items() if "gpu-" not in key)

        await eventually(holds, f"not all are {type_} {wanted}")

    await until_each("Ready", ("True", "Ready"))
    await asyncio.to_thread(objects.apply, *frontends(manifests, range(FIT)))
    await until_each("Programmed", ("True", "Programmed"))
    before, runs = objects.secret("turnout-router-master")["data"], running["master"].config.generation
    assert [*before] == ["router.yaml.gz"]
    too_much = range(FIT, FIT + 1)

    await asyncio.to_thread(objects.apply, *frontends(manifests, too_much))

    await until_each("Programmed", ("False", "TooLarge"))
    found = await asyncio.to_thread(conditions, objects)
    assert why(found[f"FrontendModel/large-{FIT}"], "Accepted") == ("True", "Accepted")
    assert "the last one that fitted goes on being served" in found["RouterNode/master"]["Programmed"]["message"]
    await eventually(lambda: operator.facts()["writes"] == operator.more_rounds(3)["writes"], "it is never quiet")
    assert operator.facts()["trouble"] == ""
    assert objects.secret("turnout-router-master")["data"] == before
    assert running["master"].config.generation == runs
    assert await asyncio.to_thread(ask, running["master"]) == 200

    await asyncio.to_thread(objects.apply, *frontends(manifests, too_much, size=0))

    await until_each("Programmed", ("True", "Programmed"))
    assert f"large-{FIT}" in {frontend.name for frontend in running["master"].config.frontends}
    assert running["master"].config.generation > runs
    assert await asyncio.to_thread(ask, running["master"]) == 200


def test_what_cannot_be_remembered_is_said_and_changes_nothing_until_it_can(
    objects: Any, start: Any, manifests: Any, until: Any
) -> None:
    objects.apply(*manifests.all(), manifests.frontend("assistant", "cc11"))
    operator = start()
    for kind, name in (("routernode", "master"), ("frontendmodel", "assistant")):
        objects.accepted(kind, name)

    objects.apply(*frontends(manifests, range(NOT_REMEMBERED)))

    last = f"FrontendModel/large-{NOT_REMEMBERED - 1}"
    unknown = ("Unknown", "NotRemembered")
    until(lambda: why(conditions(objects).get(last, {}), "Accepted") == unknown, "nothing was said")
    found = conditions(objects)
    assert why(found["RouterNode/master"], "Accepted") == unknown
    assert "turnout-state" in found["RouterNode/master"]["Accepted"]["message"]
    assert why(found["FrontendModel/assistant"], "Accepted") == ("True", "Accepted"), "of this one nothing is new"
    operator.stop()
    operator = start()
    failed = f'turnout_operator_rounds_total{{namespace="{objects.namespace}",outcome="failed"}}'
    until(lambda: operator.metric(failed) >= 1, "it has no rounds")
    versions = objects.versions()
    until(lambda: operator.metric(failed) >= 3, "the rounds stopped")
    assert objects.versions() == versions, "it is said once, and nothing is delivered"

    objects.apply(*frontends(manifests, range(NOT_REMEMBERED), size=0))

    until(
        lambda: {why(each, "Accepted") for each in conditions(objects).values()} == {("True", "Accepted")},
        "it did not heal",
    )
    until(lambda: last.partition("/")[2] in json.dumps(objects.config("master")), "nothing was delivered")


def test_a_memory_that_cannot_be_read_is_said_and_changes_nothing_until_it_can(
    objects: Any, start: Any, manifests: Any, until: Any
) -> None:
    objects.apply(*manifests.all())
    first = start()
    objects.accepted("routernode", "gpu-a")
    first.stop()
    before = objects.config("gpu-a")
    state = objects.secret("turnout-state")["data"]
    remember(objects, dict.fromkeys(state, "bm90aGluZw=="))
    objects.apply(manifests.slave("gpu-a", context=2048))

    start()

    until(
        lambda: why(conditions(objects)["RouterNode/gpu-a"], "Accepted") == ("Unknown", "NotRemembered"),
        "nothing was said",
    )
    assert "restore it" in conditions(objects)["RouterNode/gpu-a"]["Accepted"]["message"]
    assert objects.config("gpu-a") == before

    remember(objects, state)
    objects.apply(manifests.slave("gpu-a", context=1024))  # a change ends the pause after a failure

    objects.becomes_accepted("routernode", "gpu-a")
    until(lambda: objects.config("gpu-a")["generation"] > before["generation"], "nothing was delivered")


def remember(objects: Any, data: dict[str, str]) -> None:
    patch = ("--type=merge", "-p", json.dumps({"data": data}))
    objects.cluster.kubectl("patch", "secret", "turnout-state", "-n", objects.namespace, *patch)


def ask(router: Any) -> int:
    """The status of a request of a client."""
    body = json.dumps({"model": "assistant", "messages": [{"role": "user", "content": "hi"}]}).encode()
    headers = {"Authorization": "Bearer a key of a client", "Content-Type": "application/json"}
    asked = urllib.request.Request(
        f"http://127.0.0.1:{router.config.listen.port}/v1/chat/completions", data=body, headers=headers
    )
    with urllib.request.urlopen(asked) as answer:  # noqa: S310 - as above
        return int(answer.status)
