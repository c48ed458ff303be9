"""A chunked upload with a trailer is one well-framed request at every hop, without fields of the hop before."""

import json
from typing import Any

UPLOAD = json.dumps({"model": "public-m", "messages": [{"role": "user", "content": "hi " * 20}]}).encode()
HOP = ("connection", "keep-alive", "te", "trailer", "upgrade", "proxy-authorization", "x-hop", "x-t", "expect")


async def test_a_chunked_upload_with_a_trailer(front: Any, raw_backend: Any) -> None:
    backend = await raw_backend()
    gate = await front(backend.url)
    client = await gate.connect()
    third = len(UPLOAD) // 3
    head = [
        "Transfer-Encoding: chunked", "Trailer: X-T", "TE: trailers", "Connection: keep-alive, X-Hop, TE", "X-Hop: 1",
        "Keep-Alive: timeout=5", "Proxy-Authorization: Basic eA==", "X-Kept: yes", "Content-Type: application/json",
    ]  # fmt: skip
    await client.ask("POST", "/v1/chat/completions?a=1&b=%20", None, *head)
    for piece in (UPLOAD[:third], UPLOAD[third : 2 * third], UPLOAD[2 * third :]):
        await client.send(b"%x\r\n%b\r\n" % (len(piece), piece))
    await client.send(b"0\r\nX-T: 1\r\n\r\n")
    answer = await client.answer()

    assert (answer.status, answer.json()["model"]) == (200, "public-m")
    (seen,) = backend.seen
    assert json.loads(seen.body) == json.loads(UPLOAD) | {"model": "backend-m"}
    assert (seen.method, seen.target) == ("POST", "/v1/chat/completions?a=1&b=%20")
    assert len(seen.all("content-length") + seen.all("transfer-encoding")) == 1
    assert len(seen.all("host")) == 1
    assert seen.all("x-kept") == ["yes"]
    assert [name for name, _ in seen.headers if name.lower() in HOP] == []
