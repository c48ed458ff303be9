"""Model names in streams: for any chunking the result is that of the whole, and events do not wait for others."""

import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from turnout_router.families.names import EventTooLong, ModelNames, NdjsonRewriter, SseRewriter


def sse(*chunks, limit=10_000):
    rewriter = SseRewriter(ModelNames("public"), max_event_bytes=limit)
    return b"".join([*map(rewriter.feed, chunks), rewriter.flush()])


def ndjson(*chunks, limit=10_000):
    rewriter = NdjsonRewriter(ModelNames("public"), max_line_bytes=limit)
    return b"".join([*map(rewriter.feed, chunks), rewriter.flush()])


def cut(whole, cuts):
    inside = sorted({each for each in cuts if 0 < each < len(whole)})
    return [whole[a:b] for a, b in zip([0, *inside], [*inside, len(whole)], strict=True)]


def by_bytes(whole):
    return [whole[i : i + 1] for i in range(len(whole))]


CHAT = 'data: {"id":"c","model":"local","choices":[{"delta":{"content":"你好🙂é \\"model\\":\\"local\\" {"}}]}'.encode()
SORTED = b'data: {"choices":[{"delta":{"content":"x"}}],"model":"local","object":"chunk"}'
FINISH = b'data: {"id":"c","model":"local","choices":[{"delta":{},"finish_reason":"stop"}],"usage":null}'
USAGE = b'data: {"id":"c","model":"local","choices":[],"usage":{"total_tokens":3}}'
NESTED = b'data: {"id":"c","model":"local","x":{"model":"local"}}'
START = b'event: message_start\ndata: {"type":"message_start","message":{"model":"local","id":"m"}}'
SPREAD = b'data: {"id":1,\ndata:"model"\ndata:: "local",\ndata\ndata: "b":{}}\nid: 7'
OTHER = [b': a comment with "model":"local"', b"retry: 10", b"data: [DONE]", b"data:", b"", b'{"model":"local"}',
         b'event: x\nfoo: {"model":"local"}', b'data: {"model":"public"}', b'data:{"model":"local"}', b"data: \xff\xfe"]  # fmt: skip
EVENTS = [CHAT, CHAT, SORTED, FINISH, USAGE, NESTED, START, SPREAD, *OTHER]


def expected_event(event):
    """By parsing, for events whose lines end with LF."""
    if event == SPREAD:
        return event.replace(b'"local"', b'"public"')
    return b"\n".join(map(expected_line, event.split(b"\n")))


def expected_line(line):
    try:
        document = json.loads(line.removeprefix(b"data:")) if line.startswith(b"data:") else None
    except ValueError:
        return line
    if isinstance(document, dict) and (document.get("model") == "local" or "message" in document):
        return line.replace(b'"model":"local"', b'"model":"public"', 1)
    return line


STREAMS = st.tuples(
    st.lists(st.sampled_from(EVENTS), max_size=8),
    st.sampled_from([b"\n", b"\r\n", b"\r"]),
    st.booleans(),
    st.sampled_from([b"", b"\xef\xbb\xbf"]),
)


@settings(max_examples=150)
@given(STREAMS, st.lists(st.integers(0, 900), max_size=12))
@example(([CHAT, CHAT, CHAT], b"\n", True, b""), [])
@example(([CHAT, NESTED, CHAT], b"\n", True, b""), [])
@example(([CHAT, START, USAGE], b"\r", False, b""), [85])
def test_events_are_rewritten_the_same_for_any_chunking(stream, cuts):
    events, end, closed, bom = stream
    whole = bom + b"\n\n".join(events) + b"\n\n" * closed
    rewritten = bom + b"\n\n".join(map(expected_event, events)) + b"\n\n" * closed
    whole, rewritten = whole.replace(b"\n", end), rewritten.replace(b"\n", end)
    assert sse(*cut(whole, cuts)) == rewritten
    assert sse(*by_bytes(whole)) == rewritten


def test_an_event_is_whole_at_every_cut():
    """A multi-byte character cut by a chunk's end is what broke streams in a public report."""
    whole = CHAT + b"\n\n"
    rewritten = whole.replace(b'"model":"local"', b'"model":"public"', 1)
    for at in range(len(whole)):
        assert sse(whole[:at], whole[at:]) == rewritten


