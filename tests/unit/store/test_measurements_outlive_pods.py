"""What a node goes by: its own measurements, and what its master kept from before."""

import time
from typing import Any

from turnout_api.wire import Measured, MeasuredJob, MeasuredLoad
from turnout_router.store.database import Store
from turnout_router.store.records import SampleRecord
from turnout_router.store.samples import usable

HASHES = {"m": "now"}


def job(ts: float, **fields: Any) -> MeasuredJob:
    return MeasuredJob(**({"model": "m", "config_hash": "now", "ts": ts, "seconds": 1.0} | fields))


def load(ts: float, **fields: Any) -> MeasuredLoad:
    return MeasuredLoad(**({"model": "m", "config_hash": "now", "ts": ts, "seconds": 9.0} | fields))


def test_what_was_given_comes_before_ones_own_and_nothing_comes_twice() -> None:
    own = Measured(jobs=[job(30.0), job(40.0)], loads=[load(25.0)])
    given = Measured(jobs=[job(10.0), job(30.0), job(40.0)], loads=[load(5.0), load(25.0)])
    known = usable(own, given, HASHES)
    assert [each.ts for each in known.jobs] == [10.0, 30.0, 40.0]
    assert [each.ts for each in known.loads] == [5.0, 25.0]


def test_a_model_that_was_configured_otherwise_or_is_gone_is_not_known() -> None:
    given = Measured(jobs=[job(1.0, config_hash="before"), job(2.0, model="gone"), job(3.0)])
    own = Measured(loads=[load(1.0, config_hash="before"), load(2.0, config_hash="")])
    known = usable(own, given, HASHES)
    assert [each.ts for each in known.jobs] == [3.0]
    assert [each.ts for each in known.loads] == [2.0]


async def test_a_master_keeps_each_instance_once_and_gives_back_all_of_a_node() -> None:
    store = Store.open("")
    store.keep_measured("gpu", "gpu.1", Measured(jobs=[job(1.0), job(5.0)], loads=[load(2.0)]))
    store.keep_measured("gpu", "gpu.2", Measured(jobs=[job(3.0)]))
    store.keep_measured("other", "other.1", Measured(jobs=[job(4.0)]))
    assert store.kept_until("gpu.1") == (5.0, 2.0)
    assert store.kept_until("nobody") == (0.0, 0.0)
    kept = store.kept_measured("gpu", 2.0)
    assert [each.ts for each in kept.jobs] == [3.0, 5.0]
    assert kept.loads == [load(2.0)]
    await store.close()


async def test_a_node_tells_what_is_new_and_reads_its_newest_at_its_start() -> None:
    store = Store.open("")
    now = time.time()
    for age in (3.0, 2.0, 1.0):
        store.add_sample(SampleRecord("m", now - age, 1.0, 1.0, 1.0, 0.0, 5, config_hash="now"))
    assert len(store.measured(now - 2.5, 0.0).jobs) == 2
    assert [each.ts for each in store.newest_measured(now - 2.5).jobs] == [now - 2.0, now - 1.0]
    await store.close()
