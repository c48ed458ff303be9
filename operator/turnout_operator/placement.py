"""Where routers run in a cluster: which URL each has, and under which paths its secrets are mounted. Pure."""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from turnout_api.instances import ADMINS_MOUNT, CLIENTS_MOUNT, MOUNTS, ROUTER_PORT, TOKEN_MOUNT
from turnout_api.resolve import NodePlacement, Where
from turnout_api.resources import RouterNode
from turnout_api.vocabulary import Role

STORE_DIR = "/var/lib/turnout"


@dataclass(frozen=True, slots=True)
class InCluster:
    """A placement by `publicURL` where there is one, else by the Service that the operator keeps under the node's name.

    The Service of a slave has no address of its own and names its pods, ready or not: the master asks the name service for
    them, so that it follows pods while nobody else is there. A slave's own URL is that of its pod, which its router adds.
    """

    previous_tokens: AbstractSet[tuple[str, str]] = frozenset()
    """(Secret, key) of cluster tokens that are being rotated: `KEY-previous` stands beside the key."""
    mounts: str = MOUNTS
    admin_writes: bool = False
    """Masters may change custom resources for the people who sign in there."""
    stores: AbstractSet[str] = frozenset()
    """Masters for which a claim was asked: one that names no `storeDir` gets `STORE_DIR`."""

    @property
    def where(self) -> Where:
        """Pods, or routers that read their secrets from the same paths."""
        return Where.CLUSTER

    def place(self, node: RouterNode) -> NodePlacement:
        """Addresses and files of one node."""
        spec = node.spec
        url, slave_urls = self._urls(node)
        reference = spec.token_secret_ref
        token = f"{self.mounts}/{TOKEN_MOUNT}/{reference.key}" if reference else ""
        rotating = reference is not None and (reference.name, reference.key) in self.previous_tokens
        stored = node.name in self.stores and not spec.store_dir and not spec.public_url and spec.role is not Role.SLAVE
        return NodePlacement(
            url=url,
            slave_urls=slave_urls,
            store_dir=STORE_DIR if stored else "",
            token_file=token,
            token_previous_file=f"{token}-previous" if rotating else "",
            clients_file=f"{self.mounts}/{CLIENTS_MOUNT}/clients.yaml" if spec.clients else "",
            admins_file=f"{self.mounts}/{ADMINS_MOUNT}/users.yaml" if spec.admins else "",
            objects_namespace=node.namespace if spec.admins and self.admin_writes and not spec.public_url else "",
        )

    @staticmethod
    def _urls(node: RouterNode) -> tuple[str, tuple[str, ...]]:
        """Its own, and how the master lists it."""
        given = node.spec.public_url.rstrip("/")
        if given:
            return given, (given,)
        service = f"http://{node.name}.{node.namespace}.svc:{ROUTER_PORT}"
        return ("", (f"dns+{service}",)) if node.spec.role is Role.SLAVE else (service, ())
