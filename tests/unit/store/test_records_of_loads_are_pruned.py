"""Records of loads go when neither a prediction nor the report of lending reads them any more; one that fails over and over fills no disk."""

import asyncio
import time
from typing import Any

import pytest

from turnout_router.runtime.interface import LoadRecord
from turnout_router.store import database
from turnout_router.store.database import Store
from turnout_router.store.records import Limits

OTHERS: dict[str, Any] = {"decisions_rows": 1000, "requests_s": 1e9, "requests_rows": 1000}


def models(store: Store) -> list[object]:
    return [row[0] for row in store.query("SELECT model FROM loads ORDER BY rowid")]


@pytest.mark.parametrize(
    ("limits", "most", "left"),
    [
        (Limits(decisions_s=50.0, samples_s=10.0, **OTHERS), 1000, ["1", "2", "3"]),
        (Limits(decisions_s=10.0, samples_s=50.0, **OTHERS), 1000, ["1", "2", "3"]),
        (Limits(decisions_s=1e9, samples_s=1e9, **OTHERS), 2, ["2", "3"]),
    ],
    ids=["older than any decision", "older than any sample", "more than the most"],
)
async def test_the_oldest_loads_go(monkeypatch: pytest.MonkeyPatch, limits: Limits, most: int, left: list[str]) -> None:
    monkeypatch.setattr(database, "MAX_LOADS", most)
    store, now = Store.open(""), time.time()
    for number, age in enumerate((100.0, 20.0, 2.0, 1.0)):
        store.add_load(LoadRecord(str(number), now - age, 0.5, (), "refused"))
    assert models(store) == ["0", "1", "2", "3"]
    store.limit(limits)
    store.start()
    async with asyncio.timeout(60):
        while models(store) != left:  # noqa: ASYNC110 - the writer's next look has no event
            await asyncio.sleep(0.01)
    await store.close()
