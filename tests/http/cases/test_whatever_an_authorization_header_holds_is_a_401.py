"""No credential, however it is written, is more than a 401 with one and the same body, and no traceback."""

from typing import Any

import pytest

KEY, TOKEN = "gateway-0123456789abcdef", "cluster-0123456789abcdef"
BAD = {
    "not ASCII": ["Authorization: Bearer caf\xe9"],
    "no token": ["Authorization: Bearer "],
    "no scheme": [f"Authorization: {KEY}"],
    "missing": [],
    "two": [f"Authorization: Bearer {KEY}", "Authorization: Bearer other"],
    "the same twice": [f"Authorization: Bearer {KEY}", f"Authorization: Bearer {KEY}"],
    "8 KiB": ["Authorization: Bearer " + "x" * 8192],
    "30 KiB": ["Authorization: Bearer " + "x" * 30_000],
    "scheme in another case": ["Authorization: bEARER nonsense"],
    "another scheme": [f"Authorization: Basic {KEY}"],
    "more behind it": [f"Authorization: Bearer {KEY} {KEY}"],
    "empty x-api-key": ["x-api-key: "],
    "not ASCII in x-api-key": ["x-api-key: caf\xe9"],
}
CLIENT = [("GET", "/v1/models"), ("POST", "/v1/chat/completions"), ("POST", "/v1/messages"), ("POST", "/api/chat")]
NODE = [("GET", "snapshot"), ("POST", "register"), ("POST", "config"), ("POST", "serve/v1/chat/completions")]


async def answers_of(gate: Any, method: str, target: str, token: str) -> set[bytes]:
    bodies = set()
    for what, headers in BAD.items():
        given = [header.replace(KEY, token) for header in headers]
        answer = await gate.ask(method, target, b"{}", "x-request-id: same", *given, key=None)
        assert answer.status == 401, what
        assert answer.all("www-authenticate") == ["Bearer"], what
        bodies.add(answer.body)
    return bodies


@pytest.mark.parametrize(("method", "target"), CLIENT)
async def test_on_what_clients_call(front: Any, raw_backend: Any, caplog: Any, method: str, target: str) -> None:
    backend = await raw_backend()
    gate = await front(backend.url)
    assert len(await answers_of(gate, method, target, KEY)) == 1
    assert not [record for record in caplog.records if record.exc_info]
    assert not backend.seen


@pytest.mark.parametrize("way", ["slave"], indirect=True)
@pytest.mark.parametrize(("method", "path"), NODE)
async def test_on_what_routers_call(front: Any, raw_backend: Any, caplog: Any, method: str, path: str) -> None:
    backend = await raw_backend()
    gate = await front(backend.url)
    for router in gate.routers:
        gate.gateway = router
        assert len(await answers_of(gate, method, f"/router/v1/node/{path}", TOKEN)) == 1
    assert not [record for record in caplog.records if record.exc_info]
    assert not backend.seen


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_neither_an_api_key_nor_the_cluster_token_is_an_admin_credential(
    front: Any, raw_backend: Any, method: str
) -> None:
    gate = await front((await raw_backend()).url)
    for secret in (KEY, TOKEN, "caf\xe9"):
        answer = await gate.ask(method, "/admin/routing/dry-run", b"{}", key=secret)
        assert answer.status in {401, 403, 404, 405}


async def test_a_key_is_no_token_and_a_token_no_key(front: Any, raw_backend: Any) -> None:
    gate = await front((await raw_backend()).url)
    assert (await gate.ask("GET", "/v1/models", key=TOKEN)).status == 401
    assert (await gate.ask("GET", "/router/v1/node/snapshot", key=KEY)).status == 401
    assert (await gate.ask("GET", "/router/v1/node/snapshot", key=TOKEN)).status == 200
