"""A stream becomes the whole answer, whatever its cut; what broke off or failed never does."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnout_router.families.assembly import Assembler, AssemblyFailed, Form

FRAME = {"created": 7, "id": "c", "model": "local", "system_fingerprint": "b1"}
DONE = b"data: [DONE]\n\n"


def event(*choices, **others):
    return b"data: " + json.dumps({"choices": choices, **FRAME, "object": "chunk", **others}).encode() + b"\n\n"


def delta(index=0, finish_reason=None, *, logprobs=None, **fields):
    choice = {"finish_reason": finish_reason, "index": index, "delta": fields}
    return choice | ({"logprobs": logprobs} if logprobs else {})


def text(index, text, finish_reason=None, logprobs=None):
    return {"text": text, "index": index, "logprobs": logprobs, "finish_reason": finish_reason}


def assembled(*chunks, form=Form.CHAT, **limits):
    assembler = Assembler(form, **limits)
    for chunk in chunks:
        assembler.feed(chunk)
    return json.loads(assembler.finish())


def message(*deltas):
    events = [event(delta(**each)) for each in deltas]
    answer = assembled(*events, event(delta(finish_reason="stop")), DONE)
    return answer["choices"][0]["message"]


ROLE = event(delta(role="assistant", content=None))
HELLO = [ROLE, event(delta(content="你好 🙂")), event(delta(content=' "x"\r\n')), event(delta(finish_reason="stop"))]
USAGE = {"completion_tokens": 2, "prompt_tokens": 3, "total_tokens": 5}
STREAM = b": hello\n\n" + b"".join(HELLO) + event(usage=USAGE, timings={"predicted_n": 2}) + DONE
WHOLE = {
    "choices": [
        {"finish_reason": "stop", "index": 0, "message": {"role": "assistant", "content": '你好 🙂 "x"\r\n'}},
    ],
    **FRAME,
    "object": "chat.completion",
    "usage": USAGE,
    "timings": {"predicted_n": 2},
}


def test_a_chat_is_the_text_of_its_deltas_with_usage_and_timings():
    assert assembled(STREAM) == WHOLE


@given(st.lists(st.integers(1, len(STREAM) - 1)), st.sampled_from([b"\n", b"\r\n", b"\r"]))
def test_the_cut_and_the_line_ends_make_no_difference(cuts, line_end):
    stream = STREAM.replace(b"\n", line_end)
    inside = sorted({*cuts})
    pieces = [stream[a:b] for a, b in zip([0, *inside], [*inside, len(stream)], strict=True)]
    assert assembled(*pieces) == WHOLE


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n", b"\r"])
def test_a_stream_may_come_byte_by_byte(line_end):
    stream = STREAM.replace(b"\n", line_end)
    assert assembled(*[stream[i : i + 1] for i in range(len(stream))]) == WHOLE


def test_comments_empty_events_other_fields_and_a_byte_order_mark_say_nothing():
    noise = b"\xef\xbb\xbf: ping\n\nid: 1\nretry: 5\ndata:\n\ndata\n\n\n"
    assert assembled(noise + STREAM.replace(b"data: ", b": ping\nevent: x\ndata:")) == WHOLE


def test_data_over_several_lines_is_one_event():
    spread = json.dumps({"choices": [delta(finish_reason="stop", content="a")], **FRAME}, indent=1)
    lines = b"".join(b"data: " + line.encode() + b"\n" for line in spread.splitlines())
    assert assembled(lines + b"\n" + DONE)["choices"][0]["message"]["content"] == "a"


def test_the_last_event_counts_without_its_blank_line():
    assert assembled(STREAM.removesuffix(b"\n\n")) == WHOLE


def test_what_follows_done_is_not_read():
    assert assembled(STREAM + b'data: {"error": "late"}\n\ndata: {') == WHOLE


def test_a_completion_is_its_text_with_probabilities_in_one_list():
    first = {"content": [{"id": 1, "logprob": -0.5, "top_logprobs": []}]}
    second = {"content": [{"id": 2, "logprob": -1.25, "top_logprobs": [{"id": 3}]}]}
    answer = assembled(
        event(text(0, " the", logprobs=first)),
        event(text(0, " scene", logprobs=second)),
        event(text(0, "", "length"), usage=USAGE),
        DONE,
        form=Form.COMPLETION,
    )
    both = {"content": first["content"] + second["content"]}
    assert answer["choices"] == [{"text": " the scene", "index": 0, "logprobs": both, "finish_reason": "length"}]
    assert (answer["object"], answer["usage"]) == ("text_completion", USAGE)


def test_a_completion_without_probabilities_says_null():
    answer = assembled(event(text(0, "a", "stop")), DONE, form=Form.COMPLETION)
    assert answer["choices"] == [{"text": "a", "index": 0, "logprobs": None, "finish_reason": "stop"}]


def test_probabilities_of_a_chat_stand_beside_its_message():
    pieces = [{"content": [{"token": token}], "refusal": None} for token in "ab"]
    events = [event(delta(content=c, logprobs=piece)) for c, piece in zip("ab", pieces, strict=True)]
    choice = assembled(*events, event(delta(finish_reason="stop")), DONE)["choices"][0]
    assert choice["logprobs"] == {"content": [{"token": "a"}, {"token": "b"}], "refusal": None}
    assert choice["message"]["content"] == "ab"


def test_choices_are_told_apart_by_their_index_and_come_in_its_order():
    answer = assembled(
        event(delta(1, content="b")), event(delta(0, content="a")), event(delta(0, content="A"), delta(1, content="B")),
        event(delta(1, "length")), event(usage=USAGE | {"prompt_tokens": 1}),
        event(delta(0, "stop")), event(usage=USAGE), DONE,
    )  # fmt: skip
    said = [(each["index"], each["message"]["content"], each["finish_reason"]) for each in answer["choices"]]
    assert said == [(0, "aA", "stop"), (1, "bB", "length")]


def test_usage_is_that_of_the_first_choice_whenever_it_comes():
    other = USAGE | {"prompt_tokens": 99}
    last = [event(text(1, "", "stop"), usage=other), event(text(0, "", "stop"), usage=USAGE)]
    for events in (last, last[::-1]):
        assert assembled(*events, DONE, form=Form.COMPLETION)["usage"] == USAGE


def test_a_message_without_text_is_empty_and_with_tool_calls_null():
    assert message({"role": "assistant", "content": None}) == {"role": "assistant", "content": ""}
    assert message({"tool_calls": [{"index": 0, "id": "1"}]})["content"] is None
    assert message({"function_call": {"name": "f", "arguments": ""}})["content"] is None


def test_tool_calls_join_by_index():
    one = {"index": 0, "id": "a", "type": "function", "function": {"name": "weather", "arguments": ""}}
    two = {"index": 1, "id": "b", "type": "function", "function": {"name": "time", "arguments": "{}"}}
    said = message(
        {"role": "assistant", "content": None, "tool_calls": [one]},
        {"tool_calls": [{"index": 0, "function": {"arguments": '{"city":'}}]},
        {"tool_calls": [two, {"index": 0, "id": "a", "type": "function", "function": {"arguments": '"Rome"}'}}]},
    )
    assert said["tool_calls"] == [
        {"id": "a", "type": "function", "function": {"name": "weather", "arguments": '{"city":"Rome"}'}},
        {"id": "b", "type": "function", "function": {"name": "time", "arguments": "{}"}},
    ]


def test_tool_calls_without_an_index_are_each_their_own():
    calls = [{"id": name, "function": {"name": name, "arguments": "{}"}} for name in "ab"]
    assert message({"tool_calls": calls})["tool_calls"] == calls


def test_a_function_call_reasoning_and_a_refusal_are_text_in_pieces():
    said = message(
        {"reasoning_content": "let ", "function_call": {"name": "f", "arguments": "{"}, "refusal": None},
        {"reasoning_content": "me", "function_call": {"arguments": "}"}, "refusal": "no"},
    )
    assert said["reasoning_content"] == "let me"
    assert said["function_call"] == {"name": "f", "arguments": "{}"}
    assert said["refusal"] == "no"


def test_fields_that_nobody_knows_join_by_their_kind():
    said = message(
        {"note": "a", "list": [1], "flag": True, "object": {"text": "x", "list": [1]}},
        {"note": "b", "list": [2, {"c": None}], "flag": 3, "object": {"text": "y", "list": [2]}, "late": []},
    )
    expected = {"note": "ab", "list": [1, 2, {"c": None}], "flag": 3, "object": {"text": "xy", "list": [1, 2]}}
    assert said == {"role": "assistant", "content": ""} | expected | {"late": []}


def test_unknown_fields_beside_the_choices_are_those_of_the_last_event():
    answer = assembled(
        event(delta(content="a"), prompt_progress={"total": 1}), event(delta(finish_reason="stop"), note=1), DONE
    )
    assert answer["note"] == 1
    assert "prompt_progress" not in answer


def test_objects_beyond_the_levels_that_are_joined_are_taken_as_they_are():
    deep = {"a": {"a": {"a": {"a": {"a": {"a": {"a": {"a": {"a": "x"}}}}}}}}}
    assert message({"deep": deep}, {"deep": deep})["deep"] == deep


def test_null_says_nothing():
    assert assembled(b"data: null\n\n" + STREAM) == WHOLE


@pytest.mark.parametrize(
    ("stream", "why"),
    [
        (b"", "before it was complete"),
        (DONE, "before it was complete"),
        (b"".join(HELLO[:-1]), "before it was complete"),
        (STREAM.removesuffix(DONE), "before it was complete"),
        (event(delta(0, "stop")) + event(delta(1, content="b")) + DONE, "before it was complete"),
        (ROLE + b'data: {"choices":[{"del', "no JSON object"),
        (ROLE + b"data: 7\n\n" + DONE, "no JSON object"),
        (ROLE + b'data: {"error":{"code":500,"message":"out of memory"}}\n\n', "out of memory"),
        (ROLE + b'event: error\ndata: {"message":"out of memory"}\n\n', "out of memory"),
        (ROLE + b'error: {"message":"out of memory"}\n\n' + DONE, "out of memory"),
        (ROLE + b"event: error\ndata: ?\n\n", "no reason given"),
        (b"event: error\ndata: null\n\n" + STREAM, "no reason given"),
        (STREAM.removesuffix(DONE) + b'data: {"error":"x"}\n\n' + DONE, "x"),
        (event(delta(finish_reason="stop", deep=json.loads("[" * 300 + "]" * 300))) + DONE, "too deep"),
    ],
)
def test_a_stream_that_failed_or_broke_off_is_no_answer(stream, why):
    with pytest.raises(AssemblyFailed, match=why):
        assembled(stream)


@given(st.integers(0, len(STREAM.rstrip()) - 1))
def test_a_stream_that_ends_anywhere_before_its_end_is_no_answer(end):
    with pytest.raises(AssemblyFailed):
        assembled(STREAM[:end])


def test_a_stream_beyond_the_limit_is_given_up():
    assert assembled(STREAM, max_bytes=len(STREAM)) == WHOLE
    with pytest.raises(AssemblyFailed, match="longer than"):
        assembled(STREAM, max_bytes=len(STREAM) - 1)
