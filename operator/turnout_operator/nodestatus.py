"""What is said about a RouterNode beside its verdict: its routers, whether they run its configuration, its models. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from turnout_api.resolve import Verdict
from turnout_api.vocabulary import Capability
from turnout_operator import conditions, deliver
from turnout_operator.bounded import Entry, fitting
from turnout_operator.conditions import KEEP, PROGRAMMED, READY, Fact, Unchanged, Why
from turnout_operator.names import NODE_LABEL
from turnout_operator.picture import NodeFacts, Picture, availability, share, some
from turnout_operator.readings import ModelSaid, Said, Unread

_IMAGE = frozenset({Capability.IMAGE.value, Capability.VIDEO.value})
_MAX_REASON, _MAX_URL, _MAX_NAME, _MAX_VERSION = 256, 512, 253, 64
"""Characters, as the schema has them."""
_NOT_ASKED = "it has no tokenSecretRef, and so the operator cannot ask its router"


def facts(verdict: Verdict, picture: Picture) -> Iterator[Fact | Unchanged]:
    """Programmed and Ready, of a node that has a configuration."""
    config, known = picture.resolution.configs.get(verdict.name), picture.nodes.get(verdict.name)
    if known is None and config is not None:
        yield conditions.too_large(deliver.size_of(deliver.content_of(config)), deliver.MAX_CONFIG_BYTES)
        yield Unchanged(READY)
    elif known is not None:
        yield _programmed(verdict.name, known, picture.issued[verdict.name].generation)
        yield _ready_in_cluster(verdict.name, known, picture) if known.in_cluster else _ready_outside(known, picture)


def fields(verdict: Verdict, picture: Picture, current: Mapping[str, Any]) -> dict[str, object]:
    """Beside the conditions. `current`: the status as it is, which goes on where nothing new is known."""
    issued, known = picture.issued.get(verdict.name), picture.nodes.get(verdict.name)
    found: dict[str, object] = {"configGeneration": issued.generation if issued else 0}
    if known is None:
        return found
    instances = list(_instances(known, picture, verdict.name, current))
    found |= _listed("instances", instances) | {"serving": share(bool(i["healthy"]) for i in instances)}
    builds = sorted({str(instance["version"]) for instance in instances if instance["version"]})
    return found | {"builds": ", ".join(builds)[:_MAX_REASON]} | _models(verdict.name, picture)


# Conditions


def _programmed(node: str, known: NodeFacts, generation: int) -> Fact | Unchanged:
    """The first thing that keeps a router from running the newest configuration."""
    if known.taken:
        names = ", ".join(known.taken)
        return conditions.programmed(Why.NAME_TAKEN, f"{names}: there already, and not the operator's: rename it")
    if known.refused:
        return conditions.programmed(Why.REFUSED, f"the API server does not take {some(known.refused)}")
    bare = [router.name for router in known.routers if not router.has_router]
    if bare:
        return conditions.programmed(
            Why.INJECTION_MISSING,
            f"no sidecar of {node} is in {some(bare)}, labelled {NODE_LABEL}: {node}. Make them anew where the webhook is "
            f"on, or put it into their manifests with `turnout inject`",
        )
    if known.in_cluster and not known.reached:
        return conditions.programmed(Why.NO_PODS, "none of its routers runs yet")
    return _told(known, generation)


def _told(known: NodeFacts, generation: int) -> Fact | Unchanged:
    """Of a node that has routers: whether all were told the newest configuration, and run it."""
    if not known.tellable:
        return Fact(PROGRAMMED, "Unknown", Why.NOT_ASKED, _NOT_ASKED)
    if any(r is None or r.generation < generation for r in known.reached.values()):
        return Unchanged(PROGRAMMED)
    failed = [f"{url}: {r.trouble}" for url, r in known.reached.items() if r is not None and r.trouble]
    if failed:
        return conditions.programmed(
            Why.NOT_TOLD, f"{some(failed)}. It is told again, and reads its Secret when it starts"
        )
    behind = {url: runs for url in known.reached if (runs := known.runs(url)) is not None and runs < generation}
    if behind:
        older = some(f"{url} runs configuration {runs}" for url, runs in behind.items())
        return conditions.programmed(Why.OLD_CONFIGURATION, f"{older} of {generation}: it is told again")
    return conditions.programmed(Why.PROGRAMMED)


def _ready_in_cluster(node: str, known: NodeFacts, picture: Picture) -> Fact:
    ended = f"; {some(known.ended)}" if known.ended else ""
    if not known.routers:
        return conditions.ready(Why.NO_PODS, f"it has no pods{ended}")
    ready = [router for router in known.routers if router.ready and router.has_router]
    if not ready:
        return conditions.ready(Why.PODS_NOT_READY, f"not ready: {some(r.name for r in known.routers)}{ended}")
    seen = picture.instances(node)
    ill = {r.name: seen[r.node_id].reason for r in ready if r.node_id in seen and not seen[r.node_id].healthy}
    if len(ill) == len(ready):
        why = some(f"{name}: {reason}" for name, reason in ill.items())
        return conditions.ready(Why.UNHEALTHY, f"its master cannot use it: {why}{ended}")
    return conditions.ready(Why.READY, ended.removeprefix("; "))


def _ready_outside(known: NodeFacts, picture: Picture) -> Fact | Unchanged:
    """Of a router that somebody else runs: whether it answers, and its master can use it."""
    for url, reading in known.readings.items():
        match reading:
            case Unread(trouble):
                return conditions.ready(Why.UNREACHABLE, f"{url}: {trouble}")
            case Said(node_id=node_id):
                seen = picture.instances(node_id).get(node_id)
                if seen is not None and not seen.healthy:
                    return conditions.ready(Why.UNHEALTHY, f"its master cannot use it: {seen.reason}")
                return conditions.ready(Why.READY)
    return Unchanged(READY) if known.tellable else Fact(READY, "Unknown", Why.NOT_ASKED, _NOT_ASKED)


# Lists


def _instances(known: NodeFacts, picture: Picture, node: str, current: Mapping[str, Any]) -> Iterator[Entry]:
    """Of pods in the order of their names; of a router elsewhere the one."""
    before = {str(instance.get("nodeID")): instance for instance in current.get("instances") or []}
    found = _of_pods(known, picture, node) if known.in_cluster else _elsewhere(known, picture, node, before)
    for one in found:
        reading, runs, was = known.readings.get(one.url), known.runs(one.url), before.get(one.node_id, {})
        version = reading.version if isinstance(reading, Said) else str(was.get("version", ""))
        yield {
            "nodeID": one.node_id[:_MAX_NAME],
            "url": one.url[:_MAX_URL],
            "healthy": not one.ill,
            "reason": one.why[:_MAX_REASON],
            "version": version[:_MAX_VERSION],
            "configGeneration": was.get("configGeneration", 0) if runs is None else runs,
        }


@dataclass(frozen=True, slots=True)
class _Instance:
    url: str
    node_id: str
    ill: bool
    why: str
    """Why it is ill, or what else is to be said of it."""


def _of_pods(known: NodeFacts, picture: Picture, node: str) -> Iterator[_Instance]:
    seen = picture.instances(node)
    for pod in known.routers:
        why = "" if pod.ready else "the pod is not ready"
        said = seen.get(pod.node_id)
        if not pod.has_router:
            why = "the pod has no sidecar of this node"
        elif not why and said is not None:
            why = said.reason
        ill = not pod.ready or not pod.has_router or (said is not None and not said.healthy)
        yield _Instance(pod.url, pod.node_id, ill, why)


def _elsewhere(
    known: NodeFacts, picture: Picture, node: str, before: Mapping[str, Mapping[str, Any]]
) -> Iterator[_Instance]:
    """A router that somebody else runs; one that was not asked since the operator started stays what it was."""
    for url in known.reached:
        was: Mapping[str, Any] = next((i for i in before.values() if i.get("url") == url[:_MAX_URL]), {})
        match known.readings.get(url):
            case Said() as reading:
                said = picture.instances(node).get(reading.node_id)
                why = said.reason if said else "it drains" if reading.draining else ""
                yield _Instance(url, reading.node_id, said is not None and not said.healthy, why)
            case Unread(trouble):
                yield _Instance(url, str(was.get("nodeID") or node), ill=True, why=trouble)
            case _ if was:
                yield _Instance(url, str(was["nodeID"]), not was.get("healthy"), str(was.get("reason", "")))
            case _:
                yield _Instance(url, node, ill=True, why="it was not asked yet")


def _models(node: str, picture: Picture) -> dict[str, object]:
    """Each model with its name for clients, and which lanes serve; those that no instance has brought yet among them."""
    said = picture.models(node)
    config = picture.resolution.configs.get(node)
    if said is None or config is None:
        return dict.fromkeys(("models", "modelsLeftOut", "modelsServing", "lanes"), KEEP)
    declared = {model.id: model.public_name for model in config.models.local}
    entries = [
        _model(name, said.get(name, []), declared.get(name, "")) for name in sorted(said.keys() | declared.keys())
    ]
    serving = share(bool(entry["available"]) for entry in entries)
    return _listed("models", entries) | {"modelsServing": serving, "lanes": _lanes(said)}


def _model(name: str, said: list[ModelSaid], declared: str) -> Entry:
    found = availability(said)
    return {
        "id": name[:_MAX_NAME],
        "publicID": (said[0].public_id if said else declared)[:256],
        "available": found.yes,
        "reason": found.reason[:_MAX_REASON],
    }


def _lanes(said: Mapping[str, list[ModelSaid]]) -> str:
    """`Text, Image`: those in which a model serves."""
    ready = [set(one.capabilities) for models in said.values() for one in models if one.available]
    lanes = [("Text", any(found - _IMAGE for found in ready)), ("Image", any(found & _IMAGE for found in ready))]
    return ", ".join(name for name, serves in lanes if serves)


def _listed(name: str, entries: list[Entry]) -> dict[str, object]:
    """The list as far as it fits, and how many are left out."""
    kept = fitting(entries)
    if len(kept) < len(entries):
        good = "healthy" if name == "instances" else "available"
        kept = fitting(sorted(entries, key=lambda entry: bool(entry[good])))  # what is ill must not be what is left out
        order = {id(entry): at for at, entry in enumerate(entries)}
        kept.sort(key=lambda entry: order[id(entry)])
    return {name: kept, f"{name}LeftOut": len(entries) - len(kept)}
