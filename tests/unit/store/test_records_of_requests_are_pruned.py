"""Records of requests go when they are too old or too many; a database does not grow for ever."""

import asyncio
import time
from typing import Any

import pytest

from turnout_router.store.database import Store
from turnout_router.store.records import Limits, RequestRecord

OTHERS: dict[str, Any] = {"decisions_s": 1e9, "decisions_rows": 1000, "samples_s": 1e9}


def ids(store: Store) -> list[object]:
    return [row[0] for row in store.query("SELECT request_id FROM requests ORDER BY rowid")]


@pytest.mark.parametrize(
    ("limits", "left"),
    [
        (Limits(requests_s=50.0, requests_rows=1000, **OTHERS), ["1", "2", "3"]),
        (Limits(requests_s=1e9, requests_rows=2, **OTHERS), ["2", "3"]),
    ],
)
async def test_the_oldest_go(limits: Limits, left: list[str]) -> None:
    store, now = Store.open(""), time.time()
    for number, age in enumerate((100.0, 3.0, 2.0, 1.0)):
        store.add_request(RequestRecord(str(number), now - age, "/v1/chat/completions"))
    assert ids(store) == ["0", "1", "2", "3"]
    store.limit(limits)
    store.start()
    async with asyncio.timeout(10):
        while ids(store) != left:  # noqa: ASYNC110 - the writer's next look has no event
            await asyncio.sleep(0.01)
    await store.close()
