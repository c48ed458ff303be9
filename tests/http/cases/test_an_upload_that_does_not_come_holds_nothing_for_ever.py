"""A body that trickles, stops, breaks off or is malformed: no model sees it, and its request ends with one record."""

from typing import Any

import pytest

from turnout_router.gateway import intake

HEAD = ("POST", "/v1/chat/completions", None)


async def test_a_body_that_stops_is_given_up(
    front: Any, raw_backend: Any, until: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake, "BODY_IDLE_TIMEOUT_S", 0.3)
    backend = await raw_backend()
    gate = await front(backend.url)
    client = await gate.connect()
    await client.ask(*HEAD, "Content-Length: 1000")
    await client.send(b'{"model": ')
    answer = await client.answer()
    assert (answer.status, answer.json()["error"]["code"]) == (408, "request_timeout")
    await until(gate.idle)
    assert [record["code"] for record in gate.records()] == ["request_timeout"]
    assert not backend.seen


async def test_a_body_that_trickles_is_read_to_its_end(front: Any, raw_backend: Any, body_of_a_chat: Any) -> None:
    backend = await raw_backend()
    gate = await front(backend.url)
    client = await gate.connect()
    body = body_of_a_chat()
    await client.ask(*HEAD, f"Content-Length: {len(body)}")
    for byte in body:
        await client.send(bytes([byte]))
    assert (await client.answer()).status == 200
    assert len(backend.seen) == 1


@pytest.mark.parametrize("framing", ["Content-Length: 1000", "Transfer-Encoding: chunked"])
@pytest.mark.parametrize("how", ["leave", "half_close"])
async def test_a_client_that_goes_in_the_middle_of_its_body(
    front: Any, raw_backend: Any, until: Any, framing: str, how: str
) -> None:
    backend = await raw_backend()
    gate = await front(backend.url)
    client = await gate.connect()
    await client.ask(*HEAD, framing)
    await client.send(b"3e8\r\n{" if "chunked" in framing else b"{")
    await until(lambda: gate.gateway.open_requests == 1, "the gateway reads")
    getattr(client, how)()
    await until(gate.idle)
    assert [record["outcome"] for record in gate.records()] in (["client_gone"], ["refused"])
    assert not backend.seen


async def test_a_client_that_closes_its_side_after_the_request_has_left(
    front: Any, raw_backend: Any, until: Any, body_of_a_chat: Any
) -> None:
    """As nginx and uvicorn take it: who closes his half is taken for gone, so that a backend never works for nobody."""
    backend = await raw_backend(lambda seen: seen.until_left())
    gate = await front(backend.url)
    client = await gate.connect()
    await client.ask("POST", "/v1/chat/completions", body_of_a_chat())
    await until(lambda: backend.seen, "the backend has it")
    client.half_close()
    await until(backend.seen[0].left.is_set, "it is taken off the backend")
    await until(gate.idle)
    assert [record["outcome"] for record in gate.records()] == ["client_gone"]


MALFORMED = {
    "a chunk without a size": (b"Transfer-Encoding: chunked", b"zz\r\n{}\r\n0\r\n\r\n"),
    "a chunk longer than it says": (b"Transfer-Encoding: chunked", b"2\r\n{}{}\r\n0\r\n\r\n"),
    "no gzip": (b"Content-Encoding: gzip\r\nContent-Length: 5", b"hello"),
    "an unknown coding": (b"Content-Encoding: lzw\r\nContent-Length: 5", b"hello"),
}


@pytest.mark.parametrize("what", MALFORMED)
async def test_a_malformed_body_is_a_400(front: Any, raw_backend: Any, until: Any, caplog: Any, what: str) -> None:
    backend = await raw_backend()
    gate = await front(backend.url)
    client = await gate.connect()
    header, body = MALFORMED[what]
    await client.ask(*HEAD, header.decode())
    await client.send(body)
    answer = await client.answer()
    assert answer.status in {400, 415}
    assert answer.json()["error"]["message"]
    assert answer.all("x-request-id")
    await until(gate.idle)
    assert not backend.seen
    assert not [record for record in caplog.records if record.exc_info]


@pytest.mark.parametrize("what", MALFORMED)
async def test_one_that_turns_out_malformed_later_is_refused_or_given_up(
    front: Any, raw_backend: Any, until: Any, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """The HTTP library does not always tell who reads a body that its rest is malformed: then it stops coming."""
    monkeypatch.setattr(intake, "BODY_IDLE_TIMEOUT_S", 0.3)
    backend = await raw_backend()
    gate = await front(backend.url)
    client = await gate.connect()
    header, body = MALFORMED[what]
    await client.ask(*HEAD, header.decode())
    await until(lambda: gate.gateway.open_requests == 1, "the gateway waits for the body")
    await client.send(body)
    answer = await client.answer()
    assert answer.status in {400, 408, 415}
    assert answer.json()["error"]["message"]
    await until(gate.idle)
    assert not backend.seen


async def test_a_body_in_gzip_is_read_and_passed_plain(front: Any, raw_backend: Any, body_of_a_chat: Any) -> None:
    import gzip  # noqa: PLC0415 - this test alone

    backend = await raw_backend()
    gate = await front(backend.url)
    answer = await gate.ask("POST", "/v1/chat/completions", gzip.compress(body_of_a_chat()), "Content-Encoding: gzip")
    assert answer.status == 200
    assert backend.seen[0].model == "backend-m"
    assert not backend.seen[0].all("content-encoding")


async def test_a_body_that_unpacks_beyond_the_limit_is_413(front: Any, raw_backend: Any) -> None:
    import gzip  # noqa: PLC0415 - this test alone

    backend = await raw_backend()
    gate = await front(backend.url, max_body_bytes=100_000)
    bomb = gzip.compress(b'{"model": "public-m", "x": "' + b"x" * 50_000_000)
    answer = await gate.ask("POST", "/v1/chat/completions", bomb, "Content-Encoding: gzip")
    assert answer.status in {400, 413}
    assert not backend.seen
