"""https origins. `tls/` holds a certificate for 127.0.0.1 that nobody trusts but these tests."""

import ssl
from pathlib import Path

import pytest

from turnout_router.upstream.client import HttpClient
from turnout_router.upstream.interface import NotSent, UpstreamRequest

CERTIFICATE = Path(__file__).parent / "tls" / "cert.pem"
KEY = CERTIFICATE.with_name("key.pem")
BODY = bytes(range(256)) * 4096


async def echo(peer):
    while True:
        _, body = await peer.request()
        await peer.say(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body), body)


@pytest.fixture
def server_side():
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(CERTIFICATE, KEY)
    return context


async def test_bodies_pass_over_tls_and_the_connection_is_used_again(backends, server_side):
    client = HttpClient(ssl_context=ssl.create_default_context(cafile=str(CERTIFICATE)))
    origin, backend = await backends.start(echo, ssl=server_side)
    for _ in range(3):
        answer = await client.request(origin, UpstreamRequest("POST", "/", body=BODY))
        assert await answer.read_all(len(BODY)) == BODY
    assert backend.connections == 1
    await client.close()


async def test_a_certificate_that_nobody_vouches_for_gets_no_request(backends, client, server_side):
    origin, _ = await backends.start(echo, ssl=server_side)
    with pytest.raises(NotSent, match="certificate"):
        await client.request(origin, UpstreamRequest("POST", "/", body=BODY))
