"""Each right of the role that masters have, taken away: a 503 that names it, what is served goes on, and it works again with it."""

import asyncio
import json
from typing import Any

import pytest

API = "turnout.dev/v1alpha1"
ROLE = "turnout-admin"
VERBS = ("get", "list", "create", "update", "delete")
SITE = "/router/v1/site"
EYES = {"node": "master", "model": "qwen-vl"}
A_TO_B = {end: {"node": node, "model": "ff11"} for end, node in (("owner", "gpu-a"), ("helper", "gpu-b"))}
MADE = {
    "frontendmodels": (
        "/frontend-models",
        {"name": "assistant", "defaults": {"targets": [{"provider_model_id": "cc11"}]}},
    ),
    "modelpools": ("/model-pools", {"name": "assistant", "members": [{"provider_model_id": "cc11"}]}),
    "routinglinks": (f"{SITE}/text-routing-groups", {"name": "assistant"} | A_TO_B),
    "guardians": (f"{SITE}/guardians", {"name": "assistant", "scope": {"cluster": True}, "guardian": EYES}),
}
CHANGE = {
    "frontendmodels": {"model_name": "helper"},
    "modelpools": {"members": [{"provider_model_id": "qwen-vl"}]},
    "routinglinks": {"load_if_unloaded": False},
    "guardians": {"scope": {"node": "gpu-a"}},
}


def slave(name: str) -> dict[str, Any]:
    """At an URL where nobody listens."""
    shared = {"role": "Slave", "masterRef": {"name": "master"}, "tokenSecretRef": {"name": "token"}}
    backend = {"name": "b", "family": "LlamaCpp", "url": "http://127.0.0.1:9"}
    model = {"id": "ff11", "publicID": "cc11", "backend": "b", "contextWindow": 4096, "parallel": 1}
    spec = shared | {"publicURL": "http://127.0.0.1:9", "backends": [backend], "models": [model]}
    return {"apiVersion": API, "kind": "RouterNode", "metadata": {"name": name}, "spec": spec}


@pytest.fixture
async def space(space: Any) -> Any:
    """Its node is the master of two, so that there are links."""
    master = (await space.get("routernode", "master"))["spec"] | {"role": "Master", "tokenSecretRef": {"name": "token"}}
    token = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "token"}, "stringData": {"token": "0" * 32}}
    node = {"apiVersion": API, "kind": "RouterNode", "metadata": {"name": "master"}, "spec": master}
    await space.apply(token, node, slave("gpu-a"), slave("gpu-b"))
    return space


async def may(space: Any, verb: str, resource: str) -> bool:
    asked = {"namespace": space.name, "verb": verb, "group": "turnout.dev", "resource": resource}
    spec = {"user": f"system:serviceaccount:{space.name}:turnout-router-master", "resourceAttributes": asked}
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    _, answer = await asyncio.to_thread(space.cluster.request, "POST", path, review)
    return bool(answer["status"]["allowed"])


async def give(space: Any, verbs: tuple[str, ...], resource: str) -> None:
    """These alone, of this kind."""
    rules = [{"apiGroups": ["turnout.dev"], "resources": [resource], "verbs": list(verbs)}]
    await space.kubectl("patch", "role", ROLE, "--type=merge", "-p", json.dumps({"rules": rules}))
    async with asyncio.timeout(60):
        while [verb for verb in VERBS if await may(space, verb, resource)] != list(verbs):  # noqa: ASYNC110 - the API server is asked
            await asyncio.sleep(0.1)


@pytest.mark.parametrize("resource", MADE)
async def test_each_right(admin: Any, space: Any, gateway: Any, resource: str) -> None:
    path, body = MADE[resource]
    one = f"{path}/assistant"
    calls = {
        "list": ("GET", path, None, 200),
        "create": ("POST", path, body, 201),
        "get": ("PATCH", one, CHANGE[resource], 200),
        "update": ("PATCH", one, CHANGE[resource], 200),
        "delete": ("DELETE", one, None, 204),
    }
    for verb, (method, where, sent, good) in calls.items():
        served = gateway.router.config
        await give(space, tuple(each for each in VERBS if each != verb), resource)

        status, refusal = await admin(method, where, sent)

        assert (verb, status) == (verb, 503)
        assert f'cannot {verb} resource "{resource}"' in refusal["error"]["message"]
        assert "give it the chart's role" in refusal["error"]["message"]
        assert gateway.router.config == served
        await give(space, VERBS, resource)
        if verb != "get":  # `update` makes the change that `get` was refused
            assert (await admin(method, where, sent))[0] == good
