"""One namespace as it is → everything that must be written. Pure: it takes the time, and writes nothing itself.

Invariants:

- What is planned twice is planned alike, and what is there already is not planned.
- A generation grows when, and only when, a router's configuration changed. It is at least the time in seconds, so that it
  grows even past one that nobody remembers (a namespace that was restored, a Secret that was deleted).
- The order of writing is state, Secrets, other objects, then routers are told, then statuses: a state that says more than was delivered is
  delivered by the next round, no router ever runs what the state does not know, and none starts before its Secret is there.
"""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from turnout_api.config import RouterConfig
from turnout_api.resolve import Declared, Key, Resolution, declare, resolve
from turnout_api.resources import API_VERSION, RouterNode
from turnout_api.vocabulary import Role
from turnout_operator import deliver, statuses
from turnout_operator.children import ChildKey, RouterPods, changes, is_ours, key_of, left_behind, wanted
from turnout_operator.children.wanted import Store
from turnout_operator.injection import Nodes
from turnout_operator.known import Known
from turnout_operator.names import STORE_CLASS_ANNOTATION, STORE_SIZE_ANNOTATION, router_object, router_secret
from turnout_operator.picture import NodeFacts, Picture, Reached
from turnout_operator.placement import InCluster
from turnout_operator.readings import Reading
from turnout_operator.routers import RouterPod, ended_of, refused_pods, routers_of
from turnout_operator.state import Issued, Kept, Texts, same
from turnout_operator.statuses import Manifest, StatusWrite


@dataclass(frozen=True, slots=True)
class Observed:
    """What a round read of its namespace."""

    objects: Sequence[Manifest]
    """Of all kinds, as the API server gives them, with `kind`."""
    kept: Kept
    secrets: Mapping[str, Manifest]
    """By name of RouterNode: the Secrets of routers that are there."""
    previous_tokens: AbstractSet[tuple[str, str]] = frozenset()
    """Of `token_references`, those whose Secret has `KEY-previous` too."""
    children: Mapping[ChildKey, Manifest] = field(default_factory=dict)
    """All Services, and of other kinds of children those that the operator made."""
    pods: Sequence[Manifest] = ()
    """Those labelled with a node."""
    reached: Mapping[str, Reached] = field(default_factory=dict)
    """By URL: what came of telling routers, as far as this process told any."""
    readings: Mapping[str, Reading] = field(default_factory=dict)
    """By URL: what routers say, as far as this process asked any."""


@dataclass(frozen=True, slots=True)
class Told:
    """A router that can be told its configuration at once."""

    node: RouterNode
    config: RouterConfig
    url: str
    behind: bool = False
    """It said last that it runs an older configuration."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of writing objects and telling routers."""

    reached: Mapping[str, Reached] = field(default_factory=dict)
    """By URL."""
    readings: Mapping[str, Reading] = field(default_factory=dict)
    """By URL: what routers say."""
    refused: Mapping[ChildKey, str] = field(default_factory=dict)
    """Objects that routers need and the API server did not take, and what it said."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """What statuses follow from, but for what comes of the plan."""

    manifests: Sequence[Manifest]
    dying: Sequence[Manifest]
    """Deleted, and held by a finalizer of somebody else's."""
    resolution: Resolution
    issued: Mapping[str, Issued]
    nodes: Mapping[str, NodeFacts]
    children: Mapping[str, Sequence[Manifest]]
    """Objects that each node needs."""
    now: datetime

    def facts(self, outcome: Outcome) -> dict[str, NodeFacts]:
        """Of each node, with these."""
        return {
            name: replace(
                node,
                refused=tuple(_refused(name, self.children[name], outcome.refused)),
                reached={url: outcome.reached.get(url) for url in node.reached},
                readings={url: outcome.readings[url] for url in node.reached if url in outcome.readings},
            )
            for name, node in self.nodes.items()
        }

    def statuses(self, outcome: Outcome, resting: AbstractSet[Key] = frozenset()) -> tuple[StatusWrite, ...]:
        """Those that say something else than the objects do. `resting`: objects of whose status only what was declared is
        written: it changed too often (`damping`).
        """
        picture = Picture(self.resolution, self.issued, self.facts(outcome))
        said = statuses.statuses(self.manifests, picture, self.now, resting)
        return (*said, *statuses.of_dying(self.dying, self.now))


