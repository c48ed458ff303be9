"""What a router in a pod sees of files: Secrets, its store, and the folders of models. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from turnout_api.instances import ADMINS_MOUNT, CLIENTS_MOUNT, MOUNTS, ROUTER_MOUNT, TOKEN_MOUNT
from turnout_api.resources import RouterNode
from turnout_operator.names import STORE_VOLUME, router_secret

Json = dict[str, Any]
OWN_VOLUMES = frozenset(f"turnout-{name}" for name in (ROUTER_MOUNT, TOKEN_MOUNT, CLIENTS_MOUNT, ADMINS_MOUNT))
"""Names of volumes with Secrets. `turnout-store` is not among them: a pod may bring its own."""


@dataclass(frozen=True, slots=True)
class Mount:
    """A volume, and where the router has it."""

    volume: Json
    """Empty = the pod has it already."""
    mount: Json


def secrets_of(node: RouterNode, *, optional: bool) -> list[Mount]:
    """One folder for each Secret that the node's router reads. `optional`: a pod starts before the Secret is there."""
    spec = node.spec
    wanted = {ROUTER_MOUNT: router_secret(node.name)}
    if spec.token_secret_ref:
        wanted[TOKEN_MOUNT] = spec.token_secret_ref.name
    if spec.clients:
        wanted[CLIENTS_MOUNT] = spec.clients.secret_ref.name
    if spec.admins:
        wanted[ADMINS_MOUNT] = spec.admins.secret_ref.name
    return [_secret(folder, name, optional=optional) for folder, name in wanted.items()]


def _secret(folder: str, name: str, *, optional: bool) -> Mount:
    volume = f"turnout-{folder}"
    source: Json = {"secretName": name} | ({"optional": True} if optional else {})
    return Mount(
        {"name": volume, "secret": source},
        {"name": volume, "mountPath": f"{MOUNTS}/{folder}", "readOnly": True},
    )


def store_of(folder: str, spec: Json) -> list[Mount]:
    """The folder of the store, if there is one: a volume `turnout-store` of the pod's own, else one that lives as long as the pod."""
    if not folder:
        return []
    given = any(volume.get("name") == STORE_VOLUME for volume in spec.get("volumes") or [])
    volume = {} if given else {"name": STORE_VOLUME, "emptyDir": {}}
    return [Mount(volume, {"name": STORE_VOLUME, "mountPath": folder})]


def shared_with_models(node: RouterNode, spec: Json) -> tuple[list[Json], list[str]]:
    """Mounts, read-only, of the folders in which the model servers have their files; and what is mounted nowhere."""
    mounts: list[Json] = []
    warnings = []
    for folder in dict.fromkeys([*node.spec.file_roots, *([node.spec.shared_dir] if node.spec.shared_dir else [])]):
        found = _covering(folder, spec)
        if found is None:
            warnings.append(
                f"{folder} of {node.name} is in no volume of the pod's containers: its router does not see it"
            )
        elif found["mountPath"] not in {node.spec.store_dir, *(mount["mountPath"] for mount in mounts)}:
            mounts.append(found)
    return mounts, warnings


def _covering(folder: str, spec: Json) -> Json | None:
    """The mount with the longest path that the folder is under."""
    covering = [mount for mount in _mounts(spec) if PurePosixPath(folder).is_relative_to(mount["mountPath"])]
    best = max(covering, key=lambda mount: len(mount["mountPath"]), default=None)
    if best is None:
        return None
    kept = ("name", "mountPath", "subPath")
    return {name: best[name] for name in kept if name in best} | {"readOnly": True}


def _mounts(spec: Json) -> Iterator[Json]:
    for container in spec["containers"]:
        # a subPathExpr is written in the container's own variables
        yield from (m for m in container.get("volumeMounts") or [] if m.get("mountPath") and "subPathExpr" not in m)
