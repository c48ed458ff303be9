"""Routers in this process, made of the same manifests and configurations as those of `turnout up`."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from staging.real import RealStage
from staging.wire import Wire
from turnout_api.resources import RouterNode
from turnout_cli.local import desired, plan, state
from turnout_router.backends.process import free_port
from turnout_router.router import Router

STOP_S = 0.0


class _Wired(plan.LocalPlacement):
    """Every router stands behind a wire."""

    wires: dict[str, Wire]

    def place(self, node: RouterNode) -> Any:
        url = f"http://{plan.HOST}:{self.wires[node.name].port}"
        return replace(super().place(node), url=url, slave_urls=(url,))


class InProcessStage(RealStage):
    """Router objects, real sockets."""

    beat_s = 0.08

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(folder)
        # the one duration that is no setting is scaled like all others
        monkeypatch.setattr("turnout_router.lending.lent.PATIENCE_S", 30 * self.beat_s)
        self._wires: dict[str, Wire] = {}
        self._routers: dict[str, Router] = {}
        self._generation = 0

    async def _raise(self, text: str) -> None:
        self._folder = state.StateFolder.open(self.folder / "state")
        self.down.callback(self._folder.close)
        self._credentials = self._folder.credentials()
        for name in ("master", *(node.name for node in self.setting.nodes)):
            wire = self._wires[name] = Wire()
            await wire.lay()
            self.down.push_async_callback(wire.cut)
        self._placement = _Wired(self._folder.folders, free_port(), free_port)
        self._placement.wires = self._wires
        plans = self._plan(text)
        for name in sorted(plans.nodes):
            await self._start_router(name, plans.nodes[name].config)
        self.down.push_async_callback(self._stop_routers)

    def _plan(self, text: str) -> plan.ClusterPlan:
        self._generation += 1
        found = desired.resolved(
            {"scene.yaml": text}, placement=self._placement, generation=self._generation, last_accepted={}, ledger={}
        )
        assert not found.errors, found.errors
        return plan.plan_of(found.resolution, self._generation)

    async def _start_router(self, name: str, config: Any) -> None:
        router = await asyncio.to_thread(Router, config)
        await router.start()
        self._routers[name] = router
        self._wires[name].target = router.port

    async def _stop_routers(self) -> None:
        for router in self._routers.values():
            await router.stop(drain_timeout_s=STOP_S)

    async def _apply(self, text: str) -> None:
        for name, node in self._plan(text).nodes.items():
            await self._routers[name].reconfigure(node.config)

    @property
    def gateway(self) -> str:
        return f"http://{plan.HOST}:{self._wires['master'].port}"

    @property
    def keys(self) -> dict[str, str]:
        return {"gatewayKey": self._credentials.gateway_key, "clusterToken": self._credentials.cluster_token}

    def url_of(self, node: str) -> str:
        return f"http://{plan.HOST}:{self._routers[node].port}"

    async def freeze(self, node: str) -> None:
        self._frozen.add(node)
        self._wires[node].freeze()

    async def thaw(self, node: str) -> None:
        self._frozen.discard(node)
        self._wires[node].thaw()

    async def crash(self, node: str) -> None:
        await self._wires[node].cut()
        await self._routers[node].stop(drain_timeout_s=STOP_S)

    async def replace_master(self) -> None:
        """The slaves hear nothing that the old one says while it ends."""
        old = self._routers["master"]
        listen = old.config.listen.model_copy(update={"port": 0, "health_port": 0})
        await self._start_router("master", old.config.model_copy(update={"listen": listen}))
        slaves = [wire for name, wire in self._wires.items() if name != "master"]
        await asyncio.gather(*(wire.cut() for wire in slaves))
        self._wires["master"].reset()
        await old.stop(drain_timeout_s=STOP_S)
        await asyncio.gather(*(wire.lay() for wire in slaves))
        await self._until_serving()
