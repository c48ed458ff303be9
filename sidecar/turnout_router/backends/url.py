"""A backend that somebody else runs: reached by its URL, never started or stopped."""

from collections.abc import Collection, Mapping

from turnout_api.config import BackendConfig
from turnout_router.backends.driver import Brought, Dialect, Probe, no_answer
from turnout_router.upstream.interface import BodyTooLarge, Origin, UpstreamError


class UrlDriver:
    """One server, for all models of its backend."""

    def __init__(self, config: BackendConfig, dialect: Dialect, *, probe_timeout_s: float) -> None:
        self._config = config
        self._dialect = dialect
        self._probe_timeout_s = probe_timeout_s
        self._origin = Origin.of(config.url)

    def origin(self, name: str) -> Origin:
        """The same for each model."""
        del name
        return self._origin

    async def probe(self, names: Collection[str]) -> Mapping[str, Probe]:
        """One look at the server."""
        return await self._dialect.probe(self._origin, names, self._probe_timeout_s)

    async def load(self, name: str) -> Brought:
        """Ask the server, where its family knows how."""
        try:
            return Brought(await self._dialect.load(self._origin, name, self._config.start_timeout))
        except (UpstreamError, BodyTooLarge, TimeoutError) as error:
            raise no_answer(f"loading {name}", error) from error

    async def unload(self, name: str) -> None:
        """Ask the server, where its family knows how."""
        try:
            await self._dialect.unload(self._origin, name, self._config.stop_timeout)
        except (UpstreamError, BodyTooLarge, TimeoutError) as error:
            raise no_answer(f"unloading {name}", error) from error

    async def stop(self) -> None:
        """Nothing was started."""
