"""One started process that may load and unload several models by itself, as llama.cpp's router mode does.

Problem: a command without `${MODEL}` does not tell whether its process switches models or has them all at once, and what
a load costs and displaces is something else in either case.

Idea: the process is started by a `ProcessDriver` (under the name ""), and once it is ready its list says which of the two
it is. It is a router: each model is loaded and unloaded as behind a URL; the process stays up between two models, since
without a model it holds no GPU, and goes with `stop`. It is none: `Brought.whole` says so, and from then on the process is
what is loaded and unloaded.

Invariants: a model is *held* from the end of its load, or since it was seen loaded, until it was told to go; the death of the process is told for each
held model, once. Whoever does not obey in time is stopped with all that it holds: it is our own process, and what asks for
the GPU must not wait for ever.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping
from typing import Final

from turnout_api.config import BackendConfig
from turnout_router.backends.driver import Brought, Dialect, LoadRejected, Probe, StartFailed, no_answer
from turnout_router.backends.llama_cpp import LlamaCppDialect
from turnout_router.backends.process import ProcessDriver
from turnout_router.upstream.interface import BodyTooLarge, Origin, UpstreamError

log = logging.getLogger(__name__)

PROCESS: Final = ""
"""The process itself, where models have names."""
BROKEN: Final = (UpstreamError, BodyTooLarge, TimeoutError)


class SwitchingDriver:
    """The process of one backend. Models go by the name that it has for them, "" is the process with all of them."""

    def __init__(
        self,
        config: BackendConfig,
        dialect: Dialect,
        router: LlamaCppDialect,
        *,
        probe_timeout_s: float,
        log_dir: str,
        on_lost: Callable[[str, str], None],
    ) -> None:
        """`dialect` says whether the process is ready, `router` speaks to one that switches."""
        self._config = config
        self._router = router
        self._probe_timeout_s = probe_timeout_s
        self._on_lost = on_lost
        self._process = ProcessDriver(
            config, dialect, probe_timeout_s=probe_timeout_s, log_dir=log_dir, on_lost=self._lost
        )
        self._held: set[str] = set()

    def origin(self, name: str) -> Origin:
        """The same for each model. Raises KeyError when the process does not run."""
        del name
        return self._process.origin(PROCESS)

    async def probe(self, names: Collection[str]) -> Mapping[str, Probe]:
        """Look at the process. Of a model that is not held only a good look counts: it is started when it is needed."""
        probe = (await self._process.probe([PROCESS])).get(PROCESS)
        if probe is None:
            return {}
        probes = dict.fromkeys(names, probe)
        if not probe.down and set(names) != {PROCESS}:
            try:
                listed = await self._router.listed(self.origin(PROCESS), names, self._probe_timeout_s)
            except (*BROKEN, KeyError):  # it is healthy, or has just died; what it lists is seen at the next look
                return {}
            probes = dict(listed or {})
            self._held |= {name for name, seen in probes.items() if seen.loaded}
        return {name: seen for name, seen in probes.items() if name in self._held or not seen.down}

    async def load(self, name: str) -> Brought:
        """Start the process where it does not run, then load the model. Raises BackendError."""
        began = asyncio.get_running_loop().time()
        started = await self._process.start(PROCESS)
        starting_s = asyncio.get_running_loop().time() - began
        try:
            whole = name == PROCESS or await self._is_whole()
            loaded = not whole and await self._router.load(self.origin(name), name, self._config.start_timeout)
            self.origin(name)  # it may have died since it answered
        except (*BROKEN, KeyError) as error:
            if not (end := await self._process.end_of(PROCESS)):
                await self._process.unload(PROCESS)
                raise no_answer(f"loading {name}", error) from error
            if started:
                raise StartFailed(end) from error
            return await self.load(name)  # it had died before it was asked
        except LoadRejected:
            await self._process.unload(PROCESS)  # whatever it has by now, nobody asked for it
            raise
        self._held.add(PROCESS if whole else name)
        if whole:
            return Brought(started, whole=True)
        return Brought(loaded or started, starting_s if loaded and started else 0.0)

    async def unload(self, name: str) -> None:
        """Unload the model, or stop the process that has all of them, or does not obey. Raises BackendError."""
        whole = name == PROCESS or PROCESS in self._held
        self._held.discard(name)
        if not whole:
            try:
                await self._router.unload(self.origin(name), name, self._config.stop_timeout)
            except (*BROKEN, KeyError, LoadRejected) as error:
                log.warning("%s does not unload %s and is stopped: %s", self._config.name, name, error)
            else:
                return
        await self._process.unload(PROCESS)
        self._lost(PROCESS, f"its process was stopped for {name}")

    async def stop(self) -> None:
        """Stop the process."""
        self._held.clear()
        await self._process.stop()

    async def _is_whole(self) -> bool:
        return await self._router.listed(self.origin(PROCESS), (), self._probe_timeout_s) is None

    def _lost(self, _: str, reason: str) -> None:
        held, self._held = self._held, set()
        for name in held:
            self._on_lost(name, reason)
