import itertools
import json

import ollama
import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnout_router.families.errors import BackendBroke
from turnout_router.families.ollama import AnswerForm
from turnout_router.families.ollama_answers import (
    MAX_EVENT_BYTES,
    StreamTranslator,
    answer,
    error_answer,
    load_answer,
)

START, NOW = 1_760_000_000.0, 1_760_000_002.5
USAGE = {"prompt_tokens": 11, "completion_tokens": 3, "total_tokens": 14}
TIMINGS = {"prompt_n": 4, "prompt_ms": 20.5, "predicted_n": 3, "predicted_ms": 100.25}


def event(**chunk):
    return b"data: " + json.dumps({"model": "local", **chunk}, ensure_ascii=False).encode() + b"\n\n"


def delta(finish_reason=None, **said):
    return event(choices=[{"index": 0, "delta": said, "finish_reason": finish_reason}])


def call(index, **function):
    return {"index": index, "id": "x", "type": "function", "function": function}


DONE = b"data: [DONE]\n\n"
CHAT_STREAM = b"".join(
    [
        b": a comment\n\n",
        delta(role="assistant", content=None),
        delta(reasoning_content="hm"),
        delta(content="你好🙂"),
        delta(content="é"),
        delta(tool_calls=[call(0, name="weather", arguments="")]),
        delta(tool_calls=[call(0, arguments='{"ci')]),
        delta(tool_calls=[call(0, arguments='ty":"Ulm"}')]),
        delta(tool_calls=[call(1, name="time")]),
        delta(finish_reason="tool_calls"),
        event(choices=[], usage=USAGE, timings=TIMINGS),
        DONE,
    ]
)


def run(stream, *, form=AnswerForm.CHAT, cuts=(), flush=True):
    """The lines of a stream that is fed in pieces."""
    translator = StreamTranslator(form, model="public", started_at=START)
    edges = [0, *sorted(cuts), len(stream)]
    written = b"".join(translator.feed(stream[a:b], NOW) for a, b in itertools.pairwise(edges))
    if flush:
        written += translator.flush(NOW)
        assert translator.is_finished
    assert not written or written.endswith(b"\n")
    return [json.loads(line) for line in written.splitlines()]


def whole(body, form=AnswerForm.CHAT):
    return json.loads(answer(form, json.dumps(body).encode(), model="public", started_at=START, now=NOW))


def test_a_whole_chat():
    message = {
        "role": "assistant",
        "content": "hi",
        "reasoning_content": "hm",
        "tool_calls": [{"id": "x", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}],
    }
    body = whole(
        {
            "model": "local",
            "choices": [{"message": message, "finish_reason": "stop"}],
            "usage": USAGE,
            "timings": TIMINGS,
        }
    )
    response = ollama.ChatResponse(**body)
    assert body == {
        "model": "public",
        "created_at": "2025-10-09T08:53:22.500000Z",
        "message": {
            "role": "assistant",
            "content": "hi",
            "thinking": "hm",
            "tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}],
        },
        "done": True,
        "done_reason": "stop",
        "total_duration": 2_500_000_000,
        "load_duration": 0,
        "prompt_eval_count": 11,
        "prompt_eval_duration": 20_500_000,
        "eval_count": 3,
        "eval_duration": 100_250_000,
    }
    assert response.message.tool_calls[0].function.arguments == {"a": 1}


@pytest.mark.parametrize("choice", [{"text": "hi"}, {"message": {"content": "hi"}}])
def test_a_whole_generate_from_either_path(choice):
    body = whole({"choices": [{**choice, "finish_reason": "length"}]}, AnswerForm.GENERATE)
    response = ollama.GenerateResponse(**body)
    assert (response.response, response.done, response.done_reason) == ("hi", True, "length")
    assert response.eval_duration == response.total_duration == 2_500_000_000


def test_embeddings_come_in_the_order_of_their_inputs():
    data = [{"index": 1, "embedding": [2.0]}, {"index": 0, "embedding": [1.0]}]
    response = ollama.EmbedResponse(**whole({"data": data, "usage": USAGE}, AnswerForm.EMBED))
    assert response.embeddings == [[1.0], [2.0]]
    assert (response.model, response.prompt_eval_count, response.total_duration) == ("public", 11, 2_500_000_000)
    assert response.eval_count is None


def test_the_older_embeddings_have_one_vector():
    body = whole({"data": [{"index": 0, "embedding": [1.0, 2.0]}]}, AnswerForm.EMBEDDINGS)
    assert ollama.EmbeddingsResponse(**body).embedding == [1.0, 2.0]


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"choices":[]}', b'{"choices":[1]}', b"<html>"])
@pytest.mark.parametrize("form", list(AnswerForm))
def test_an_answer_that_is_none_is_a_broken_backend(form, body):
    with pytest.raises(BackendBroke):
        answer(form, body, model="m", started_at=START, now=NOW)


@pytest.mark.parametrize("arguments", ["{", "[]", '"x"', '{"a":' + "[" * 300 + "]" * 300 + "}"])
def test_tool_arguments_that_are_no_object_are_a_broken_answer(arguments):
    message = {"content": "", "tool_calls": [{"function": {"name": "f", "arguments": arguments}}]}
    with pytest.raises(BackendBroke):
        whole({"choices": [{"message": message}]})


