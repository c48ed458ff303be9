"""Writes `docs/configuration.md`, the reference of the router's configuration file, from its types.

`python -m turnout_api.configdoc FILE` writes, with `--check` it tells whether the file is current.
"""

import argparse
import dataclasses
import sys
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from types import UnionType
from typing import Literal, Union, get_args, get_origin

from pydantic import BaseModel, WithJsonSchema
from pydantic.fields import FieldInfo

from turnout_api.config import ClusterConfig, RouterConfig
from turnout_api.durations import format_duration
from turnout_api.resources.settings import Settings
from turnout_api.strategy import ALL_LINKED, STRATEGIES, StrategySet

INTRODUCTION = """# The router's configuration file

Written by `make crds` from `crds/turnout_api/config.py`. Edit the types, not this page.

`turnout router --config FILE` reads one file, YAML or JSON. `turnout up` and the operator write it from manifests; a person
may write it by hand. An unknown key is refused by its name. Durations are `500ms`, `1.5s`, `3m` or `24h` (a bare number
counts as seconds). Secrets never stand in the file: it names files, each with one line.

```yaml
cluster: {role: Standalone, node_id: one, store_dir: /var/lib/turnout}
access: {gateway_key_file: /etc/turnout/gateway-key}
listen: {host: 0.0.0.0, port: 8900}
models:
  local:
  - {id: cc11-ff, public_id: cc11, backend: llama, backend_model: cc11-q4, context_window: 8192}
backend:
  backends:
  - {name: llama, family: LlamaCpp, url: "http://127.0.0.1:8081"}
```

| option of `turnout router` | meaning |
|---|---|
| `--policy` | How one model's endpoints share its requests; wins over `endpoint_policy`, also of configurations that come later. |
| `--drain-timeout` | Seconds that SIGTERM and Ctrl-C wait for requests that run [600]. |
| `--linger` | Seconds that it serves on after SIGTERM, before it drains [0]: clients that still have its address are answered meanwhile. |
| `--with-parent` | Stop when the process that started this one ends. |

Exit codes: 0 = it was stopped, 1 = its database or its port cannot be used, 2 = it cannot run with this configuration; the message says why.
"""

CLIENTS = """
## The file of clients

`access.clients_file` is YAML: API keys by their SHA-256 (`printf %s KEY | sha256sum`), never in the clear.
It and the gateway key are read again when they change; a file that cannot be used changes nothing, and the log says why.

```yaml
clients:
- {name: ann, keySha256: 5e88489…, roles: [research], models: [cc11]}   # models: left out = all
- {name: bob, keySha256: 8b2c86e…, requestsPerMinute: 60, tokensPerMinute: 100000, budgetMicrosPerDay: 5000000}
```

[admin.md](admin.md#allowances-of-api-keys) says how the limits count.

## The file of people

`access.admins_file` is YAML: who may sign in ([admin.md](admin.md)), and the hash of the password: argon2id (as `argon2-cffi` writes it) or
scrypt (`$scrypt$ln=15,r=8,p=1$SALT$HASH`, as passlib does). It is read again when it changes, like the file of clients.

```yaml
users:
- {name: ann, passwordHash: "$argon2id$v=19$m=65536,t=3,p=4$…"}
```
"""


STRATEGY = """
## What `offload_strategy` decides about

Each of these is the strategy's where it is not given; one that is given by hand wins over the set.
`Classic` are the plain rules of lending, `Adaptive` has remedies for where those were measured to lose.

"""

_WORDS: dict[tuple[str, object], str] = {
    ("offload_max_helpers", ALL_LINKED): "all that are linked",
    ("offload_borrowed_beyond_recall", None): "the backend depth",
    ("offload_restore_delay", None): "the larger of `1.5s` and the load time",
    ("offload_switch_hazard", 1.0): "`1` (off)",
}
"""Values of a strategy that are no plain values."""


def render() -> str:
    """The page."""
    sections = [INTRODUCTION]
    sections += [_section(path, model) for path, model in _walk("", RouterConfig)]
    return "\n".join(sections) + STRATEGY + _strategies() + CLIENTS


def _strategies() -> str:
    rows = [
        " | ".join([f"| `{field.name}`", *(_chosen(chosen, field.name) for chosen in STRATEGIES.values())]) + " |"
        for field in dataclasses.fields(StrategySet)
    ]
    titles = ["key", *(f"`{strategy}`" for strategy in STRATEGIES)]
    return "\n".join([f"| {' | '.join(titles)} |", "|---" * len(titles) + "|", *rows]) + "\n"


