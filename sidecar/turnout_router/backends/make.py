"""The driver of a backend: its family says how to speak to it, `url` or `command` says where it is."""

from collections.abc import Callable

from turnout_api.config import BackendConfig
from turnout_api.vocabulary import SUPPORTED_FAMILIES, SWITCHING_FAMILIES, Family
from turnout_router.backends.driver import Dialect, Driver, FamilyNotSupported
from turnout_router.backends.llama_cpp import LlamaCppDialect
from turnout_router.backends.openai import OpenAIDialect
from turnout_router.backends.process import ProcessDriver
from turnout_router.backends.switching import SwitchingDriver
from turnout_router.backends.url import UrlDriver
from turnout_router.upstream.interface import UpstreamClient


def driver_for(
    config: BackendConfig,
    client: UpstreamClient,
    *,
    probe_timeout_s: float,
    log_dir: str,
    on_lost: Callable[[str, str], None],
) -> Driver:
    """A driver. Raises FamilyNotSupported, and ValueError for a URL that is none.

    `on_lost(name, reason)` is called when a process that had become ready has died by itself.
    """
    dialect = dialect_for(config, client)
    if config.one_process and config.family in SWITCHING_FAMILIES:
        router = LlamaCppDialect(client)
        return SwitchingDriver(
            config, dialect, router, probe_timeout_s=probe_timeout_s, log_dir=log_dir, on_lost=on_lost
        )
    if config.command:
        return ProcessDriver(config, dialect, probe_timeout_s=probe_timeout_s, log_dir=log_dir, on_lost=on_lost)
    return UrlDriver(config, dialect, probe_timeout_s=probe_timeout_s)


def dialect_for(config: BackendConfig, client: UpstreamClient) -> Dialect:
    """How to speak to a backend of this family. Raises FamilyNotSupported."""
    if config.family not in SUPPORTED_FAMILIES:
        known = ", ".join(sorted(SUPPORTED_FAMILIES))
        raise FamilyNotSupported(f"backend {config.name}: family {config.family} has no driver yet; there is {known}")
    if config.family is Family.LLAMA_CPP:
        return LlamaCppDialect(client)
    return OpenAIDialect(client)
