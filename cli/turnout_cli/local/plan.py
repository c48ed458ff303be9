"""From resolved manifests to processes, and from one plan to the next. Pure: free ports come from outside.

Invariants:

* A node keeps its ports as long as its state folder lives, so that an edit or a crash moves nobody.
* The generation of a plan is higher than that of every plan before it, in earlier runs too, so each router takes it.
* A router is restarted only for what it cannot change while it runs; everything else is pushed.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from turnout_api.config import RouterConfig
from turnout_api.resolve import NodePlacement, Resolution, Where
from turnout_api.resources import RouterNode
from turnout_api.vocabulary import Role
from turnout_router.startable import FIXED_WHILE_RUNNING

HOST = "127.0.0.1"
RESTARTED_FOR = (
    *FIXED_WHILE_RUNNING,
    "node",
    "master_url",
    "public_url",
    "ca_file",
    "token_file",
    "token_previous_file",
)
"""Fields of `cluster`: what a router refuses to change while it runs, and where it stands among the others."""


@dataclass(frozen=True, slots=True)
class NodePorts:
    """Where one router listens."""

    port: int
    health_port: int


@dataclass(frozen=True, slots=True)
class Folders:
    """Where things are in the state folder, which is absolute."""

    root: Path

    @property
    def credentials(self) -> Path:
        """For whoever wants to call the cluster."""
        return self.root / "credentials.json"

    @property
    def state(self) -> Path:
        """What has to outlive a run."""
        return self.root / "state.json"

    @property
    def lock(self) -> Path:
        """Held while a cluster runs."""
        return self.root / "lock"

    @property
    def secrets(self) -> Path:
        """Files that routers read secrets from."""
        return self.root / "secrets"

    @property
    def token(self) -> Path:
        """The cluster token."""
        return self.secrets / "cluster-token"

    @property
    def gateway_key(self) -> Path:
        """The key that may call every model."""
        return self.secrets / "gateway-key"

    @property
    def clients(self) -> Path:
        """API keys of clients. People write it, so it stands beside `credentials.json`."""
        return self.root / "clients.yaml"

    @property
    def users(self) -> Path:
        """People who may log in."""
        return self.secrets / "users.yaml"

    @property
    def tls_cert(self) -> Path:
        """What the gateway shows with `--tls`, and everybody else trusts."""
        return self.secrets / "tls.crt"

    @property
    def tls_key(self) -> Path:
        """Its key."""
        return self.secrets / "tls.key"

    @property
    def control_token(self) -> Path:
        """What the gateway shows where it asks for changes."""
        return self.secrets / "control-token"

    @property
    def changed(self) -> Path:
        """What people changed through the admin API."""
        return self.root / "admin" / "objects.yaml"

    def node(self, name: str) -> Path:
        """A node's own folder: configuration, database, logs. Node names are DNS labels, so they are safe here."""
        return self.root / "nodes" / name

    def config(self, name: str) -> Path:
        """A router's configuration."""
        return self.node(name) / "router.yaml"

    def log(self, name: str) -> Path:
        """What a router prints."""
        return self.node(name) / "router.log"


