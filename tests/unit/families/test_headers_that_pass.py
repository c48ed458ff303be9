"""RFC 9110 §7.6.1, and what is the router's own."""

import pytest

from turnout_router.families.headers import UNCOMPRESSED, to_backend, to_client

HOP_BY_HOP = [
    b"Connection",
    b"keep-alive",
    b"Proxy-Connection",
    b"Proxy-Authorization",
    b"TE",
    b"Trailer",
    b"TRANSFER-ENCODING",
    b"Upgrade",
    b"Content-Length",
]


@pytest.mark.parametrize("direction", [to_backend, to_client])
@pytest.mark.parametrize("name", [*HOP_BY_HOP, b"X-Turnout-Lease", b"x-request-id", b"Content-Digest"])
def test_what_belongs_to_one_hop_or_to_the_router_passes_neither_way(direction, name):
    assert (name, b"1") not in direction([(name, b"1"), (b"X-Other", b"2")])
    assert (b"X-Other", b"2") in direction([(name, b"1"), (b"X-Other", b"2")])


@pytest.mark.parametrize("direction", [to_backend, to_client])
def test_what_connection_names_is_dropped_wherever_it_stands(direction):
    headers = [
        (b"X-Before", b"1"),
        (b"Connection", b"close, X-BEFORE ,x-after"),
        (b"x-after", b"2"),
        (b"connection", b"x-third,"),
        (b"X-Third", b"3"),
        (b"X-Kept", b"4"),
    ]
    assert [pair for pair in direction(headers) if pair != UNCOMPRESSED] == [(b"X-Kept", b"4")]


@pytest.mark.parametrize("direction", [to_backend, to_client])
def test_repeated_headers_stay_repeated_in_order_and_as_they_were_written(direction):
    headers = [(b"Set-Cookie", b"a=1; Path=/"), (b"X-A", b"1"), (b"set-cookie", b"b=2"), (b"X-A", b"\xff")]
    assert direction(headers)[:4] == headers


@pytest.mark.parametrize(
    "name", [b"Authorization", b"x-api-key", b"API-Key", b"Cookie", b"Host", b"Expect", b"Content-Encoding"]
)
def test_what_a_backend_has_no_use_for_does_not_reach_it(name):
    assert to_backend([(name, b"1")]) == [UNCOMPRESSED]


@pytest.mark.parametrize("wish", [b"gzip", b"gzip, br;q=0.5", b"identity;q=0"])
def test_a_backend_is_asked_for_an_answer_without_compression_whatever_the_client_takes(wish):
    assert to_backend([(b"accept-encoding", wish)]) == [(b"Accept-Encoding", b"identity")]


def test_the_end_to_end_headers_of_a_request_reach_the_backend():
    headers = [(b"Content-Type", b"application/json"), (b"anthropic-version", b"2023-06-01"), (b"X-Session", b"s")]
    assert to_backend(headers) == [*headers, UNCOMPRESSED]


@pytest.mark.parametrize("name", [b"Server", b"date"])
def test_a_client_hears_of_the_router_only(name):
    assert to_client([(name, b"1")]) == []


def test_a_coding_that_could_not_be_undone_is_told_to_the_client():
    assert to_client([(b"Content-Encoding", b"br")]) == [(b"Content-Encoding", b"br")]