def test_the_last_events_that_come_in_one_delivery_keep_their_form():
    delivery = b"\n\n".join([FINISH, USAGE, b"data: [DONE]", b""])
    assert sse(CHAT + b"\n\n", delivery) == b"\n\n".join([CHAT, FINISH, USAGE, b"data: [DONE]", b""]).replace(
        b'"model":"local"', b'"model":"public"'
    )


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"], ids=["LF", "CRLF", "CR"])
@pytest.mark.parametrize("event", [CHAT, START, b"data: [DONE]", b": keep-alive"])
def test_an_event_leaves_with_the_last_byte_of_its_blank_line(event, end):
    rewriter = SseRewriter(ModelNames("public"))
    whole = event.replace(b"\n", end) + end + end
    last = len(whole) - (2 if end == b"\r\n" else 1)  # the CR of the last CRLF ends the line already
    assert rewriter.feed(whole[:last]) == b""
    assert rewriter.feed(whole[last : last + 1])
    assert rewriter.feed(CHAT + b"\n\n").endswith(b"\n\n")


@pytest.mark.parametrize("size", [1, 7, 400])
def test_an_event_longer_than_the_limit_ends_the_stream(size):
    rewriter = SseRewriter(ModelNames("public"), max_event_bytes=400)
    endless = b"data: " + b"x" * 1000
    with pytest.raises(EventTooLong):  # noqa: PT012 - at which call is the chunking's business
        for at in range(0, len(endless), size):
            assert rewriter.feed(endless[at : at + size]) == b""


def test_events_up_to_the_limit_pass_however_many_there_are():
    event = CHAT + b"\n\n"
    assert len(sse(*by_bytes(event * 20), limit=len(event))) == 20 * len(event) + 20


def test_a_key_written_with_escapes_is_found_in_an_event_that_begins_like_the_last():
    twice = CHAT[:-1] + b',"mod\\u0065l":"local"}\n\n'
    assert sse(CHAT + b"\n\n", twice).endswith(b',"mod\\u0065l":"public"}\n\n')


LINES = [
    b'{"model":"local","message":{"content":"x","tool_calls":[{"function":{"arguments":{"model":"local"}}}]},"done":false}',
    b'{"model":"local","response":"x","done":true,"context":[1,2]}',
    '{"model":"local","message":{"content":"你好🙂é"}}'.encode(),
    b'{"error":"model \\"local\\" stopped"}',
    b"",
    b"no json",
]


@settings(max_examples=80)
@given(
    st.lists(st.sampled_from(LINES), max_size=6),
    st.sampled_from([b"\n", b"\r\n"]),
    st.booleans(),
    st.lists(st.integers(0, 500), max_size=10),
)
def test_lines_of_json_are_rewritten_the_same_for_any_chunking(lines, end, closed, cuts):
    whole = end.join(lines) + end * closed
    rewritten = (
        end.join(line.replace(b'{"model":"local"', b'{"model":"public"', 1) for line in lines).replace(
            b'"arguments":{"model":"public"', b'"arguments":{"model":"local"'
        )
        + end * closed
    )
    assert ndjson(*cut(whole, cuts)) == rewritten
    assert ndjson(*by_bytes(whole)) == rewritten


def test_a_line_leaves_with_its_end_and_the_last_one_at_the_end_of_the_stream():
    rewriter = NdjsonRewriter(ModelNames("public"))
    assert rewriter.feed(b'{"model":"loc') == b""
    assert rewriter.feed(b'al"}\n{"er') == b'{"model":"public"}\n'
    assert rewriter.feed(b'ror":"x"}') == b""
    assert rewriter.flush() == b'{"error":"x"}'
    assert rewriter.flush() == b""


@pytest.mark.parametrize("size", [1, 400, 1000])
def test_a_line_longer_than_the_limit_ends_the_stream(size):
    rewriter = NdjsonRewriter(ModelNames("public"), max_line_bytes=399)
    endless = b'{"a":"' + b"x" * 1000
    with pytest.raises(EventTooLong):  # noqa: PT012 - at which call is the chunking's business
        for at in range(0, len(endless), size):
            rewriter.feed(endless[at : at + size])