@dataclass(slots=True)
class LocalPlacement:
    """Places every node on loopback. Remembers what it drew, so asking twice gives one answer."""

    folders: Folders
    gateway_port: int
    """Of the Master or Standalone."""
    draw: Callable[[], int]
    """A port on which nobody listens now."""
    ports: dict[str, NodePorts] = field(default_factory=dict)
    where: Where = Where.LOCAL
    control_url: str = ""
    """Where the gateway asks for changes; empty = nowhere."""
    tls: bool = False
    """The gateway speaks TLS."""

    def place(self, node: RouterNode) -> NodePlacement:
        """Where one node runs."""
        ports = self._ports_of(node.name)
        gateway = node.spec.role is not Role.SLAVE
        port = self.gateway_port if gateway else ports.port
        tls = self.tls and gateway
        url = f"{'https' if tls else 'http'}://{HOST}:{port}"
        return NodePlacement(
            host=HOST,
            port=port,
            health_host=HOST,
            health_port=ports.health_port,
            url=url,
            slave_urls=(url,),
            tls_cert_file=str(self.folders.tls_cert) if tls else "",
            tls_key_file=str(self.folders.tls_key) if tls else "",
            ca_file=str(self.folders.tls_cert) if self.tls else "",
            store_dir=str(self.folders.node(node.name)),
            token_file=str(self.folders.token),
            gateway_key_file=str(self.folders.gateway_key) if gateway else "",
            clients_file=str(self.folders.clients) if gateway else "",
            admins_file=str(self.folders.users) if gateway else "",
            objects_url=self.control_url if gateway else "",
            objects_token_file=str(self.folders.control_token) if gateway and self.control_url else "",
        )

    def _ports_of(self, name: str) -> NodePorts:
        if name not in self.ports:
            taken = {self.gateway_port} | {n for p in self.ports.values() for n in (p.port, p.health_port)}
            port = self._draw_beside(taken)
            self.ports[name] = NodePorts(port, self._draw_beside(taken | {port}))
        return self.ports[name]

    def _draw_beside(self, taken: set[int]) -> int:
        while (port := self.draw()) in taken:
            pass
        return port


@dataclass(frozen=True, slots=True)
class NodePlan:
    """One router's process."""

    name: str
    config: RouterConfig

    @property
    def role(self) -> Role:
        """What it is in its cluster."""
        return self.config.cluster.role

    @property
    def url(self) -> str:
        """Where it listens."""
        listen = self.config.listen
        return f"{'https' if listen.tls_cert_file else 'http'}://{listen.host}:{listen.port}"


@dataclass(frozen=True, slots=True)
class ClusterPlan:
    """All processes of a cluster."""

    generation: int
    master: str
    nodes: Mapping[str, NodePlan]

    @property
    def url(self) -> str:
        """What clients call."""
        return self.nodes[self.master].url


def plan_of(resolution: Resolution, generation: int) -> ClusterPlan:
    """The processes of a resolution that has a master."""
    nodes = {
        name: NodePlan(name, config.model_copy(update={"generation": generation}))
        for name, config in resolution.configs.items()
    }
    return ClusterPlan(generation, resolution.master, nodes)


@dataclass(frozen=True, slots=True)
class Changes:
    """What leads from one plan to the next; names of nodes, each in one tuple at most."""

    start: tuple[str, ...] = ()
    push: tuple[str, ...] = ()
    """The router runs on and gets its configuration over HTTP."""
    restart: tuple[str, ...] = ()
    stop: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.start or self.push or self.restart or self.stop)

    def __str__(self) -> str:
        """For a person: `gpu-a changed; gpu-c started`."""
        words = (("changed", self.push), ("restarted", self.restart), ("started", self.start), ("stopped", self.stop))
        return "; ".join(f"{', '.join(names)} {word}" for word, names in words if names) or "nothing changed"


def changes(old: ClusterPlan, new: ClusterPlan) -> Changes:
    """What leads from `old` to `new`."""
    both = [name for name in new.nodes if name in old.nodes]
    differ = [name for name in both if not _same(old.nodes[name].config, new.nodes[name].config)]
    restart = [name for name in differ if needs_restart(old.nodes[name].config, new.nodes[name].config)]
    return Changes(
        start=tuple(name for name in new.nodes if name not in old.nodes),
        push=tuple(name for name in differ if name not in restart),
        restart=tuple(restart),
        stop=tuple(name for name in old.nodes if name not in new.nodes),
    )


def needs_restart(old: RouterConfig, new: RouterConfig) -> bool:
    """Whether something changes that a running router does not take, or takes in part only."""
    fixed_differ = any(getattr(old.cluster, name) != getattr(new.cluster, name) for name in RESTARTED_FOR)
    return fixed_differ or old.listen != new.listen or old.access != new.access


def _same(old: RouterConfig, new: RouterConfig) -> bool:
    return old == new.model_copy(update={"generation": old.generation})
