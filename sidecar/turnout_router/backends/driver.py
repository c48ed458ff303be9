"""What the runtime needs from a backend, whatever its family.

Two halves. A *dialect* knows how to speak to one family of servers: is it ready, what does it list, load, unload. A
*driver* knows where the servers are: behind a URL, or in processes that it starts. Each driver has one dialect.

Errors:

    BackendError
    ├── FamilyNotSupported   no driver for this family yet
    ├── LoadRejected         the server refused to load or unload, with what it said
    └── StartFailed          a process did not become ready: exit code and its last lines
"""

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

from turnout_router.upstream.interface import Origin, UpstreamClient, UpstreamRequest

ANSWER_LIMIT_BYTES = 1024 * 1024
"""A list of models is far below this."""


class BackendError(Exception):
    """A backend did not do what it was asked. The message is for logs, status and admins, not for clients."""


class FamilyNotSupported(BackendError):
    """No driver for this family yet."""


class LoadRejected(BackendError):
    """The server refused to load or unload a model."""


class StartFailed(BackendError):
    """A process did not become ready."""


@dataclass(frozen=True, slots=True)
class Probe:
    """What a look at a backend saw of one model."""

    down: str = ""
    """Why it cannot serve; empty = it can."""
    loaded: bool | None = None
    """None = this server always has its models."""
    silent: bool = False
    """It did not answer in time. A busy server may be slow: one silence does not make it unhealthy."""


@dataclass(frozen=True, slots=True)
class Brought:
    """How a model was brought up."""

    measured: bool
    """Something was really loaded, so the time that it took means something."""
    starting_s: float = 0.0
    """How much of that time the next load will not take: its process had to be started first."""
    whole: bool = False
    """Its process was seen to have all its models at once: they come and go with it."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A small answer, read whole."""

    status: int
    body: bytes

    @property
    def good(self) -> bool:
        return 200 <= self.status < 300


class Dialect(Protocol):
    """How to speak to a family of servers. Raises BackendError or UpstreamError."""

    async def probe(self, origin: Origin, names: Collection[str], timeout_s: float) -> Mapping[str, Probe]:
        """One look; an entry for each name, and it raises nothing."""

    async def models(self, origin: Origin, timeout_s: float) -> list[str]:
        """Names that the server lists."""

    async def load(self, origin: Origin, name: str, timeout_s: float) -> bool:
        """Load a model and wait until it is there. False = there was nothing to do."""

    async def unload(self, origin: Origin, name: str, timeout_s: float) -> None:
        """Unload a model and wait until it is gone; does nothing where the server cannot."""


class Driver(Protocol):
    """The servers of one backend. Models go by the name that the backend has for them; "" is a shared process."""

    def origin(self, name: str) -> Origin:
        """Where a loaded model is served."""

    async def probe(self, names: Collection[str]) -> Mapping[str, Probe]:
        """Look at the models; a process that is not running has no entry. Raises nothing."""

    async def load(self, name: str) -> Brought:
        """Bring a model up; returns when it can serve. Raises BackendError."""

    async def unload(self, name: str) -> None:
        """Take a model down; returns when it is gone. Raises BackendError."""

    async def stop(self) -> None:
        """End everything that this driver started; returns when it is gone."""


async def ask(
    client: UpstreamClient, origin: Origin, method: str, target: str, *, timeout_s: float, body: bytes | None = None
) -> Answer:
    """One small exchange. Raises UpstreamError, BodyTooLarge, TimeoutError."""
    headers = ((b"Content-Type", b"application/json"),) if body is not None else ()
    # A deadline for the whole exchange: a server that trickles is no better than one that is silent.
    async with asyncio.timeout(timeout_s):
        response = await client.request(origin, UpstreamRequest(method, target, headers, body))
        try:
            return Answer(response.status, await response.read_all(ANSWER_LIMIT_BYTES))
        finally:
            response.close()


def no_answer(what: str, error: Exception) -> LoadRejected:
    """What a failed exchange means for whoever wanted something of the server."""
    return LoadRejected(f"{what}: {str(error) or 'no answer in time'}")
