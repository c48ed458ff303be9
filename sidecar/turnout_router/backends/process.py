"""Servers that the router starts, watches and stops.

A command with `${MODEL}` is one process for each model, one without serves all models of its backend (`switching.py` where
that process loads and unloads them). `${PORT}` is a
port that was free a moment before; a process that dies because somebody else took it is started again on another.

`${PORT}` is drawn below the range from which the kernel gives ports to outgoing connections: a server may load for
minutes before it listens, and a port of that range would be used by somebody in the meantime.
"""

import asyncio
import random
import re
import socket
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from turnout_api.config import BackendConfig
from turnout_router.backends.child import Child
from turnout_router.backends.driver import BackendError, Brought, Dialect, Probe, StartFailed
from turnout_router.upstream.interface import Origin

PORTS: Final = range(20_000, 32_000)
PORT_ATTEMPTS: Final = 3
DRAWS: Final = 100
FIRST_LOOK_S: Final = 0.05
LOOKS_AT_MOST_EVERY_S: Final = 0.5
DYING_S: Final = 1.0
HOST: Final = "127.0.0.1"


@dataclass(slots=True)
class _Server:
    """A process that is up or on its way."""

    child: Child
    origin: Origin
    ready: bool = False
    """Its death is news from now on; before, `load` tells."""


class ProcessDriver:
    """The processes of one backend, by the name of their model ("" = the one that serves all)."""

    def __init__(
        self,
        config: BackendConfig,
        dialect: Dialect,
        *,
        probe_timeout_s: float,
        log_dir: str,
        on_lost: Callable[[str, str], None],
    ) -> None:
        self._config = config
        self._dialect = dialect
        self._probe_timeout_s = probe_timeout_s
        self._log_dir = Path(log_dir, "logs") if log_dir else None
        self._on_lost = on_lost
        self._servers: dict[str, _Server] = {}
        self._watchers: set[asyncio.Task[None]] = set()

    def origin(self, name: str) -> Origin:
        """Where the model is served. Raises KeyError when it is not loaded."""
        return self._servers[name].origin

    async def probe(self, names: Collection[str]) -> Mapping[str, Probe]:
        """Look at those that are ready."""
        up = {name: self._servers[name] for name in names if name in self._servers and self._servers[name].ready}
        probes = await asyncio.gather(*(self._look(name, server) for name, server in up.items()))
        return {name: probe for name, probe in zip(up, probes, strict=True) if probe is not None}

    async def load(self, name: str) -> Brought:
        """Start the process and wait until it is ready. Raises StartFailed."""
        return Brought(await self.start(name))

    async def start(self, name: str) -> bool:
        """Start the process and wait until it is ready; False = it runs. Raises StartFailed."""
        if name in self._servers:
            return False
        for _ in range(PORT_ATTEMPTS - 1):
            port = free_port()
            try:
                await self._start(name, port)
            except StartFailed:
                if is_free(port):
                    raise
                continue  # somebody else took the port in the meantime
            return True
        await self._start(name, free_port())
        return True

    async def unload(self, name: str) -> None:
        """Stop the process."""
        server = self._servers.get(name)
        if server is not None:
            await server.child.stop(self._config.stop_timeout)
            self._servers.pop(name, None)

    async def end_of(self, name: str) -> str:
        """How a process ended that does not answer, once `on_lost` was told; empty = it lives on."""
        server = self._servers.get(name)
        if server is None:
            return "it has ended"
        if not await server.child.ended(DYING_S):
            return ""
        self._bury(name, server)
        return server.child.epitaph()

    async def stop(self) -> None:
        """Stop all of them."""
        await asyncio.gather(*(self.unload(name) for name in list(self._servers)))
        await asyncio.gather(*self._watchers)

    async def _look(self, name: str, server: _Server) -> Probe | None:
        probe = (await self._dialect.probe(server.origin, [name], self._probe_timeout_s))[name]
        # Its sockets close a moment before its end is seen. A dead process is not down: it is lost, and starts again.
        if probe.down and not probe.silent and await server.child.ended(DYING_S):
            return None
        return probe

    async def _start(self, name: str, port: int) -> None:
        values = {"PORT": str(port), "MODEL": name}
        command = [substitute(part, values) for part in self._config.command]
        env = {key: substitute(value, values) for key, value in self._config.env.items()}
        child = await Child.start(command, env, self._log_file(name))
        server = self._servers[name] = _Server(child, Origin(HOST, port))
        try:
            async with asyncio.timeout(self._config.start_timeout):
                await self._until_ready(name, server)
        except TimeoutError as error:
            await self._give_up(name, child)
            said = child.last_words() or "it said nothing"
            raise StartFailed(f"not ready after {self._config.start_timeout:g} s: {said}") from error
        except BaseException:  # cancelled, or it died: either way nothing is left behind
            await self._give_up(name, child)
            raise
        server.ready = True
        watcher = asyncio.get_running_loop().create_task(self._watch(name, server))
        self._watchers.add(watcher)
        watcher.add_done_callback(self._watchers.discard)

    async def _until_ready(self, name: str, server: _Server) -> None:
        pause = FIRST_LOOK_S
        while not await server.child.ended(pause):
            probes = await self._dialect.probe(server.origin, [name], self._probe_timeout_s)
            if not probes[name].down and server.child.alive:
                return
            pause = min(LOOKS_AT_MOST_EVERY_S, pause * 1.5)
        raise StartFailed(server.child.epitaph())

    async def _give_up(self, name: str, child: Child) -> None:
        await child.stop(self._config.stop_timeout)
        self._servers.pop(name, None)

    async def _watch(self, name: str, server: _Server) -> None:
        await server.child.ended()
        self._bury(name, server)

    def _bury(self, name: str, server: _Server) -> None:
        """It has ended; tell that once, unless it was told to end."""
        if not server.child.stopping and self._servers.get(name) is server:
            del self._servers[name]
            self._on_lost(name, server.child.epitaph())

    def _log_file(self, name: str) -> Path | None:
        if self._log_dir is None:
            return None
        parts = [self._config.name, name] if name else [self._config.name]
        return self._log_dir / (re.sub(r"[^A-Za-z0-9._-]", "_", "-".join(parts)) + ".log")


def substitute(template: str, values: Mapping[str, str]) -> str:
    """`${NAME}` → value, for the names given; anything else in braces stays as it is."""
    for name, value in values.items():
        template = template.replace(f"${{{name}}}", value)
    return template


def free_port() -> int:
    """A port on which nobody listens now. Raises BackendError."""
    for _ in range(DRAWS):
        port = random.choice(PORTS)  # noqa: S311  no secret
        if is_free(port):
            return port
    raise BackendError(f"no free port among {DRAWS} draws from {PORTS.start}-{PORTS.stop}")


def is_free(port: int) -> bool:
    """Whether a server could listen there."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True
