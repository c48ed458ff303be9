"""The process of one router: `turnout router --config FILE`.

SIGTERM or Ctrl-C drains: nothing new is taken, what runs ends, then the process exits with 0. A second signal ends it at
once. Exit codes: 2 = a configuration that cannot be used, 1 = a port is taken, or the store cannot be used.
"""

import asyncio
import ctypes
import gc
import gzip
import logging
import os
import signal
import sys
import time
import zlib
from pathlib import Path

import uvloop
import yaml
from pydantic import ValidationError

from turnout_api.config import RouterConfig
from turnout_api.instances import PACKED_SUFFIX
from turnout_api.vocabulary import Policy
from turnout_router.backends.guard import PR_SET_PDEATHSIG
from turnout_router.instance import Instance
from turnout_router.invalid import what_is_wrong
from turnout_router.router import Router
from turnout_router.startable import RouterRefused
from turnout_router.store.database import StoreUnusable

GC_YOUNG_OBJECTS = 10_000
"""Objects that are new before the collector walks them; Python's 700 costs a few percent of the CPU of a busy router."""
_LOOK_FOR_CONFIG_S = 1.0
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml's is ten times as fast, which a configuration of thousands of rules needs; PyYAML may come without it."""

log = logging.getLogger(__name__)


def read_config(path: Path) -> RouterConfig:
    """The configuration in a YAML or JSON file, or, where that is missing, in `FILE.gz`.

    Raises RouterRefused that names the file and the keys.
    """
    try:
        document = yaml.load(_text_of(path), Loader=_LOADER)  # noqa: S506 - one of the two safe ones
        return RouterConfig.model_validate(_with_config_dir(document))
    except (OSError, EOFError, zlib.error, UnicodeDecodeError, yaml.YAMLError) as error:
        raise RouterRefused(f"{path} cannot be read: {error}") from error
    except ValidationError as error:
        wrong = "\n".join(f"  {line}" for line in what_is_wrong(error))
        raise RouterRefused(f"{path} is no router configuration:\n{wrong}") from error


def _text_of(path: Path) -> str:
    packed = _packed(path)
    if path.exists() or not packed.exists():
        return path.read_text(encoding="utf-8")
    return gzip.decompress(packed.read_bytes()).decode()


def _packed(path: Path) -> Path:
    """Where a configuration is that is too large for its Secret as it is."""
    return path.with_name(path.name + PACKED_SUFFIX)


def _with_config_dir(document: object) -> object:
    """The document with the model entries of `models.config_dir` in it: each YAML file of that folder is one."""
    models = document.get("models") if isinstance(document, dict) else None
    folder = models.get("config_dir") if isinstance(models, dict) else None
    if not isinstance(document, dict) or not isinstance(models, dict) or not isinstance(folder, str) or not folder:
        return document
    files = sorted(path for path in Path(folder).iterdir() if path.suffix in {".yaml", ".yml"})
    entries = [yaml.safe_load(path.read_text(encoding="utf-8")) for path in files]
    return {**document, "models": {**models, "local": [*models.get("local", []), *entries]}}


def run(
    config_file: Path,
    *,
    policy: Policy | None = None,
    drain_timeout_s: float = 600.0,
    linger_s: float = 0.0,
    with_parent: bool = False,
) -> int:
    """Run a router until it is told to stop.

    `linger_s`: serve on for so long before the drain. `with_parent`: die with the process that started this one.
    """
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s", stream=sys.stderr)
    if with_parent:
        die_with_parent()
    pod = Instance.of(os.environ)
    if pod.pod:
        _wait_for(config_file)
    try:
        router = Router(read_config(config_file), pod=pod, drain_timeout_s=drain_timeout_s, policy=policy)
        uvloop.run(_serve(router, linger_s))
    except RouterRefused as refusal:
        sys.stderr.write(f"turnout router: {refusal}\n")
        return 2
    except (StoreUnusable, OSError) as error:
        sys.stderr.write(f"turnout router: {error}\n")
        return 1
    return 0


def die_with_parent() -> None:
    """Have the kernel end this process when its parent ends, however that ends (Linux)."""
    parent = os.getppid()
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:  # it ended before we asked
        sys.exit(1)


def _wait_for(file: Path) -> None:
    """In a pod: its node may be declared after it, and the configuration is mounted as soon as it is there."""
    if _is_there(file):
        return
    log.info("waits for %s: is the pod's RouterNode declared and accepted?", file)
    # nothing runs yet; the first process of a container would not end by the default action
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    while not _is_there(file):
        time.sleep(_LOOK_FOR_CONFIG_S)


def _is_there(file: Path) -> bool:
    return file.exists() or _packed(file).exists()


async def _serve(router: Router, linger_s: float) -> None:
    told = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _on_signal, told)
    await router.start()
    # what is here now lives as long as the process: the collector need not walk it again
    gc.collect()
    gc.freeze()
    # a request leaves nothing behind but what reference counts free, so the young generation may grow before it is walked
    gc.set_threshold(GC_YOUNG_OBJECTS, 20, 20)
    await told.wait()
    await router.leave(linger_s)
    await router.stop()


def _on_signal(told: asyncio.Event) -> None:
    if told.is_set():
        os._exit(1)
    told.set()