def _chosen(chosen: StrategySet, name: str) -> str:
    value = getattr(chosen, name)
    if (name, value) in _WORDS:
        return _WORDS[name, value]
    return _plain(format_duration(value) if _is_duration(ClusterConfig.model_fields[name]) else value)


def _plain(value: object) -> str:
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _walk(path: str, model: type[BaseModel]) -> Iterator[tuple[str, type[BaseModel]]]:
    yield path, model
    for name, field in model.model_fields.items():
        inner, is_list = _inner_model(field.annotation)
        if inner:
            yield from _walk(f"{path}.{name}".lstrip(".") + ("[]" if is_list else ""), inner)


def _inner_model(annotation: object) -> tuple[type[BaseModel] | None, bool]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation, False
    for argument in get_args(annotation):
        inner, _ = _inner_model(argument)
        if inner:
            return inner, get_origin(annotation) is list
    return None, False


def _section(path: str, model: type[BaseModel]) -> str:
    title = f"## `{path}`" if path else "## Top level"
    rows = [_row(name, field) for name, field in model.model_fields.items()]
    said = (model.__doc__ or "").strip()
    lines = [title, "", *([said, ""] if said else []), "| key | type | default | meaning |", "|---|---|---|---|", *rows]
    return "\n".join(lines) + "\n"


def _row(name: str, field: FieldInfo) -> str:
    shared = Settings.model_fields.get(name)
    meaning = (shared.description if shared else field.description) or ""
    return f"| `{name}` | {_type(field)} | {_default(name, field)} | {' '.join(meaning.split())} |"


def _type(field: FieldInfo) -> str:
    if _is_duration(field):
        return "duration"
    bounds = "".join(
        f" {sign} {getattr(limit, attribute)}"
        for limit in _metadata(field)
        for attribute, sign in (("ge", "≥"), ("le", "≤"))
        if getattr(limit, attribute, None) is not None
    )
    return _named(field.annotation) + bounds


def _named(annotation: object) -> str:
    arguments = [argument for argument in get_args(annotation) if argument is not type(None)]
    origin = get_origin(annotation)
    if origin is list:
        return f"list of {_named(arguments[0])}"
    if origin is dict:
        return f"map of {_named(arguments[0])} to {_named(arguments[1])}"
    if origin in {UnionType, Union}:
        return " or ".join(_named(argument) for argument in arguments)
    if arguments:  # Literal, Annotated
        return ", ".join(f"`{argument}`" for argument in arguments) if origin is Literal else _named(arguments[0])
    return _named_class(annotation)


def _named_class(annotation: object) -> str:
    name = str(getattr(annotation, "__name__", annotation))
    if isinstance(annotation, type) and issubclass(annotation, StrEnum):
        return ", ".join(f"`{word}`" for word in annotation)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return "section, below"
    return {"str": "text", "int": "integer", "float": "number", "bool": "true or false", "object": "any"}.get(
        name, name
    )


def _default(name: str, field: FieldInfo) -> str:
    if field.is_required():
        return "**required**"
    default = field.default
    if name in _BY_STRATEGY:
        return "see [strategy](#what-offload_strategy-decides-about)"
    if isinstance(default, BaseModel) or (not default and not isinstance(default, bool | int | float)):
        return ""
    if _is_duration(field):
        return f"`{format_duration(default)}`"
    if isinstance(default, list):
        return f"`[{', '.join(map(str, default))}]`"
    return _plain(default)


_BY_STRATEGY = frozenset(field.name for field in dataclasses.fields(StrategySet))


def _is_duration(field: FieldInfo) -> bool:
    return any(isinstance(note, WithJsonSchema) for note in _metadata(field))


def _metadata(field: FieldInfo) -> list[object]:
    """What `Annotated` says of the field, also where it may be left out."""
    inner = [argument for argument in get_args(field.annotation) if hasattr(argument, "__metadata__")]
    flat: list[object] = []
    for note in [*field.metadata, *(note for argument in inner for note in argument.__metadata__)]:
        flat += note.metadata if isinstance(note, FieldInfo) else [note]
    return flat


def main() -> int:
    """Write or check."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("file", type=Path)
    arguments.add_argument("--check", action="store_true")
    given = arguments.parse_args()
    page = render()
    if not given.check:
        given.file.write_text(page, encoding="utf-8")
    elif not given.file.exists() or given.file.read_text(encoding="utf-8") != page:
        sys.stderr.write(f"{given.file} is not current: run `make crds`\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
