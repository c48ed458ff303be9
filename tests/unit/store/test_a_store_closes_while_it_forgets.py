"""A store that is closed while a thread of its own still deletes old rows waits for that statement.

SQLite's connection is not to be closed under a statement that runs in another thread: the interpreter crashes.
"""

import asyncio
import logging
import sqlite3
import threading
import time
from pathlib import Path

import pytest

from turnout_router.store.database import Store
from turnout_router.store.records import Limits, RequestRecord

LIMITS = Limits(decisions_s=1e9, decisions_rows=1000, samples_s=1e9, requests_s=1.0, requests_rows=1000)


async def test_close_waits_for_the_statement_that_runs(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = Store.open(str(tmp_path))
    store.add_request(RequestRecord("old", time.time() - 100.0, "/v1/chat/completions"))
    began, may_go_on = threading.Event(), threading.Event()

    def hold(operation: int, table: str | None, *_: object) -> int:
        if (operation, table) == (sqlite3.SQLITE_DELETE, "requests"):  # asked while the statement is prepared
            began.set()
            may_go_on.wait(10.0)
        return 0

    store._connection.set_authorizer(hold)
    store.limit(LIMITS)
    store.start()
    assert await asyncio.to_thread(began.wait, 10.0)
    closing = asyncio.create_task(store.close())
    ended, _ = await asyncio.wait({closing}, timeout=0.1)
    assert not ended
    may_go_on.set()
    async with asyncio.timeout(10.0):
        await closing
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]
    reopened = Store.open(str(tmp_path))
    assert reopened.query("SELECT count(*) FROM requests") == [(0,)]
    await reopened.close()
