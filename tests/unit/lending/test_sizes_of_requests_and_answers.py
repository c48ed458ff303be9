"""The token profile: bytes a token with their spread, answers by the size of the request, and the room in the window."""

import pytest

from turnout_api.lending import Work
from turnout_router.lending.job import Job
from turnout_router.lending.measure import Measurements, Sample
from turnout_router.lending.settings import LendingSettings


def measured(*jobs: tuple[int, int, int], max_tokens: int | None = None, **settings) -> Measurements:
    """Jobs are (bytes, input tokens, output tokens)."""
    measurements = Measurements(LendingSettings(**settings))
    for at, (body_bytes, tokens_in, tokens_out) in enumerate(jobs):
        measurements.add(Sample("m", float(at), 1.0, Work(tokens_in, tokens_out), body_bytes, max_tokens=max_tokens))
    return measurements


EVEN = [(4000, 1000, 100)] * 20
UNEVEN = [(3000, 1000, 100), (5000, 1000, 100)] * 10


def test_without_a_profile_a_byte_counts_as_a_token() -> None:
    measurements = measured(*EVEN[:19])
    assert measurements.tokens_of("m", Job(body_bytes=900, max_tokens=50)) == (950.0, True)
    assert measurements.work_of("m", Job(body_bytes=900, max_tokens=50)) == Work(900.0, 0.0)


def test_a_steady_ratio_needs_no_margin() -> None:
    assert measured(*EVEN).tokens_of("m", Job(body_bytes=8000, max_tokens=0)) == (pytest.approx(2000.0), False)


def test_the_size_for_the_context_gate_is_pulled_up_by_the_spread_and_the_price_is_not() -> None:
    measurements = measured(*UNEVEN)
    job = Job(body_bytes=8000, max_tokens=0)
    assert measurements.tokens_of("m", job)[0] == pytest.approx(8000 / 3)  # 4 bytes a token, spread 1
    assert measurements.work_of("m", job).input_tokens == pytest.approx(2000.0)


def test_a_token_has_a_byte_at_least_however_wide_the_spread() -> None:
    measurements = measured(*[(1000, 1000, 1)] * 15 + [(90_000, 1000, 1)] * 5)
    assert measurements.tokens_of("m", Job(body_bytes=500, max_tokens=0))[0] == pytest.approx(500.0)


def test_a_prompt_of_one_word_says_little_about_a_long_one() -> None:
    measurements = measured(*[(4000, 1000, 10)] * 20, *[(90, 9, 10)] * 20)
    assert measurements.work_of("m", Job(body_bytes=40_000)).input_tokens == pytest.approx(10_000, rel=0.02)


def test_pictures_in_a_body_say_nothing_about_bytes_a_token() -> None:
    measurements = measured(*EVEN)
    for at in range(20):
        measurements.add(Sample("m", 30.0 + at, 1.0, Work(700, 20), 2_000_000, has_images=True))
    assert measurements.work_of("m", Job(body_bytes=4000)).input_tokens == pytest.approx(1000.0)
    assert measurements.work_of("m", Job(body_bytes=3_000_000, has_images=True)).input_tokens == pytest.approx(700.0)
    # the gate divides the raw size, so such a request is taken to be too large
    assert measurements.tokens_of("m", Job(body_bytes=2_000_000, has_images=True))[0] > 400_000


def test_an_answer_is_expected_to_be_like_those_to_requests_of_its_size() -> None:
    jobs = [(100 * size, 25 * size, 1000 // size) for size in (1, 2, 4, 8)] * 10
    measurements = measured(*jobs)
    expected = [measurements.work_of("m", Job(body_bytes=100 * size)).output_tokens for size in (1, 2, 4, 8)]
    assert expected == pytest.approx([1000, 500, 250, 125])


def test_what_the_client_allows_is_a_cap_and_never_the_expectation() -> None:
    measurements = measured(*[(4000, 1000, 90), (4000, 1000, 110)] * 10)
    outputs = {
        stated: measurements.work_of("m", Job(body_bytes=4000, max_tokens=stated)).output_tokens
        for stated in (40, 4096)
    }
    assert outputs == {40: 40.0, 4096: pytest.approx(100.0)}


def test_where_answers_follow_what_is_allowed_its_measured_share_is_expected() -> None:
    measurements = measured()
    for at in range(40):
        stated = 100 * (1 + at % 7)
        measurements.add(Sample("m", float(at), 1.0, Work(1000, stated * 0.5), 4000, max_tokens=stated))
    assert measurements.work_of("m", Job(body_bytes=4000, max_tokens=600)).output_tokens == pytest.approx(300.0)


def test_a_limit_that_is_always_the_same_predicts_nothing() -> None:
    jobs = [(4000, 1000, output) for output in range(10, 210, 10)]
    measurements = measured(*jobs, max_tokens=1024)
    assert measurements.work_of("m", Job(body_bytes=4000, max_tokens=512)).output_tokens == pytest.approx(105.0)


@pytest.mark.parametrize(
    ("outputs", "stated", "room"),
    [
        ([20], 800, 800),  # the client says it
        ([900], 30, 30),
        ([20], None, 256),  # the reserve is the floor
        ([900], None, 900),  # history says more
        ([400, 600], None, 600),  # with its spread
    ],
)
def test_the_room_for_the_answer_in_a_context_window(outputs: list[int], stated: int | None, room: int) -> None:
    jobs = [(4000, 1000, outputs[i % len(outputs)]) for i in range(20)]
    tokens, are_bytes = measured(*jobs).tokens_of("m", Job(body_bytes=4000, max_tokens=stated))
    assert not are_bytes
    assert tokens - 1000 == pytest.approx(room)
