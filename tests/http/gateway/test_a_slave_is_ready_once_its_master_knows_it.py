"""A rolling update ends an old pod when the new one is ready; the master must be able to send requests there by then."""

from typing import Any

import aiohttp

from turnout_router.backends.process import free_port


async def ready(router: Any) -> int:
    async with (
        aiohttp.ClientSession() as kubelet,
        kubelet.get(f"http://127.0.0.1:{router.health_port}/readyz") as answer,
    ):
        return answer.status


async def test_it_is_not_ready_before_the_master_knows_it_and_stays_ready_when_that_is_away(
    cluster: Any, until: Any
) -> None:
    backend = await cluster.backend(models=("m",))
    slave = await cluster.slave("a", backend.url, cluster.model("m"))
    assert await ready(slave) == 503

    master = await cluster.master()
    await until(lambda: slave.joined)
    assert await ready(slave) == 200

    await master.stop()
    assert await ready(slave) == 200


async def test_it_is_not_ready_while_it_serves_nothing(cluster: Any, until: Any) -> None:
    nobody = f"http://127.0.0.1:{free_port()}"
    slave = await cluster.slave("a", nobody, cluster.model("m"))
    await cluster.master(ready=False)

    await until(slave._slave.registered.is_set)

    assert await ready(slave) == 503
