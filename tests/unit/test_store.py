"""The database of a router."""

import sqlite3
from pathlib import Path

import pytest

from turnout_router.main import run
from turnout_router.runtime.interface import LoadRecord
from turnout_router.store import database
from turnout_router.store.database import MIGRATIONS, Store, StoreUnusable
from turnout_router.store.records import RequestRecord


async def test_rows_that_were_not_yet_written_are_written_by_close_and_read_after_a_restart(tmp_path: Path) -> None:
    store = Store.open(str(tmp_path))
    store.start()
    store.add_request(RequestRecord("r1", 1.0, "/v1/chat/completions", model="m", outcome="ok", status=200))
    store.add_load(LoadRecord("m", 1.0, 2.5, ("n", "o")))
    store.keep("config", "{}")
    await store.close()
    again = Store.open(str(tmp_path))
    assert again.query("SELECT request_id, model, outcome, status FROM requests") == [("r1", "m", "ok", 200)]
    assert again.query("SELECT model, seconds, displaced FROM loads") == [("m", 2.5, "n o")]
    assert (again.kept("config"), again.kept("nothing")) == ("{}", None)
    await again.close()


async def test_a_full_buffer_drops_rows_and_counts_them(monkeypatch: pytest.MonkeyPatch) -> None:
    dropped: list[str] = []
    monkeypatch.setattr(database, "MAX_BUFFERED_ROWS", 2)
    store = Store.open("", on_dropped=dropped.append)
    for number in range(3):
        store.add_request(RequestRecord(str(number), 0.0, "/"))
    assert dropped == ["requests"]
    assert [row[0] for row in store.query("SELECT request_id FROM requests")] == ["0", "1"]
    await store.close()


async def test_a_database_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "router.db")
    connection.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    connection.close()
    with pytest.raises(StoreUnusable, match="newer"):
        Store.open(str(tmp_path))


def test_a_router_whose_database_is_none_says_which_file_and_ends(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "router.db").write_text("no database" * 100)
    key = tmp_path / "key"
    key.write_text("0123456789abcdef")
    config = tmp_path / "router.yaml"
    config.write_text(
        f"cluster: {{role: Standalone, node_id: a, store_dir: {tmp_path}}}\naccess: {{gateway_key_file: {key}}}\n"
    )
    assert run(config) == 1
    assert str(tmp_path / "router.db") in capsys.readouterr().err


async def test_a_disk_that_cannot_be_written_for_a_while_costs_the_rows_of_that_while() -> None:
    dropped: list[str] = []
    store = Store.open("", on_dropped=dropped.append)
    store.query("PRAGMA query_only = ON")
    store.add_request(RequestRecord("lost", 0.0, "/"))
    store.add_load(LoadRecord("m", 1.0, 2.5, ()))
    store.query("PRAGMA query_only = OFF")
    store.add_request(RequestRecord("kept", 0.0, "/"))
    assert [row[0] for row in store.query("SELECT request_id FROM requests")] == ["kept"]
    assert sorted(dropped) == ["loads", "requests"]
    await store.close()


async def test_a_query_reads_rows_that_the_writer_took_and_has_not_written() -> None:
    store = Store.open("")
    store.add_request(RequestRecord("r1", 0.0, "/"))
    store._hand_over()
    store.add_request(RequestRecord("r2", 0.0, "/"))
    assert [row[0] for row in store.query("SELECT request_id FROM requests")] == ["r1", "r2"]
    await store.close()
