"""What the gateway does not serve is said in the shape of the API that the path belongs to, with a request ID."""

from typing import Any

import pytest

UNKNOWN = ["/", "/v1/nothing", "/v1/chat/completions/", "/v1/foo%0Abar", "/v1/%ff%fe", "/v1/%00", "/v1/models/"]


@pytest.mark.parametrize("target", UNKNOWN)
@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS", "PROPFIND"])
async def test_an_unknown_path_is_a_404(front: Any, raw_backend: Any, method: str, target: str) -> None:
    gate = await front((await raw_backend()).url)
    answer = await gate.ask(method, target, b"")
    assert answer.status == 404
    assert set(answer.json()["error"]) == {"message", "type", "param", "code"}
    assert answer.all("x-request-id")


async def test_options_of_the_whole_server_is_a_404(front: Any, raw_backend: Any) -> None:
    gate = await front((await raw_backend()).url)
    answer = await gate.ask("OPTIONS", "*", b"")
    assert (answer.status, answer.json()["error"]["code"]) == (404, "unknown_path")


async def test_in_the_shape_of_each_api(front: Any, raw_backend: Any) -> None:
    gate = await front((await raw_backend()).url)
    assert isinstance((await gate.ask("GET", "/api/nothing")).json()["error"], str)
    assert (await gate.ask("GET", "/sdapi/nothing")).json()["error"] == "unknown_path"


@pytest.mark.parametrize(
    ("target", "allowed"), [("/v1/chat/completions", "POST"), ("/v1/models", "GET"), ("/api/chat", "POST")]
)
@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "PROPFIND"])
async def test_a_wrong_method_is_a_405_that_names_the_right_one(
    front: Any, raw_backend: Any, method: str, target: str, allowed: str
) -> None:
    gate = await front((await raw_backend()).url)
    answer = await gate.ask(method, target, b"{}")
    assert (answer.status, answer.all("allow")) == (405, [allowed])
    assert answer.json()["error"]
    assert answer.all("x-request-id")


async def test_head_is_get_without_a_body(front: Any, raw_backend: Any) -> None:
    gate = await front((await raw_backend()).url)
    listed = await gate.ask("GET", "/v1/models", None, "Connection: close")
    client = await gate.connect()
    await client.ask("HEAD", "/v1/models", None, "Connection: close")
    head, _, body = (await client.rest()).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 ")
    assert f"content-length: {len(listed.body)}".encode() in head.lower()
    assert body == b""


@pytest.mark.parametrize("way", ["slave"], indirect=True)
async def test_a_slave_says_that_clients_call_the_master(front: Any, raw_backend: Any) -> None:
    gate = await front((await raw_backend()).url)
    gate.gateway = gate.node
    answer = await gate.chat()
    assert answer.status == 404
    assert "master" in answer.json()["error"]["message"]
    assert answer.all("x-request-id")
