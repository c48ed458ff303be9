"""llama.cpp's server, with one model or as a router of several.

* One model: `GET /health` answers 200 when the model is loaded, 503 while it loads. It always has its model.
* Router (started without a model): `GET /models` lists each model with `status.value` (`unloaded`, `loading`,
  `loaded`), `POST /models/load` and `POST /models/unload` take `{"model": name}` and answer before it is done. A load
  that failed is `unloaded` again with `status.failed` and `status.exit_code`.

Which of the two it is shows in the list: only a router's entries have a `status`.
"""

import asyncio
from collections.abc import Collection, Mapping
from typing import Final

import orjson

from turnout_router.backends.driver import Answer, LoadRejected, Probe, ask
from turnout_router.backends.openai import HEALTH, MODELS, look, model_ids
from turnout_router.upstream.interface import BodyTooLarge, Origin, UpstreamClient, UpstreamError

ROUTER_MODELS: Final = "/models"
LOOK_AGAIN_S: Final = 0.1
"""Between two looks at a model that loads: short beside any load, long beside one look."""
_LOOK_TIMEOUT_S: Final = 10.0


class LlamaCppDialect:
    """Speaks to llama.cpp's server."""

    def __init__(self, client: UpstreamClient) -> None:
        self._client = client

    async def probe(self, origin: Origin, names: Collection[str], timeout_s: float) -> Mapping[str, Probe]:
        """The server's health, and for a router which of its models are loaded."""
        health = await look(self._client, origin, (HEALTH,), timeout_s)
        if health.down:
            return dict.fromkeys(names, health)
        try:
            statuses = await self._statuses(origin, timeout_s)
        except (UpstreamError, BodyTooLarge, TimeoutError):
            statuses = {}  # it is healthy; what it lists is seen at the next look
        return {name: _probe_of(name, statuses) for name in names}

    async def listed(self, origin: Origin, names: Collection[str], timeout_s: float) -> Mapping[str, Probe] | None:
        """Which models a router has loaded; None = this server is no router. Raises what `ask` raises."""
        statuses = await self._statuses(origin, timeout_s)
        return {name: _probe_of(name, statuses) for name in names} if statuses else None

    async def models(self, origin: Origin, timeout_s: float) -> list[str]:
        """What it lists."""
        return model_ids(await ask(self._client, origin, "GET", MODELS, timeout_s=timeout_s))

    async def load(self, origin: Origin, name: str, timeout_s: float) -> bool:
        """Load a router's model; a server with one model has nothing to do."""
        status = (await self._statuses(origin, _LOOK_TIMEOUT_S)).get(name)
        if status is None or status.get("value") == "loaded":
            return False
        if status.get("value") != "loading":
            await self._order(origin, "/models/load", name)
        await self._until(origin, name, "loaded", timeout_s)
        return True

    async def unload(self, origin: Origin, name: str, timeout_s: float) -> None:
        """Unload a router's model."""
        status = (await self._statuses(origin, _LOOK_TIMEOUT_S)).get(name)
        if status is None or status.get("value") == "unloaded":
            return
        await self._order(origin, "/models/unload", name)
        await self._until(origin, name, "unloaded", timeout_s)

    async def _order(self, origin: Origin, target: str, name: str) -> None:
        body = orjson.dumps({"model": name})
        answer = await ask(self._client, origin, "POST", target, timeout_s=_LOOK_TIMEOUT_S, body=body)
        if not answer.good:
            raise LoadRejected(f"{target} of {name}: {answer.status} {_message(answer)}")

    async def _until(self, origin: Origin, name: str, wanted: str, timeout_s: float) -> None:
        try:
            async with asyncio.timeout(timeout_s):
                while await self._value(origin, name, wanted) != wanted:  # noqa: ASYNC110  a server cannot set an event
                    await asyncio.sleep(LOOK_AGAIN_S)
        except TimeoutError as error:
            raise LoadRejected(f"{name} is not {wanted} after {timeout_s:g} s") from error

    async def _value(self, origin: Origin, name: str, wanted: str) -> str:
        status = (await self._statuses(origin, _LOOK_TIMEOUT_S)).get(name, {})
        if wanted == "loaded" and status.get("failed"):
            raise LoadRejected(f"{name} failed to load, exit code {status.get('exit_code')}")
        return str(status.get("value", ""))

    async def _statuses(self, origin: Origin, timeout_s: float) -> dict[str, dict[str, object]]:
        """The status of each model of a router; empty for a server with one model."""
        answer = await ask(self._client, origin, "GET", ROUTER_MODELS, timeout_s=timeout_s)
        try:
            entries = orjson.loads(answer.body)["data"] if answer.good else []
            return {str(entry["id"]): entry["status"] for entry in entries if isinstance(entry.get("status"), dict)}
        except (ValueError, KeyError, TypeError, AttributeError):
            return {}


def _probe_of(name: str, statuses: Mapping[str, Mapping[str, object]]) -> Probe:
    if not statuses or not name:  # one model, or asked about the server itself
        return Probe()
    if name not in statuses:
        return Probe(down=f"the server does not list {name}")
    return Probe(loaded=statuses[name].get("value") == "loaded")


def _message(answer: Answer) -> str:
    try:
        return str(orjson.loads(answer.body)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return answer.body[:200].decode(errors="replace")
