"""What is no HTTP, or a head beyond any measure, gets a 4xx in JSON with a request ID, and costs no traceback."""

from typing import Any

import pytest

HEADS = {
    "no HTTP": b"hello there\r\n\r\n",
    "a huge header": b"GET /v1/models HTTP/1.1\r\nHost: g\r\nX: " + b"x" * 200_000 + b"\r\n\r\n",
    "a huge target": b"GET /v1/" + b"x" * 200_000 + b" HTTP/1.1\r\nHost: g\r\n\r\n",
    "too many headers": b"GET /v1/models HTTP/1.1\r\nHost: g\r\n" + b"X: 1\r\n" * 5000 + b"\r\n",
    "two lengths": b"POST /v1/x HTTP/1.1\r\nHost: g\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx",
    "length and chunked": b"POST /v1/x HTTP/1.1\r\nHost: g\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a NUL in a value": b"GET /v1/models HTTP/1.1\r\nHost: g\r\nX: \0\r\n\r\n",
    "a bare line feed": b"GET /v1/models HTTP/1.1\r\nHost: g\r\nX: a\nY: b\r\n\r\n",
    "a space before the colon": b"GET /v1/models HTTP/1.1\r\nHost: g\r\nX : 1\r\n\r\n",
    "HTTP/9": b"GET /v1/models HTTP/9.9\r\nHost: g\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(64),
}


@pytest.mark.parametrize("way", ["standalone"], indirect=True)
@pytest.mark.parametrize("head", HEADS)
async def test_it_is_a_4xx_in_json(front: Any, raw_backend: Any, caplog: Any, head: str) -> None:
    backend = await raw_backend()
    gate = await front(backend.url)
    client = await gate.connect()
    await client.send(HEADS[head])
    answer = await client.answer()
    assert answer.status in {400, 401, 431}
    assert answer.json()["error"]["message"]
    assert answer.all("x-request-id")
    assert not [record for record in caplog.records if record.exc_info]
    assert (await gate.chat()).status == 200
    assert len(backend.seen) == 1
