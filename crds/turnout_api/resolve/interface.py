"""What goes into `resolve` and what comes out of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple, Protocol

from turnout_api.config import RouterConfig
from turnout_api.resolve.reasons import Reason
from turnout_api.resources import Resource, RouterNode
from turnout_api.resources.refusals import Path


class Key(NamedTuple):
    """An object of the namespace."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing to say about an object: why it is refused, or a warning."""

    reason: Reason
    message: str
    path: Path = ()

    def __str__(self) -> str:
        return f"{self.reason}: {self.message}"


@dataclass(frozen=True, slots=True)
class Declared:
    """One object as its author left it: `declare` makes it out of a manifest."""

    kind: str
    namespace: str
    name: str
    resource: Resource | None
    """None: the schema refused it, and `problems` say why."""
    problems: tuple[Problem, ...] = ()
    generation: int = 0

    @property
    def key(self) -> Key:
        """Which object it is."""
        return Key(self.kind, self.name)


@dataclass(frozen=True, slots=True)
class TestOutcome:
    """What came out of a RouteTest."""

    passed: bool
    rule: str = ""
    """That decided, as FRONTEND/RULE; empty = none did."""
    model: str = ""
    """That the request would go to first; empty = none."""
    message: str = ""
    """What differs from what was expected; empty when it passed."""

    __test__ = False  # no class of tests, though its name begins like one


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is to be said about one declared object."""

    kind: str
    namespace: str
    name: str
    generation: int
    problems: tuple[Problem, ...] = ()
    """Why it is not accepted; empty = it is."""
    warnings: tuple[Problem, ...] = ()
    last_good: bool = False
    """It is not accepted, and what was accepted last goes on being served."""

    @property
    def key(self) -> Key:
        """Which object it is about."""
        return Key(self.kind, self.name)

    @property
    def accepted(self) -> bool:
        """Whether routers are given this generation of the object."""
        return not self.problems

    @property
    def reason(self) -> Reason:
        """The first problem's, or Accepted."""
        return self.problems[0].reason if self.problems else Reason.ACCEPTED

    @property
    def message(self) -> str:
        """What is the matter and what to do, in one line; empty when there is nothing to say."""
        text = "; ".join(problem.message for problem in self.problems)
        return f"{text}. What was accepted last goes on being served." if self.last_good else text

    @property
    def path(self) -> Path:
        """Where in the manifest the first problem is."""
        return self.problems[0].path if self.problems else ()


class Where(Enum):
    """Where the routers will run: it decides what a backend's `command` and a missing token mean."""

    LOCAL = "local"
    """`turnout up`: `command` wins over `url`; the caller makes the token."""
    CLUSTER = "cluster"
    """Pods: only family Process is started from `command`; Master and Slave need `tokenSecretRef`."""
    ANYWHERE = "anywhere"
    """Not known (`turnout validate`): what only works locally is a warning."""


@dataclass(frozen=True, slots=True)
class NodePlacement:
    """What only the caller knows about a node: addresses and files."""

    host: str = "0.0.0.0"  # noqa: S104 - a pod listens on all its addresses; local mode gives 127.0.0.1
    port: int = 8900
    health_host: str = "0.0.0.0"  # noqa: S104 - the kubelet probes from outside the pod
    health_port: int = 8901
    url: str = ""
    """How other routers reach it: a slave's `public_url`, and of the master what its slaves get as `master_url`."""
    slave_urls: tuple[str, ...] = ()
    """How the master lists it: an URL, or `dns+http://NODE.NAMESPACE.svc:8900`. Empty = unreachable."""
    tls_cert_file: str = ""
    tls_key_file: str = ""
    ca_file: str = ""
    """Certificates that this node trusts beside those of the system."""
    store_dir: str = ""
    """Wins over the object's `storeDir`."""
    token_file: str = ""
    token_previous_file: str = ""
    gateway_key_file: str = ""
    clients_file: str = ""
    admins_file: str = ""
    objects_url: str = ""
    """Where the master asks for what people change."""
    objects_token_file: str = ""
    objects_namespace: str = ""
    """In a cluster: where the master changes custom resources for people; empty = it may not."""


class Placement(Protocol):
    """Says for each node where it runs."""

    @property
    def where(self) -> Where:
        """Local mode, a cluster, or not known."""
        ...

    def place(self, node: RouterNode) -> NodePlacement:
        """Of one node; the same answer for the same node within one `resolve`."""
        ...


@dataclass(frozen=True, slots=True)
class PlacedAnywhere:
    """A placement for judging alone: every node is reachable, under a name that nobody will call."""

    @property
    def where(self) -> Where:
        """Not known."""
        return Where.ANYWHERE

    def place(self, node: RouterNode) -> NodePlacement:
        """Under the node's name."""
        url = node.spec.public_url or f"http://{node.name}:8900"
        return NodePlacement(url=url, slave_urls=(url,))


@dataclass(frozen=True, slots=True)
class Resolution:
    """All that follows from the objects of one namespace."""

    configs: Mapping[str, RouterConfig]
    """By name of RouterNode: what its routers run. The master's is whole, a slave's is its own slice."""
    verdicts: tuple[Verdict, ...]
    """One for each declared object, in the order given."""
    last_accepted: Mapping[Key, Resource]
    """To be kept, and given to the next `resolve`."""
    ledger: Mapping[str, list[str]]
    """To be kept, and given to the next `resolve`: who has which public name (`turnout_api.identity`)."""
    master: str = ""
    """Name of the Master or Standalone that serves clients; empty = none is accepted."""
    served: Mapping[Key, Resource] = field(default_factory=dict)
    """What the configurations were made of: each object's newest acceptable spec."""
    tests: Mapping[Key, TestOutcome] = field(default_factory=dict)
    """Of every RouteTest, judged on what is served; empty while nothing is."""
