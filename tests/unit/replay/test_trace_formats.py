"""Both public formats are read to the same rows, and what is no trace is refused with its line."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from turnout_cli.replaying.trace import TraceError, TraceRow, parse_trace, read_trace

DATA = Path(__file__).parents[2] / "data" / "traces"
WHOLE = Path(__file__).parents[4] / "shared" / "traces"


def test_azure_rows_have_seconds_since_the_first() -> None:
    rows = read_trace(DATA / "azure-2023-conversation-200.csv")
    assert len(rows) == 200
    assert rows[0] == TraceRow(0, 0.0, 374, 44)
    assert rows[1].at_s == pytest.approx(4.314579, abs=1e-6)


@pytest.fixture
def _in_berlin() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "Europe/Berlin")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("_in_berlin")
def test_a_night_when_clocks_change_is_no_gap() -> None:
    lines = ["TIMESTAMP,ContextTokens,GeneratedTokens", "2023-03-26 01:59:59,1,1", "2023-03-26 03:00:01,1,1"]
    assert [row.at_s for row in parse_trace(lines)] == [0.0, 3602.0]


def test_mooncake_rows_carry_their_shared_blocks() -> None:
    rows = read_trace(DATA / "mooncake-conversation-200.jsonl", limit=2)
    assert [row.blocks[:2] for row in rows] == [(0, 1), (0, 14)]
    assert (rows[0].prompt_tokens, rows[0].output_tokens) == (6758, 500)


def test_milliseconds_become_seconds_since_the_first_row() -> None:
    lines = [f'{{"timestamp": {at}, "input_length": 1, "output_length": 1}}' for at in (3000, 4500)]
    assert [row.at_s for row in parse_trace(lines)] == [0.0, 1.5]


def test_rows_out_of_order_are_sent_in_order_of_time_and_keep_their_number() -> None:
    lines = [f'{{"timestamp": {at}, "input_length": 1, "output_length": 1}}' for at in (2000, 1000)]
    assert [(row.number, row.at_s) for row in parse_trace(lines)] == [(1, 0.0), (0, 1.0)]


def test_a_limit_takes_the_first_rows_of_the_file() -> None:
    assert len(read_trace(DATA / "azure-2023-conversation-200.csv", limit=7)) == 7


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "line 1"),
        ("time,in,out\n1,2,3\n", "line 1"),
        ("TIMESTAMP,ContextTokens,GeneratedTokens\n", "no rows"),
        ("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46,1,1\nyesterday,1,1\n", "line 3"),
        ("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46,-1,1\n", "line 2"),
        ('{"timestamp": 0, "input_length": 5}\n', "line 1"),
        ('{"timestamp": 0, "input_length": 5, "output_length": 99000000}\n', "line 1"),
        ('{"timestamp": 0,\n', "line 1"),
    ],
)
def test_what_is_no_trace_is_refused_with_its_line(text: str, said: str) -> None:
    with pytest.raises(TraceError, match=said):
        parse_trace(text.splitlines(keepends=True))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"nowhere\.csv"):
        read_trace(tmp_path / "nowhere.csv")


@pytest.mark.parametrize(
    ("name", "count"), [("azure-2023-conversation.csv", 19_366), ("mooncake-conversation.jsonl", 12_031)]
)
def test_the_whole_traces_are_read(name: str, count: int) -> None:
    if not (WHOLE / name).exists():
        pytest.skip("../shared/traces is not here")
    assert len(read_trace(WHOLE / name)) == count