@dataclass(frozen=True, slots=True)
class Plan:
    """What a round writes, in this order; then routers are told, and then statuses are written."""

    state: Kept | None
    """None = as remembered."""
    secrets: tuple[Mapping[str, Any], ...]
    delete: tuple[ChildKey, ...]
    apply: tuple[Manifest, ...]
    outlook: Outlook
    """For statuses, which say what came of telling."""
    nudges: tuple[Told, ...]
    """Every router that can be reached; who was told already is for the caller to know."""
    known: Known
    """For admission."""


def token_references(objects: Iterable[Manifest], kept: Kept) -> set[tuple[str, str]]:
    """(Secret, key) of every cluster token that a declared or last accepted node names."""
    specs = [manifest.get("spec") or {} for manifest in objects if manifest["kind"] == "RouterNode"]
    declared = [spec["tokenSecretRef"] for spec in specs if "tokenSecretRef" in spec]
    nodes = [node for node in kept.last_accepted.values() if isinstance(node, RouterNode)]
    accepted = [node.spec.token_secret_ref for node in nodes if node.spec.token_secret_ref]
    return {(ref["name"], ref["key"]) for ref in declared} | {(ref.name, ref.key) for ref in accepted}


def master_names(objects: Iterable[Manifest], kept: Kept) -> list[str]:
    """Nodes that need a Deployment, and what stands beside it."""
    specs = {m["metadata"]["name"]: m.get("spec") or {} for m in objects if m["kind"] == "RouterNode"}
    declared = {n for n, spec in specs.items() if spec.get("role") != Role.SLAVE.value and not spec.get("publicURL")}
    accepted = [node for node in kept.last_accepted.values() if isinstance(node, RouterNode)]
    return sorted(declared | {n.name for n in accepted if n.spec.role is not Role.SLAVE and not n.spec.public_url})


@dataclass(frozen=True, slots=True)
class _Judged:
    """A judgement, and what it followed from."""

    declared: Sequence[Declared]
    placement: InCluster
    kept: Kept
    resolution: Resolution

    def holds(self, declared: Sequence[Declared], placement: InCluster, kept: Kept) -> bool:
        """Whether it would be the same of these."""
        if self.kept is not kept or self.placement != placement or len(self.declared) != len(declared):
            return False
        return all(one is other for one, other in zip(self.declared, declared, strict=True))


@dataclass(slots=True)
class Memory:
    """What a round would work out again as the last one did. Without it a plan is the same, and takes longer."""

    declared: dict[tuple[object, ...], Declared] = field(default_factory=dict)
    """By what changes with the spec."""
    contents: dict[str, deliver.Content] = field(default_factory=dict)
    """By name of RouterNode."""
    texts: tuple[Texts, Texts] = field(default_factory=lambda: (Texts(), Texts()))
    """Of what is to be kept, and of what was."""
    judged: _Judged | None = None


