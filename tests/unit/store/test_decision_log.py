"""The decision log and the samples in `router.db`: what is written, asked for, kept over restarts and forgotten."""

import asyncio
import sqlite3
import time
from dataclasses import asdict
from pathlib import Path

import pytest

from turnout_api.lending import DecisionRow, Outcome, RowKind
from turnout_api.vocabulary import Lane
from turnout_router.store import database
from turnout_router.store.database import MIGRATIONS, Store
from turnout_router.store.decisions import COLUMNS, Question
from turnout_router.store.records import Limits, SampleRecord
from turnout_router.version import VERSION

REQUESTS = {"requests_s": 86_400.0, "requests_rows": 1000}


def lent(request_id: str = "r", **fields: object) -> DecisionRow:
    return DecisionRow(RowKind.DISPATCH, "lent", Outcome.LENT, Lane.TEXT, request_id=request_id, **fields)


def sample(ts: float) -> SampleRecord:
    return SampleRecord("m", ts, 2.0, 10.0, 20.0, 0.0, 55, max_tokens=9, config_hash="c")


async def test_a_row_comes_back_as_it_was_with_its_time_and_the_version_that_wrote_it(tmp_path: Path) -> None:
    row = lent(held=3, owner_drain_s=1.5, busy_on_arrival=False, owner_node="o")
    before = time.time()
    store = Store.open(str(tmp_path))
    store.add_decision(row)
    await store.close()
    again = Store.open(str(tmp_path))
    (read,) = again.decisions(Question())
    assert read == row
    assert read.ts >= before
    assert read.version == VERSION
    await again.close()


async def test_the_table_has_one_column_for_each_word_of_the_log_and_no_other() -> None:
    store = Store.open("")
    assert [row[1] for row in store.query("PRAGMA table_info(offload_decisions)")] == list(COLUMNS)
    await store.close()


async def test_the_newest_rows_that_match_are_the_answer() -> None:
    store = Store.open("")
    for number in range(6):
        store.add_decision(lent(str(number), ts=100.0 + number, owner_node="ab"[number % 2]))
    asked = Question(since=101.0, until=105.0, equal=(("owner_node", "a"), ("kind", "dispatch")), limit=1)
    assert [row.request_id for row in store.decisions(asked)] == ["4"]
    with pytest.raises(ValueError, match="no filter"):
        store.decisions(Question(equal=(("1=1; --", "x"),)))
    await store.close()


async def test_rows_are_forgotten_about_when_a_short_retention_ends() -> None:
    store = Store.open("")
    store.limit(Limits(decisions_s=0.3, decisions_rows=100, samples_s=10, **REQUESTS))
    store.start()
    store.add_decision(lent(owner_node="o"))
    assert store.decisions(Question())
    async with asyncio.timeout(20):
        while store.decisions(Question()):  # noqa: ASYNC110 - the writer's next look has no event
            await asyncio.sleep(0.05)
    await store.close()


async def test_rows_that_are_too_old_or_too_many_are_forgotten_and_samples_with_their_window() -> None:
    store = Store.open("")
    now = time.time()
    store.add_decision(lent("old", ts=now - 100))
    for number in range(5):
        store.add_decision(lent(str(number), ts=now))
    for age in (20.0, 1.0):
        store.add_sample(sample(now - age))
    assert len(store.decisions(Question())) == 6
    store.limit(Limits(decisions_s=50, decisions_rows=3, samples_s=10, **REQUESTS))
    store.start()
    async with asyncio.timeout(10):
        while len(store.measured(0.0, 0.0).jobs) > 1:  # noqa: ASYNC110 - the writer's next look has no event
            await asyncio.sleep(0.01)
    assert [row.request_id for row in store.decisions(Question())] == ["4", "3", "2"]
    (left,) = store.measured(0.0, 0.0).jobs
    assert {**left.model_dump()} == asdict(sample(now - 1.0))
    await store.close()


async def test_rows_of_the_log_that_find_no_room_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    dropped: list[str] = []
    monkeypatch.setattr(database, "MAX_BUFFERED_ROWS", 1)
    store = Store.open("", on_dropped=dropped.append)
    store.add_decision(lent())
    store.add_decision(lent())
    assert dropped == ["offload_decisions"]
    await store.close()


async def test_a_database_of_the_version_before_the_log_is_brought_along(tmp_path: Path) -> None:
    old = sqlite3.connect(tmp_path / "router.db")
    old.executescript(f"BEGIN; {MIGRATIONS[0]} PRAGMA user_version = 1; COMMIT;")
    old.execute(
        "INSERT INTO requests VALUES ('r', 1.0, '/', '', 'm', 'n', 'm', 0, 200, 'ok', '', 0.0, NULL, 1.0, 1, 0, 0)"
    )
    old.commit()
    old.close()
    store = Store.open(str(tmp_path))
    assert store.query("SELECT request_id, lent_to FROM requests") == [("r", "")]
    assert store.decisions(Question()) == []
    await store.close()
