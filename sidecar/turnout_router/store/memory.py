"""What this node measured, on its way into the database and back: each job and load with the configuration it ran under."""

import asyncio
import time
from collections.abc import Callable

from turnout_api.config import RouterConfig
from turnout_api.wire import Measured
from turnout_router.lending.measure import Sample
from turnout_router.runtime.interface import LoadRecord
from turnout_router.store.database import Store
from turnout_router.store.samples import load_of, record_of, sample_of, usable


class Memory:
    """Keeps and recalls."""

    def __init__(self, store: Store, config: Callable[[], RouterConfig]) -> None:
        """`config` is the configuration in force."""
        self._store = store
        self._config = config

    def sampled(self, sample: Sample) -> None:
        """A job was measured."""
        self._store.add_sample(record_of(sample, self._hash_of(sample.model)))

    def loaded(self, load: LoadRecord) -> None:
        """A load ended."""
        self._store.add_load(load, self._hash_of(load.model))

    async def recall(self, given: Measured) -> tuple[list[Sample], list[LoadRecord]]:
        """All that is known of this node's models as they are configured now, `given` to it or its own, oldest first."""
        config = self._config()
        since = time.time() - config.cluster.scheduling_sample_window
        own = await asyncio.to_thread(self._store.newest_measured, since)
        known = usable(own, given, {model.id: config.hash_of(model) for model in config.models.local})
        return [sample_of(job) for job in known.jobs], [load_of(load) for load in known.loads]

    def _hash_of(self, model_id: str) -> str:
        config = self._config()
        return next((config.hash_of(model) for model in config.models.local if model.id == model_id), "")