def plan(
    observed: Observed,
    now: datetime,
    pods: RouterPods = RouterPods(),  # noqa: B008 - frozen
    memory: Memory | None = None,
) -> Plan:
    """Decide on everything. `pods`: how routers are run. `memory`: of the namespace; it is brought up to date."""
    memory = memory or Memory()
    manifests, declared, resolution = _judged(observed, memory, admin_writes=bool(pods.admin_role))
    memory.contents = {
        name: deliver.content_of(config, memory.contents.get(name)) for name, config in resolution.configs.items()
    }
    contents = {name: content for name, content in memory.contents.items() if not deliver.is_too_large(content)}
    issued = _issued(contents, observed.kept.routers, declared, int(now.timestamp()))
    configs = {
        name: resolution.configs[name].model_copy(update={"generation": issued[name].generation}) for name in contents
    }
    kept = Kept(last_accepted=resolution.last_accepted, ledger=resolution.ledger, routers=issued)
    metadata = {m["metadata"]["name"]: m["metadata"] for m in manifests if m["kind"] == "RouterNode"}
    nodes = {name: _node(resolution, name, metadata[name]) for name in configs}
    stores = {m["metadata"]["name"]: _store(m) for m in manifests if m["kind"] == "RouterNode"}
    routers, ended = routers_of(observed.pods), ended_of(observed.pods)
    children = {name: wanted(node, configs[name], pods, stores[name]) for name, node in nodes.items()}
    changed = {name: changes(node, children[name], observed.children) for name, node in nodes.items()}
    urls = {name: _urls(node, routers.get(name, [])) for name, node in nodes.items()}
    facts = {
        name: NodeFacts(
            in_cluster=not node.spec.public_url,
            tellable=node.spec.token_secret_ref is not None,
            taken=tuple(map(str, (*_taken_secret(name, observed.secrets), *changed[name].taken))),
            routers=tuple(routers.get(name, [])),
            ended=(
                *ended.get(name, []),
                *refused_pods(observed.children.get(ChildKey("Deployment", router_object(name)))),
            ),
            reached=dict.fromkeys(urls[name]),
        )
        for name, node in nodes.items()
    }
    dying = [manifest for manifest in observed.objects if _is_dying(manifest)]
    outlook = Outlook(manifests, dying, resolution, issued, facts, children, now)
    facts = outlook.facts(Outcome(observed.reached, observed.readings))
    return Plan(
        state=None if same(kept, observed.kept, memory.texts) else kept,
        secrets=tuple(_secrets(nodes, contents, issued, observed.secrets)),
        delete=(
            *left_behind({m["metadata"]["uid"] for m in dying}, observed.children),
            *(key for change in changed.values() for key in change.delete),
        ),
        apply=tuple(child for change in changed.values() for child in change.apply),
        outlook=outlook,
        nudges=tuple(
            # a Standalone without a token has no cluster paths
            Told(node, configs[name], url, behind=(facts[name].runs(url) or 0) < issued[name].generation)
            for name, node in nodes.items()
            if node.spec.token_secret_ref is not None
            for url in urls[name]
        ),
        known=Known(Nodes.of(resolution), declared, resolution),
    )


def known_of(observed: Observed) -> Known:
    """What admission judges by, and nothing else."""
    _, declared, resolution = _judged(observed, Memory())
    return Known(Nodes.of(resolution), declared, resolution)


def _judged(
    observed: Observed, memory: Memory, *, admin_writes: bool = False
) -> tuple[list[Manifest], list[Declared], Resolution]:
    manifests = _in_order_of_creation(observed.objects)
    declared = {
        (key := _spec_of(manifest)): memory.declared.get(key) or declare(_bare(manifest)) for manifest in manifests
    }
    memory.declared = declared
    stores = frozenset(m["metadata"]["name"] for m in manifests if m["kind"] == "RouterNode" and _store(m))
    objects = list(declared.values())
    placement = InCluster(observed.previous_tokens, admin_writes=admin_writes, stores=stores)
    if memory.judged is None or not memory.judged.holds(objects, placement, observed.kept):
        resolution = resolve(
            objects,
            placement=placement,
            generation=0,
            last_accepted=observed.kept.last_accepted,
            ledger=observed.kept.ledger,
        )
        memory.judged = _Judged(objects, placement, observed.kept, resolution)
    return manifests, objects, memory.judged.resolution


def _urls(node: RouterNode, routers: Sequence[RouterPod]) -> list[str]:
    """Of the node's routers that can be called."""
    if node.spec.public_url:
        return [node.spec.public_url.rstrip("/")]
    return [router.url for router in routers if router.has_router and router.url]


