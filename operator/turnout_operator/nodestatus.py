"""What is said about a RouterNode beside its verdict: whether its routers run its configuration, and serve. Pure."""

from collections.abc import Iterator, Sequence

from turnout_api.resolve import Verdict
from turnout_operator import conditions, deliver
from turnout_operator.conditions import PROGRAMMED, Fact, Unchanged, Why
from turnout_operator.names import NODE_LABEL
from turnout_operator.picture import NodeFacts, Picture
from turnout_operator.routers import MAX_INSTANCES

_NAMED = 5
"""Pods or routers that a message names; it says how many more there are."""


def facts(verdict: Verdict, picture: Picture) -> Iterator[Fact | Unchanged]:
    """Programmed and Ready, of a node that has a configuration."""
    config, known = picture.resolution.configs.get(verdict.name), picture.nodes.get(verdict.name)
    if config is not None and deliver.is_too_large(config):
        yield conditions.too_large(len(deliver.text_of(config).encode()), deliver.MAX_CONFIG_BYTES)
        yield Unchanged(conditions.READY)
    elif known is not None:
        yield _programmed(verdict.name, known, picture.issued[verdict.name].generation)
        if known.in_cluster:
            yield _ready(known)


def fields(verdict: Verdict, picture: Picture) -> dict[str, object]:
    """Beside the conditions."""
    issued = picture.issued.get(verdict.name)
    return {"configGeneration": issued.generation if issued else 0} | _instances(picture.nodes.get(verdict.name))


def _programmed(node: str, known: NodeFacts, generation: int) -> Fact | Unchanged:
    """The first thing that keeps a router from running the newest configuration."""
    if known.taken:
        names = ", ".join(known.taken)
        return conditions.programmed(Why.NAME_TAKEN, f"{names}: there already, and not the operator's: rename it")
    bare = [router.name for router in known.routers if not router.has_router]
    if bare:
        return conditions.programmed(
            Why.INJECTION_MISSING,
            f"no sidecar is in {_some(bare)}, labelled {NODE_LABEL}: {node}. Make them anew where the webhook is on, or "
            f"put it into their manifests with `turnout inject`",
        )
    if known.in_cluster and not known.reached:
        return conditions.programmed(Why.NO_PODS, "none of its routers runs yet")
    if not known.tellable or any(r is None or r.generation < generation for r in known.reached.values()):
        return Unchanged(PROGRAMMED)
    failed = [f"{url}: {r.trouble}" for url, r in known.reached.items() if r is not None and r.trouble]
    if failed:
        return conditions.programmed(
            Why.NOT_TOLD, f"{_some(failed)}. It is told again, and reads its Secret when it starts"
        )
    return conditions.programmed(Why.PROGRAMMED)


def _ready(known: NodeFacts) -> Fact:
    if not known.routers:
        return conditions.ready(Why.NO_PODS, "it has no pods")
    if any(router.ready and router.has_router for router in known.routers):
        return conditions.ready(Why.READY)
    return conditions.ready(Why.PODS_NOT_READY, f"not ready: {_some([router.name for router in known.routers])}")


def _some(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def _instances(known: NodeFacts | None) -> dict[str, object]:
    """Of a node whose pods are known."""
    if known is None or not known.in_cluster:
        return {}
    ready = sum(router.ready and router.has_router for router in known.routers)
    instances = [router.instance() for router in known.routers[:MAX_INSTANCES]]
    return {"serving": f"{ready}/{len(known.routers)}", "instances": instances}
