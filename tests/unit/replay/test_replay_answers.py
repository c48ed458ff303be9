"""Whether what came back is one complete answer."""

import pytest

from turnout_cli.replaying.account import Outcome
from turnout_cli.replaying.answers import Answer

TOKEN = b'data: {"model": "m", "choices": [{"delta": {"content": "a"}}]}\n\n'
USAGE = b'data: {"model": "m", "choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 1}}\n\n'
DONE = b"data: [DONE]\n\n"


def stream(*chunks: bytes) -> tuple[Outcome, Answer]:
    answer = Answer(200, stream=True)
    for chunk in chunks:
        answer.feed(chunk)
    return answer.end(), answer


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_stream_is_complete_with_done_in_any_chunking(size: int) -> None:
    whole = (TOKEN + USAGE + DONE).replace(b"\n", b"\r\n")
    outcome, answer = stream(*(whole[at : at + size] for at in range(0, len(whole), size)))
    assert (outcome, answer.complete) == (Outcome.OK, True)
    assert (answer.model, answer.prompt_tokens, answer.completion_tokens) == ("m", 3, 1)


@pytest.mark.parametrize(
    ("chunks", "outcome"),
    [
        ([TOKEN], Outcome.CUT_OFF),
        ([], Outcome.CUT_OFF),
        ([TOKEN, b'data: {"error": {"message": "the backend broke"}}\n\n'], Outcome.CUT_OFF),
        ([TOKEN, b'data: {"error": {"message": "x"}}\n\n', DONE], Outcome.CUT_OFF),
        ([TOKEN, DONE, DONE], Outcome.FOREIGN),
        ([TOKEN, DONE, TOKEN], Outcome.FOREIGN),
    ],
)
def test_a_stream_that_is_not_one_whole_answer_is_no_answer(chunks: list[bytes], outcome: Outcome) -> None:
    ended, answer = stream(*chunks)
    assert (ended, answer.complete) == (outcome, False) or outcome is Outcome.FOREIGN
    assert ended is outcome
    assert answer.error


def test_an_error_event_says_what_went_wrong() -> None:
    assert stream(TOKEN, b'data: {"error": {"message": "the backend broke"}}\n\n')[1].error == "the backend broke"


@pytest.mark.parametrize(
    ("status", "body", "outcome"),
    [
        (200, b'{"model": "m", "usage": {"prompt_tokens": 3, "completion_tokens": 9}}', Outcome.OK),
        (503, b'{"error": {"message": "nothing serves it"}}', Outcome.ERROR),
        (502, b"<html>", Outcome.ERROR),
        (200, b'{"model": "m", "us', Outcome.CUT_OFF),
    ],
)
def test_a_whole_answer_is_judged_by_its_status_and_its_json(status: int, body: bytes, outcome: Outcome) -> None:
    answer = Answer(status, stream=False)
    answer.feed(body)
    assert answer.end() is outcome