def _store(manifest: Manifest) -> Store | None:
    annotations = manifest["metadata"].get("annotations") or {}
    size = annotations.get(STORE_SIZE_ANNOTATION)
    return Store(size, annotations.get(STORE_CLASS_ANNOTATION, "")) if size else None


def _in_order_of_creation(objects: Iterable[Manifest]) -> list[Manifest]:
    """The living ones. An object that is being deleted is gone, whoever still holds a finalizer on it."""
    living = [manifest for manifest in objects if not _is_dying(manifest)]
    return sorted(living, key=lambda m: (m["metadata"]["creationTimestamp"], m["kind"], m["metadata"]["name"]))


def _is_dying(manifest: Manifest) -> bool:
    return bool(manifest["metadata"].get("deletionTimestamp"))


def _spec_of(manifest: Manifest) -> tuple[object, ...]:
    """What is another one when the spec is: a generation grows with it, and an object that is made anew has another uid."""
    metadata = manifest["metadata"]
    return manifest["kind"], metadata["name"], metadata["uid"], metadata["generation"]


def _bare(manifest: Manifest) -> dict[str, Any]:
    """The parts that are judged. Metadata is the API server's: a field that a newer one adds is no mistake."""
    wanted = ("name", "namespace", "generation", "uid")
    metadata = {name: manifest["metadata"][name] for name in wanted if name in manifest["metadata"]}
    return {"apiVersion": API_VERSION, "kind": manifest["kind"], "metadata": metadata, "spec": manifest.get("spec")}


def _issued(
    contents: Mapping[str, deliver.Content], before: Mapping[str, Issued], declared: Sequence[Declared], seconds: int
) -> dict[str, Issued]:
    """The generation of each configuration; of a node that is there and has none now, what it was given last."""
    alive = {d.name for d in declared if d.kind == "RouterNode"}
    issued = {name: given for name, given in before.items() if name in alive}
    for name, content in contents.items():
        last = before.get(name)
        if last is None or last.hash != content.hash:
            issued[name] = Issued(max(seconds, last.generation + 1 if last else 1), content.hash)
    return issued


def _node(resolution: Resolution, name: str, metadata: Mapping[str, Any]) -> RouterNode:
    """The served node, with the uid of the object that is there now: a last good spec may be of a deleted one."""
    served = resolution.served[Key("RouterNode", name)]
    if not isinstance(served, RouterNode):
        raise TypeError(f"{served.kind} {name} has a router's configuration")
    there = {"uid": metadata["uid"], "namespace": metadata["namespace"]}
    return served.model_copy(update={"metadata": served.metadata.model_copy(update=there)})


def _secrets(
    nodes: Mapping[str, RouterNode],
    contents: Mapping[str, deliver.Content],
    issued: Mapping[str, Issued],
    present: Mapping[str, Manifest],
) -> Iterable[Mapping[str, Any]]:
    for name, node in nodes.items():
        wanted = deliver.secret_of(node, contents[name], issued[name].generation)
        there = present.get(name)
        if there is None or (is_ours(there) and not _is(there, wanted)):
            yield wanted


def _taken_secret(node: str, present: Mapping[str, Manifest]) -> Iterable[ChildKey]:
    """That of the node, when it is somebody else's: what would be written into it would go with the node."""
    if node in present and not is_ours(present[node]):
        yield ChildKey("Secret", router_secret(node))


def _refused(node: str, children: Iterable[Manifest], said: Mapping[ChildKey, str]) -> Iterable[str]:
    """What the API server did not take of what the node needs."""
    for key in (ChildKey("Secret", router_secret(node)), *map(key_of, children)):
        if key in said:
            yield f"{key}: {said[key]}"


def _is(there: Manifest, wanted: Mapping[str, Any]) -> bool:
    """The text is compared too: somebody may have edited the Secret."""
    same_owner = deliver.owner_of(there) == deliver.owner_of(wanted)
    return same_owner and deliver.delivered(there) == deliver.delivered(wanted) and deliver.same_file(there, wanted)