def test_a_chat_stream():
    lines = run(CHAT_STREAM)
    parts = [ollama.ChatResponse(**line) for line in lines]
    assert [part.message.thinking or part.message.content for part in parts] == ["hm", "你好🙂", "é", "", ""]
    assert [part.done for part in parts] == [False, False, False, False, True]
    assert [(made.function.name, made.function.arguments) for made in parts[3].message.tool_calls] == [
        ("weather", {"city": "Ulm"}),
        ("time", {}),
    ]
    assert {part.model for part in parts} == {"public"}
    last = parts[-1]
    assert (last.done_reason, last.prompt_eval_count, last.eval_count) == ("stop", 11, 3)
    assert (last.prompt_eval_duration, last.eval_duration) == (20_500_000, 100_250_000)


@given(st.lists(st.integers(0, len(CHAT_STREAM)), max_size=40))
def test_a_stream_gives_the_same_lines_however_it_is_cut(cuts):
    assert run(CHAT_STREAM, cuts=cuts) == run(CHAT_STREAM)


def test_a_stream_may_come_byte_by_byte():
    assert run(CHAT_STREAM, cuts=range(len(CHAT_STREAM))) == run(CHAT_STREAM)


@given(st.lists(st.integers(0, len(CHAT_STREAM)), max_size=10), st.sampled_from([b"\r\n", b"\n"]))
def test_line_ends_may_be_either(cuts, end):
    assert run(CHAT_STREAM.replace(b"\n", end), cuts=cuts) == run(CHAT_STREAM)


@given(st.integers(0, len(CHAT_STREAM)))
def test_a_stream_cut_anywhere_ends_exactly_once(length):
    lines = run(CHAT_STREAM[:length])
    ends = [line for line in lines if line.get("done") or "error" in line]
    assert ends == lines[-1:]
    finished = CHAT_STREAM.index(b'"finish_reason": "tool_calls"')
    assert ("error" in lines[-1]) or length > finished


@given(st.integers(0, len(CHAT_STREAM)), st.binary(max_size=30))
def test_bytes_that_are_no_stream_end_it_once(at, junk):
    lines = run(CHAT_STREAM[:at] + junk + CHAT_STREAM[at:])
    assert sum(bool(line.get("done") or "error" in line) for line in lines) == 1


@pytest.mark.parametrize("form", [AnswerForm.CHAT, AnswerForm.GENERATE])
def test_a_completion_stream(form):
    stream = event(choices=[{"text": "a"}]) + event(choices=[{"text": "b", "finish_reason": "length"}]) + DONE
    model = ollama.ChatResponse if form is AnswerForm.CHAT else ollama.GenerateResponse
    parts = [model(**line) for line in run(stream, form=form)]
    text = [part.message.content if form is AnswerForm.CHAT else part.response for part in parts]
    assert text == ["a", "b", ""]
    assert parts[-1].done_reason == "length"


def test_a_stream_without_done_is_whole_when_it_had_its_finish_reason():
    assert run(delta(content="a") + delta(finish_reason="stop"))[-1]["done"] is True


def test_a_stream_whose_last_event_lacks_its_line_ends_is_whole():
    assert run(delta(content="a") + delta(finish_reason="stop").rstrip(b"\n"))[-1]["done"] is True


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (event(error={"message": "out of memory", "code": 500}), "out of memory"),
        (b'error: {"message":"out of memory"}\n\n', "out of memory"),
        (event(error="out of memory"), "out of memory"),
        (b"data: {\n\n", "not JSON"),
        (b"", "broke off"),
        (delta(finish_reason="stop", tool_calls=[call(0, name="f", arguments="{")]), "no JSON object"),
        (b"data: " + b"x" * MAX_EVENT_BYTES + b"x", "without an end"),
    ],
)
def test_a_stream_that_broke_ends_in_an_error_line_after_what_came_before(broken, message):
    first, last = run(delta(content="a") + broken)
    assert first["message"]["content"] == "a"
    assert message in last["error"]


def test_nothing_follows_the_last_line():
    translator = StreamTranslator(AnswerForm.CHAT, model="m", started_at=START)
    assert translator.feed(DONE, NOW)
    assert translator.feed(CHAT_STREAM, NOW) == b""
    assert translator.fail(BackendBroke("late")) == b""
    assert translator.flush(NOW) == b""


def test_the_gateway_may_end_a_stream_with_its_own_error():
    translator = StreamTranslator(AnswerForm.CHAT, model="m", started_at=START)
    translator.feed(delta(content="a") + b"data: {", NOW)
    assert json.loads(translator.fail(BackendBroke("the node went away"))) == {"error": "the node went away"}
    assert translator.flush(NOW) == b""


def test_durations_are_measured_where_the_backend_tells_none():
    translator = StreamTranslator(AnswerForm.CHAT, model="m", started_at=START)
    translator.feed(delta(content="a"), START + 1)
    last = json.loads(translator.feed(delta(finish_reason="stop") + DONE, START + 3))
    assert (last["prompt_eval_duration"], last["eval_duration"]) == (1_000_000_000, 2_000_000_000)


def test_a_load_is_answered_at_once():
    response = ollama.ChatResponse(**json.loads(load_answer(AnswerForm.CHAT, "public", NOW)))
    assert (response.done, response.done_reason, response.message.content) == (True, "load", "")
    generated = ollama.GenerateResponse(**json.loads(load_answer(AnswerForm.GENERATE, "public", NOW, unload=True)))
    assert (generated.done_reason, generated.response) == ("unload", "")


@pytest.mark.parametrize("body", [b'{"error":{"message":"too long"}}', b"too long"])
def test_a_backends_error_has_ollamas_shape(body):
    assert json.loads(error_answer(body)) == {"error": "too long"}
    assert json.loads(error_answer(b""))["error"]
