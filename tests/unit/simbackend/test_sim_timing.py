"""The time model of the stand-in."""

import pytest

from turnout_router.simbackend.timing import Speed, audio_tokens, output_tokens, tokens_of

SPEED = Speed(prefill_tokens_per_second=100, decode_tokens_per_second=10, image_seconds=4)
INSTANT = Speed(prefill_tokens_per_second=0, decode_tokens_per_second=0, image_seconds=0)


@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("ß" * 4, 2)])
def test_four_bytes_are_a_token(text, tokens):
    assert tokens_of(text) == tokens


@pytest.mark.parametrize(
    ("elapsed", "due"), [(0, 0), (0.99, 0), (1.0, 0), (1.1, 1), (1.19, 1), (1.2, 2), (1.5, 5), (99, 5)]
)
def test_tokens_come_one_by_one_after_the_prompt(elapsed, due):
    assert SPEED.due(elapsed, prompt_tokens=100, output_tokens=5) == due


def test_a_rate_of_nothing_takes_no_time():
    assert INSTANT.due(0, prompt_tokens=10_000, output_tokens=5) == 5
    assert INSTANT.prefill_s(10_000) == INSTANT.decode_s(10_000) == 0


@pytest.mark.parametrize("tokens", range(1, 200))
def test_a_token_is_due_at_the_very_time_it_is_waited_for(tokens):
    speed = Speed(prefill_tokens_per_second=37, decode_tokens_per_second=13, image_seconds=0)
    elapsed = speed.prefill_s(11) + speed.decode_s(tokens)
    assert speed.due(elapsed, prompt_tokens=11, output_tokens=1000) == tokens


@pytest.mark.parametrize(
    ("width", "height", "steps", "count", "seconds"),
    [(1024, 1024, 20, 1, 4), (512, 512, 20, 1, 1), (1024, 1024, 10, 1, 2), (1024, 1024, 20, 3, 12)],
)
def test_pictures_cost_by_pixels_steps_and_count(width, height, steps, count, seconds):
    assert SPEED.image_s(width, height, steps, count) == pytest.approx(seconds)


def test_sound_costs_by_its_length():
    assert audio_tokens(32_000) == 50
    assert audio_tokens(1) == 1


@pytest.mark.parametrize(
    ("asked", "prompt", "expected"),
    [
        (None, 10, (30, False)),  # ends by itself
        (-1, 10, (30, True)),  # llama.cpp's "no limit"
        (50, 10, (50, True)),  # exactly what was asked for
        (0, 10, (0, True)),
        (500, 10, (90, True)),  # cut by the context
        (None, 80, (20, True)),
        (5, 200, (0, True)),
    ],
)
def test_an_answer_is_as_long_as_asked_and_as_fits(asked, prompt, expected):
    assert output_tokens(asked, natural=30, prompt_tokens=prompt, context_window=100) == expected
