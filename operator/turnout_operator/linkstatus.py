"""What is said about a RoutingLink beside its verdict: its weights, whether it can lend, and whether that is suspended. Pure."""

from collections.abc import Iterator

from turnout_api.durations import format_duration
from turnout_api.resolve import Key, Verdict, weights_of
from turnout_api.resources import Model, NodeModelRef, RouterNode, RoutingLink
from turnout_operator import conditions
from turnout_operator.conditions import LENDING_SUSPENDED, READY, Fact, Unchanged, Why
from turnout_operator.picture import Picture


def facts(verdict: Verdict, picture: Picture) -> Iterator[Fact | Unchanged]:
    """Of a link that routers were given."""
    link = picture.served(verdict.kind, verdict.name)
    if isinstance(link, RoutingLink):
        yield _suspended(verdict.name, picture)
        yield _ready(link, picture)


def fields(verdict: Verdict, picture: Picture) -> dict[str, object]:
    """Beside the conditions: whether both ends state one weights hash, of the generation that was accepted last."""
    last = picture.resolution.last_accepted.get(Key(verdict.kind, verdict.name))
    if not isinstance(last, RoutingLink):
        return {}
    return {"weights": weights_of(*(_model(end, picture) for end in (last.spec.owner, last.spec.helper))).value}


def _model(end: NodeModelRef, picture: Picture) -> Model | None:
    node = picture.served("RouterNode", end.node)
    models = node.spec.models if isinstance(node, RouterNode) else []
    return next((model for model in models if model.id == end.model), None)


def _ready(link: RoutingLink, picture: Picture) -> Fact | Unchanged:
    """Whether work could be lent over it now, as far as slow facts go."""
    if picture.master is None:
        return Unchanged(READY)
    if link.name in (picture.master.suspended or {}):
        return conditions.ready(Why.LENDING_SUSPENDED, "see the condition LendingSuspended")
    for end, why in ((link.spec.owner, Why.OWNER_UNAVAILABLE), (link.spec.helper, Why.HELPER_UNAVAILABLE)):
        found = picture.available(end.node, end.model)
        if found is not None and not found.yes:
            return conditions.ready(why, f"{end.node}/{end.model}: {found.reason}")
    return conditions.ready(Why.READY)


def _suspended(link: str, picture: Picture) -> Fact | Unchanged:
    """Whether its master lends nothing over it for now, as the master says."""
    said = picture.master
    if said is None:
        return Unchanged(LENDING_SUSPENDED)
    if said.suspended is None:
        message = f"the master {said.node_id} runs build {said.version or '?'}, which does not tell"
        return Fact(LENDING_SUSPENDED, "Unknown", Why.MASTER_DOES_NOT_SAY, message)
    why = said.suspended.get(link)
    if why is None:
        return Fact(LENDING_SUSPENDED, "False", Why.NOT_SUSPENDED, "")
    return Fact(LENDING_SUSPENDED, "True", Why.OWN_WORK_WAITED, f"{why}. {_advice(picture)}")


def _advice(picture: Picture) -> str:
    cluster = picture.resolution.configs[picture.resolution.master].cluster
    return (
        f"Nothing is lent over this link; it lends again by itself after offloadSuspension "
        f"({format_duration(cluster.offload_suspension)}). Where this comes back: let the helper take one borrowed request at a "
        f"time (offloadBorrowedBeyondRecall: 1), or none that it must load a model for (loadIfUnloaded: false), or raise "
        f"offloadOwnWaitLimit, or delete the link; `turnout lending` shows what it saved and cost"
    )
