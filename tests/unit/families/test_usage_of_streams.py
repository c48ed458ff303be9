"""Streams are asked what they used and lose it again, whatever pieces they come in; what carried text is counted."""

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from turnout_router.families import paths
from turnout_router.families.errors import StreamKind
from turnout_router.families.names import ModelNames, SseRewriter
from turnout_router.families.stream_usage import EventCount, WithoutUsage, asking, can_ask

CHAT = paths.find("POST", "/v1/chat/completions").endpoint
USAGE = {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9, "prompt_tokens_details": {"cached_tokens": 0}}


def event(more: str = "", *, content: str | None = "x", model: str = "local", end: str = "\n\n") -> bytes:
    choices = [] if content is None else [{"index": 0, "delta": {"content": content}, "finish_reason": None}]
    return f'data: {{"id":"c","model":"{model}", "choices": {json.dumps(choices)}{more}}}{end}'.encode()


def pieces(stream: bytes, cuts: list[int]) -> list[bytes]:
    edges = [0, *sorted(cut % len(stream) for cut in cuts), len(stream)]
    return [stream[a:b] for a, b in pairwise(edges) if a < b]


def stripped(stream: bytes, cuts: list[int]) -> bytes:
    remover = WithoutUsage(SseRewriter(ModelNames("public")))
    return b"".join(map(remover.feed, pieces(stream, cuts))) + remover.flush()


CUTS = st.lists(st.integers(0, 10_000), max_size=12)
NULL, TOLD = ', "usage": null', f', "usage":{json.dumps(USAGE)}'


@pytest.mark.parametrize("end", ["\n\n", "\r\n\r\n", "\r\r"])
@example(cuts=[1250])  # within the CRLF of what is taken out
@given(cuts=CUTS)
def test_the_usage_event_goes_and_the_member_of_others_and_nothing_else(end: str, cuts: list[int]) -> None:
    said = 'he said \\"usage\\": null and 🙂'
    with_it = [event(NULL, end=end), event(NULL, content=said, end=end), event(TOLD, end=end), event(TOLD, content=None, end=end)]  # fmt: skip
    without = [event(end=end), event(content=said, end=end), event(end=end)]
    done = f"data: [DONE]{end}".encode()
    wanted = b"".join([*without, done]).replace(b'"local"', b'"public"')
    assert stripped(b"".join([*with_it, done]), cuts) == wanted


@pytest.mark.parametrize(
    "text",
    [
        '{"usage":null,"choices":[1]}',
        '{"choices":[1],"usage":{"a":{"b":1}}}',
        '{"choices":[1] , "usage" : null }',
        '{"choices":[1],"usage":null,"obfuscation":"}{"}',
        '{"choices":[1],"usage":null,"z":1}',
        '{"choices":[{"usage":null}]}',
        '{"choices":[{"a":1,"usage":null}]}',
        '{"usage":null,"choices":[{"a":1,"usage":null}]}',
        '{"choices":[{"usage":null}],"usage":null,"z":1}',
        '{"choices":[{"delta":{"content":"}{"}}],"usage":{"a":"}"}, "z":2}',
        '{"usage":{"prompt_tokens":1}}',
    ],
)
def test_only_the_outermost_member_goes(text: str) -> None:
    wanted = {key: value for key, value in json.loads(text).items() if key != "usage"}
    left = stripped(f"data: {text}\n\n".encode(), [])
    assert json.loads(left.removeprefix(b"data: ")) == wanted
    assert left.endswith(b"\n\n")


@pytest.mark.parametrize(
    "block",
    [b'data: {"usage": \n\n', b'data: ["usage"]\n\n', b': "usage"\n\n', b'event: x\ndata: {"a":\ndata: "usage"}\n\n'],
)
def test_what_is_no_single_document_passes_as_it_is(block: bytes) -> None:
    assert stripped(block, []) == block


def test_timings_that_go_with_the_usage_are_noticed() -> None:
    remover = WithoutUsage(SseRewriter(ModelNames("public")))
    assert remover.feed(event(TOLD, content=None)) == b""
    assert not remover.took_more
    assert remover.feed(event(TOLD + ', "timings": {"prompt_n": 7}', content=None)) == b""
    assert remover.took_more


JSON = st.recursive(st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(), st.lists, max_leaves=8)


@given(st.dictionaries(st.text(), JSON, min_size=1), st.sampled_from(["", "  \n"]))
def test_a_request_without_options_keeps_every_byte(fields: dict[str, Any], end: str) -> None:
    fields.pop("stream_options", None)
    if not fields:
        return
    raw = json.dumps(fields).encode()
    asked = asking(raw + end.encode(), fields)
    assert json.loads(asked) == fields | {"stream_options": {"include_usage": True}}
    assert asked.startswith(raw[:-1])


@pytest.mark.parametrize(
    ("options", "sent"),
    [
        (None, {"include_usage": True}),
        ({"include_usage": False}, {"include_usage": True}),
        ({"include_obfuscation": False}, {"include_obfuscation": False, "include_usage": True}),
    ],
)
def test_other_options_stay(options: Any, sent: Any) -> None:
    body = {"model": "m", "stream_options": options}
    assert can_ask(CHAT, body)
    assert json.loads(asking(json.dumps(body).encode(), body)) == {"model": "m", "stream_options": sent}


@pytest.mark.parametrize(
    ("path", "options"),
    [
        ("/v1/chat/completions", {"include_usage": True}),
        ("/v1/chat/completions", "nonsense"),
        ("/v1/responses", None),
        ("/v1/messages", None),
        ("/v1/images/generations", None),
        ("/api/chat", None),
    ],
)
def test_who_asks_itself_or_is_told_anyway_is_left_alone(path: str, options: Any) -> None:
    assert not can_ask(paths.find("POST", path).endpoint, {"stream_options": options})


FRAMES = {
    StreamKind.SSE: (["role"], ["stop", "[DONE]"]),
    StreamKind.ANTHROPIC: (["message_start", "block_start"], ["block_stop", "message_delta", "message_stop"]),
    StreamKind.RESPONSES: (["created", "in_progress", "item", "part"], ["text", "part", "item", "completed"]),
    StreamKind.NDJSON: ([], ["done"]),
}


@pytest.mark.parametrize("kind", list(FRAMES))
@given(texts=st.integers(0, 6), ended=st.booleans(), cuts=CUTS)
def test_an_event_that_carries_text_is_a_token(kind: StreamKind, texts: int, ended: bool, cuts: list[int]) -> None:
    before, after = FRAMES[kind]
    said = [*before, *['text with data: {"x": 1}'] * texts, *(after if ended else [])]
    form = "{}\n" if kind is StreamKind.NDJSON else "data: {}\n\n"
    stream = "".join(form.format(json.dumps(each)) for each in said).encode()
    count = EventCount(kind)
    for piece in pieces(stream, cuts) if stream else []:
        count.feed(piece)
    assert count.tokens(ended=ended) == texts


def test_what_never_came_to_its_text_is_no_token() -> None:
    count = EventCount(StreamKind.SSE)
    assert count.tokens(ended=False) == 0
    assert count.tokens(ended=True) == 0
