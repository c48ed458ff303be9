"""Configurations that arrive together are taken one after the other, and the newest is what stays."""

import asyncio
from typing import Any


async def test_the_newest_configuration_stays(cluster: Any) -> None:
    router = await cluster.router({"role": "Standalone", "node_id": "alone"}, cluster.master_port, "", ())
    configs = [router.config.model_copy(update={"generation": n}) for n in (3, 1, 5, 2, 4)]

    taken = await asyncio.gather(*(router.reconfigure(config) for config in configs))

    assert router.config.generation == 5
    assert taken == [True, False, True, False, False]
    assert '"generation":5' in router.store.query("SELECT value FROM kept WHERE name = 'config'")[0][0]
