"""What there should be and what there is → what to apply and what to delete. Pure.

Invariants: what is there as wanted is not written; an object of somebody else's is never touched; a claim, which holds
what cannot be had again, is never deleted.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from turnout_api.resources import API_VERSION, RouterNode
from turnout_operator.names import FIELD_MANAGER

Manifest = Mapping[str, Any]
_CLAIM = "PersistentVolumeClaim"
_SHARED = frozenset({"containers", "env", "imagePullSecrets", "ownerReferences", "ports", "volumeMounts", "volumes"})
"""Lists that server-side apply merges entry by entry."""


class ChildKey(NamedTuple):
    """An object of the namespace that is none of Turnout's kinds."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True)
class Changes:
    """First the deletions: a Service with an address takes the place of one without."""

    delete: tuple[ChildKey, ...] = ()
    apply: tuple[Manifest, ...] = ()
    taken: tuple[ChildKey, ...] = ()
    """Objects of somebody else's that have the name of one that the node needs."""


def key_of(manifest: Manifest) -> ChildKey:
    """Of one object."""
    return ChildKey(manifest["kind"], manifest["metadata"]["name"])


def changes(node: RouterNode, wanted: Iterable[Manifest], present: Mapping[ChildKey, Manifest]) -> Changes:
    """Of one node."""
    wanted = list(wanted)
    keys = {key_of(child) for child in wanted}
    taken = tuple(key for key in sorted(keys) if key in present and not is_ours(present[key]))
    old = {key for key, child in present.items() if _owner_of(child) == node.metadata.uid and key not in keys}
    delete = {key for key in old if key.kind != _CLAIM}
    apply = []
    for child in wanted:
        there = present.get(key_of(child))
        if key_of(child) in taken or (there is not None and _holds(there, child)):
            continue
        if there is not None and _cannot_become(there, child):
            delete.add(key_of(child))
        apply.append(child)
    return Changes(tuple(sorted(delete)), tuple(apply), taken)


def left_behind(uids: Collection[str], present: Mapping[ChildKey, Manifest]) -> list[ChildKey]:
    """What belongs to nodes that are being deleted while somebody else's finalizer holds them: the garbage collector waits for that."""
    found = (key for key, child in present.items() if _owner_of(child) in uids and key.kind != _CLAIM)
    return sorted(key for key in found if not present[key]["metadata"].get("deletionTimestamp"))


def is_ours(child: Manifest) -> bool:
    """Whether the operator made it: it is labelled so, or belongs to a RouterNode; either may have been edited away."""
    labels = child["metadata"].get("labels") or {}
    owner = _controller(child)
    of_a_node = (owner.get("apiVersion"), owner.get("kind")) == (API_VERSION, RouterNode.__name__)
    return of_a_node or bool(labels.get("app.kubernetes.io/managed-by") == FIELD_MANAGER)


def _owner_of(child: Manifest) -> str:
    return str(_controller(child).get("uid", ""))


def _controller(child: Manifest) -> Manifest:
    owners = child["metadata"].get("ownerReferences") or []
    return next((owner for owner in owners if owner.get("controller")), {})


def _cannot_become(there: Manifest, child: Manifest) -> bool:
    """A Service keeps its address, or that it has none, for life; a RoleBinding its role."""
    if child["kind"] == "RoleBinding":
        return bool(there["roleRef"] != child["roleRef"])
    if child["kind"] != "Service":
        return False
    addresses = [str(spec.get("clusterIP", "")) for spec in (there["spec"], child["spec"])]
    return (addresses[0] == "None") != (addresses[1] == "None")


def _holds(there: object, wanted: object, name: str = "") -> bool:
    """Whether all that is wanted is there; what else there is the API server or somebody else has added.

    A selector and most lists are one value: what was added to them was changed. Entries of `_SHARED` lists belong each to
    who applied it, and those of others could not be taken out; to try would be a write in every round. Amounts of resources are
    spelt anew by the API server (`1024Mi` is `1Gi`): the hash that stands beside them tells.
    """
    match wanted:
        case Mapping() if name == "selector":
            return bool(there == wanted)
        case Mapping():
            return isinstance(there, Mapping) and all(
                key == "resources" or (key in there and _holds(there[key], value, key)) for key, value in wanted.items()
            )
        case list() if name in _SHARED:
            return isinstance(there, list) and all(any(_holds(one, other) for one in there) for other in wanted)
        case list():
            pairs = zip(there, wanted, strict=True) if isinstance(there, list) and len(there) == len(wanted) else None
            return pairs is not None and all(_holds(one, other) for one, other in pairs)
        case _:
            return bool(there == wanted)
