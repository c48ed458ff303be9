"""Which RouterNode a pod is of, as its label says, and whether pods may be of it. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from turnout_api.resolve import Key, Resolution
from turnout_api.resolve.nearest import did_you_mean
from turnout_api.resources import RouterNode
from turnout_api.vocabulary import Role
from turnout_operator.names import NODE_LABEL


class InjectionRefused(Exception):
    """The pod cannot have a sidecar; the message says what to change."""


@dataclass(frozen=True, slots=True)
class Nodes:
    """What `resolve` knows of the nodes of a namespace."""

    served: Mapping[str, RouterNode] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    """Nodes of which no spec is served → why."""

    @classmethod
    def of(cls, resolution: Resolution) -> "Nodes":
        """As they were judged."""
        served = {key.name: node for key, node in resolution.served.items() if isinstance(node, RouterNode)}
        judged = (verdict for verdict in resolution.verdicts if verdict.kind == "RouterNode")
        refused = {v.name: f"{v.reason}: {v.message}" for v in judged if Key(v.kind, v.name) not in resolution.served}
        return cls(served, refused)

    def slave(self, name: str) -> RouterNode:
        """The node whose router stands beside the pod's containers. Raises InjectionRefused."""
        if name in self.refused:
            raise InjectionRefused(f"{NODE_LABEL} names RouterNode {name}, which is not accepted: {self.refused[name]}")
        node = self.served.get(name)
        if node is None:
            raise InjectionRefused(self._unknown(name))
        if node.spec.role is not Role.SLAVE:
            raise InjectionRefused(
                f"{NODE_LABEL} names {name}, which is a {node.spec.role}: its router runs in a Deployment that the "
                f"operator makes. Label the pods with a RouterNode of role Slave"
            )
        if node.spec.public_url:
            raise InjectionRefused(
                f"{NODE_LABEL} names {name}, whose router runs at {node.spec.public_url}: remove publicURL from that "
                f"RouterNode, and its pods get the router; or remove the label"
            )
        return node

    def _unknown(self, name: str) -> str:
        known = frozenset(self.served) | frozenset(self.refused)
        return (
            f"{NODE_LABEL} names {name!r}, and the namespace has no RouterNode of that name{did_you_mean(name, known)}. "
            f"Apply the RouterNode before its pods, or correct the label"
        )
