"""Nothing that a client sends can become a header, or a request, of its own."""

import pytest

from turnout_router.upstream.head import OriginLines, encode_head
from turnout_router.upstream.interface import Origin, UpstreamRequest

LINES = OriginLines.of(Origin("h", 80))


def head(method="GET", target="/", headers=(), body=None):
    return encode_head(LINES, UpstreamRequest(method, target, headers, body))


@pytest.mark.parametrize("value", [b"a\r\nX: b", b"a\nb", b"a\rb", b"a\0b", b"\r\n"])
def test_a_value_that_breaks_the_line_is_refused(value):
    with pytest.raises(ValueError, match="line break"):
        head(headers=[(b"A", value)])


@pytest.mark.parametrize("name", [b"", b"A B", b"A:", b"A\r\nB", b"A\0", b"\xe9"])
def test_a_name_that_is_no_token_is_refused(name):
    for _ in range(2):  # what was judged once is remembered: a bad name must not be
        with pytest.raises(ValueError, match="no header name"):
            head(headers=[(name, b"v")])


@pytest.mark.parametrize("name", [b"Host", b"content-length", b"Transfer-Encoding"])
def test_the_framing_is_nobody_elses(name):
    with pytest.raises(ValueError, match="itself"):
        head(headers=[(name, b"1")])


@pytest.mark.parametrize("target", ["", "v1", "http://evil/", "/a b", "/a\r\nX: y", "/a\0", "/a\tb", "*"])
def test_a_target_that_is_no_path_is_refused(target):
    with pytest.raises(ValueError, match="no target"):
        head(target=target)


@pytest.mark.parametrize("method", ["", "GE T", "GET\r\n"])
def test_a_method_that_is_no_token_is_refused(method):
    with pytest.raises(ValueError, match="no method"):
        head(method=method)


def test_bytes_of_a_target_that_are_no_text_go_on_as_they_came():
    target = b"/caf\xe9?q=\xc3\xa9".decode("utf-8", "surrogateescape")
    assert head(target=target).startswith(b"GET /caf\xe9?q=\xc3\xa9 HTTP/1.1\r\n")


def test_values_are_bytes_and_stay_so():
    assert b"A: \xe9\xff \r\n" in head(headers=[(b"A", b"\xe9\xff ")])


@pytest.mark.parametrize(
    ("origin", "host"),
    [
        (Origin("h", 80), b"h"),
        (Origin("h", 443), b"h:443"),
        (Origin("h", 443, tls=True), b"h"),
        (Origin("::1", 8080), b"[::1]:8080"),
    ],
)
def test_the_host_names_the_port_where_it_is_not_the_usual_one(origin, host):
    assert OriginLines.of(origin).host == host
