"""Tokens in the answers of every API, from their first and last bytes; nothing from garbage, and never an error."""

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnout_api.lending import Work
from turnout_router.families.usage import HEAD_BYTES, TAIL_BYTES, UsageReader


def told(answer: bytes | str, chunk: int = 1 << 20) -> Work | None:
    data = answer.encode() if isinstance(answer, str) else answer
    reader = UsageReader()
    for at in range(0, len(data), chunk):
        reader.feed(data[at : at + chunk])
    return reader.work()


def sse(*events: object) -> str:
    return "".join(f"data: {json.dumps(event)}\n\n" for event in events)


WORDS = "word " * 10_000
OPENAI = {
    "prompt_tokens": 120,
    "completion_tokens": 30,
    "total_tokens": 150,
    "prompt_tokens_details": {"cached_tokens": 9},
}
DELTA = {"choices": [{"delta": {"content": "word"}}], "usage": None}

ANSWERS = {
    "chat": json.dumps({"choices": [{"message": {"content": WORDS}}], "usage": OPENAI}),
    "chat, spaced and followed": json.dumps({"usage": OPENAI, "id": "x", "system_fingerprint": "y"}, indent=4),
    "vllm": json.dumps({"choices": [{"message": {"content": WORDS}}], "usage": OPENAI, "prompt_logprobs": None}),
    "stream": sse(*[DELTA] * 500, {"choices": [], "usage": OPENAI}) + "data: [DONE]\n\n",
    "stream that counts all the way": sse(*({"usage": OPENAI | {"completion_tokens": n}} for n in range(31))),
    "llama.cpp stream": sse(
        *[DELTA] * 500, {"choices": [], "timings": {"prompt_n": 20, "cache_n": 100, "predicted_n": 30}}
    ),
    "usage before timings": json.dumps({"usage": OPENAI, "timings": {"prompt_n": 1, "predicted_n": 30}}),
    "responses": json.dumps(
        {"output": [WORDS], "usage": {"input_tokens": 120, "output_tokens": 30, "total_tokens": 150}}
    ),
    "responses stream": "event: response.completed\n"
    + sse({"response": {"output": [WORDS], "usage": {"input_tokens": 120, "output_tokens": 30}, "user": None}}),
    "messages": json.dumps(
        {"content": [WORDS], "usage": {"input_tokens": 20, "cache_read_input_tokens": 100, "output_tokens": 30}}
    ),
    "messages stream": sse(
        {"message": {"usage": {"input_tokens": 20, "cache_read_input_tokens": 100, "output_tokens": 1}}},
        *[DELTA] * 500,
        {"type": "message_delta", "usage": {"output_tokens": 30}},
        {"type": "message_stop"},
    ),
    "messages stream with zeroes": sse(
        {"message": {"usage": {"input_tokens": 120, "output_tokens": 0}}},
        *[DELTA] * 500,
        {"usage": {"input_tokens": 0, "output_tokens": 30}},
    ),
    "ollama": json.dumps(
        {"message": {"content": WORDS}, "done": True, "prompt_eval_count": 120, "eval_count": 30, "eval_duration": 5}
    ),
    "ollama stream": '{"response":"word"}\n' * 500 + '{"done":true,"prompt_eval_count":120,"eval_count":30}\n',
}


@pytest.mark.parametrize("name", ANSWERS)
def test_answers_that_count_prompt_and_answer(name: str) -> None:
    assert told(ANSWERS[name]) == Work(120, 30)


EMBEDDING = {"data": [{"embedding": [0.25] * 4096}]}
PROMPT_ONLY = {
    "embeddings": json.dumps(EMBEDDING | {"usage": {"prompt_tokens": 120, "total_tokens": 120}}),
    "embeddings of llama.cpp": json.dumps({"usage": {"prompt_tokens": 120, "total_tokens": 120}} | EMBEDDING),
    "embeddings of Ollama": json.dumps({"embeddings": [[0.25] * 4096], "prompt_eval_count": 120}),
    "rerank": json.dumps({"results": [], "usage": {"total_tokens": 120}}),
}


@pytest.mark.parametrize("name", PROMPT_ONLY)
def test_answers_without_generated_tokens(name: str) -> None:
    assert told(PROMPT_ONLY[name]) == Work(120, 0)


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "{}",
        "[1, 2",
        '{"usage": null}',
        '{"usage": [1]}',
        '{"usage": {"prompt_tokens": "many", "completion_tokens": true}}',
        '{"usage": {"prompt_tokens": -3, "completion_tokens": 4}}',
        '{"usage": {"prompt_tokens": 1e300, "completion_tokens": 4}}',
        '{"usage": {"prompt_tokens": 12, "completion_tok',
        '{"usage": {"type": "duration", "seconds": 3}}',
        '{"eval_count": 5}',
        '{"prompt_eval_count": ' + "9" * 5000 + "}",
        sse(*[DELTA] * 20) + "data: [DONE]\n\n",
        b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 100,
    ],
)
def test_what_an_answer_does_not_say_is_not_known(answer: bytes | str) -> None:
    assert told(answer) is None


def test_a_text_that_speaks_of_usage_is_not_taken_for_it() -> None:
    text = 'say "usage": {"prompt_tokens": 1, "completion_tokens": 2}'
    assert told(json.dumps({"usage": OPENAI, "choices": [{"message": {"content": text}}]})) == Work(120, 30)
    assert told(json.dumps({"choices": [{"message": {"content": text}}]})) is None


@pytest.mark.parametrize("name", ["chat", "stream", "messages stream", "ollama stream"])
@given(chunk=st.integers(1, 40_000))
def test_the_cut_of_the_bytes_changes_nothing(name: str, chunk: int) -> None:
    assert told(ANSWERS[name], max(chunk, len(ANSWERS[name]) // 200)) == Work(120, 30)


@given(st.binary(max_size=300), st.sampled_from(sorted(ANSWERS)), st.integers(0, 100_000), st.integers(1, 9000))
def test_garbage_never_fails(garbage: bytes, name: str, at: int, chunk: int) -> None:
    answer = ANSWERS[name].encode()[-9000:]
    at %= len(answer)
    told(answer[:at] + garbage + answer[at:], max(chunk, 50))


def test_an_answer_of_any_length_is_held_in_the_same_memory() -> None:
    reader = UsageReader()
    rng = random.Random(1)  # noqa: S311 - sizes of chunks
    for _ in range(2000):
        reader.feed(b"x" * rng.randint(1, 5000))
        assert len(reader._head) <= HEAD_BYTES
        assert len(reader._tail) <= 2 * TAIL_BYTES
