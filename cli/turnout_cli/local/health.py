"""What a cluster still waits for, from what its master says. Pure."""

from collections.abc import Mapping

from turnout_api.config import RouterConfig
from turnout_api.vocabulary import Role
from turnout_api.wire import ModelRecord, NodeStatus
from turnout_cli.local.plan import ClusterPlan, NodePlan


def waiting_for(plan: ClusterPlan, status: NodeStatus | None, *, starting: bool = False) -> dict[str, str]:
    """Node → why it cannot serve all that it declares. Empty = everything is healthy.

    A model that its router loads with the first request is available, as the router itself says. `starting`: a node's
    startup model is waited for, too; later another model may have displaced it, and all is well.
    """
    if status is None:
        return {plan.master: "its router does not answer yet"}
    if status.generation < plan.generation:
        return {plan.master: f"its router still serves generation {status.generation}"}
    reasons = {
        name: _reason(node, status) or (_startup(node, status) if starting else "") for name, node in plan.nodes.items()
    }
    return {name: reason for name, reason in reasons.items() if reason}


def suspension_news(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """What changed about the links over which nothing is lent for now: link → why."""
    begun = [f"link {link}: LendingSuspended: {why}" for link, why in now.items() if link not in before]
    return begun + [f"link {link}: lends again" for link in before if link not in now]


def _reason(node: NodePlan, status: NodeStatus) -> str:
    if node.role is Role.SLAVE:
        health = next((health for health in status.nodes if health.node == node.name), None)
        if health is None:
            return "it has not registered with its master yet"
        if not health.healthy:
            return health.reason or "it is unhealthy"
    return _models(node.config, _records(node, status))


def _startup(node: NodePlan, status: NodeStatus) -> str:
    startup = node.config.models.startup_model
    return f"model {startup} is being loaded" if startup and not _records(node, status)[startup].loaded else ""


def _records(node: NodePlan, status: NodeStatus) -> dict[str, ModelRecord]:
    return {record.local_id: record for record in status.models if record.node_id == node.name}


def _models(config: RouterConfig, records: dict[str, ModelRecord]) -> str:
    reasons: list[str] = []
    for model in config.models.local:
        record = records.get(model.id)
        if record is None:
            reasons.append(f"model {model.id} is not known to the master yet")
        elif not record.available:
            reasons.append(f"model {model.id}: {record.reason or 'not available'}")
    return "; ".join(reasons)
