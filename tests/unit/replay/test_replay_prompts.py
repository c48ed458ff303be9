"""Prompts have the sizes of the trace, share what its blocks share, and repeat with the seed."""

import pytest

from turnout_cli.replaying.prompts import prompt, streams
from turnout_cli.replaying.trace import TraceRow


def row(number: int = 0, tokens: int = 1000, blocks: tuple[int, ...] = ()) -> TraceRow:
    return TraceRow(number, 0.0, tokens, 10, blocks)


@pytest.mark.parametrize("blocks", [(), (1, 2)])
@pytest.mark.parametrize("tokens", [1, 700, 1024, 1500])
@pytest.mark.parametrize("scale", [1.0, 0.1, 1.5])
def test_a_prompt_has_one_word_of_three_letters_for_each_token(
    tokens: int, scale: float, blocks: tuple[int, ...]
) -> None:
    words = prompt(row(tokens=tokens, blocks=blocks), seed=1, scale=scale).split(" ")
    assert len(words) == max(1, round(tokens * scale))
    assert {len(word) for word in words} == {3}


@pytest.mark.parametrize("scale", [1.0, 0.05])
def test_rows_with_the_same_first_blocks_begin_with_the_same_text(scale: float) -> None:
    one = prompt(row(0, 1500, (7, 8, 9)), seed=1, scale=scale)
    other = prompt(row(1, 1500, (7, 8, 10)), seed=1, scale=scale)
    shared = 2 * round(512 * scale) * 4
    assert one[:shared] == other[:shared]
    assert one != other


def test_rows_without_blocks_share_nothing() -> None:
    assert prompt(row(0), seed=1)[:40] != prompt(row(1), seed=1)[:40]


def test_the_seed_decides_texts_and_streams() -> None:
    assert prompt(row(), seed=1) == prompt(row(), seed=1) != prompt(row(), seed=2)
    drawn = [[streams(row(number), seed=seed, share=0.5) for number in range(64)] for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]


@pytest.mark.parametrize(("share", "count"), [(0.0, 0), (1.0, 50)])
def test_the_share_of_streams_holds_at_its_ends(share: float, count: int) -> None:
    assert sum(streams(row(number), seed=3, share=share) for number in range(50)) == count
