"""Where routers run in a cluster: which URL each has, and under which paths its secrets are mounted. Pure."""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from turnout_api.resolve import NodePlacement, Where
from turnout_api.resources import RouterNode
from turnout_operator.names import ADMINS_MOUNT, CLIENTS_MOUNT, MOUNTS, TOKEN_MOUNT


@dataclass(frozen=True, slots=True)
class InCluster:
    """A placement by `publicURL`: this version does not follow pods, so a node without one is reached by nobody."""

    previous_tokens: AbstractSet[tuple[str, str]] = frozenset()
    """(Secret, key) of cluster tokens that are being rotated: `KEY-previous` stands beside the key."""
    mounts: str = MOUNTS

    @property
    def where(self) -> Where:
        """Pods, or routers that read their secrets from the same paths."""
        return Where.CLUSTER

    def place(self, node: RouterNode) -> NodePlacement:
        """Addresses and files of one node."""
        spec = node.spec
        url = spec.public_url.rstrip("/")
        reference = spec.token_secret_ref
        token = f"{self.mounts}/{TOKEN_MOUNT}/{reference.key}" if reference else ""
        rotating = reference is not None and (reference.name, reference.key) in self.previous_tokens
        return NodePlacement(
            url=url,
            slave_urls=(url,) if url else (),
            token_file=token,
            token_previous_file=f"{token}-previous" if rotating else "",
            clients_file=f"{self.mounts}/{CLIENTS_MOUNT}/clients.yaml" if spec.clients else "",
            admins_file=f"{self.mounts}/{ADMINS_MOUNT}/users.yaml" if spec.admins else "",
        )
