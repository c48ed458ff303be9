"""What routers say to each other. JSON over HTTP, bearer cluster token, paths under `/router/v1/node/`.

A reader ignores fields that it does not know, so that a cluster can be upgraded one router at a time.
"""

from enum import StrEnum
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from turnout_api.lending import DecisionRow, ModelRef, NodeState
from turnout_api.vocabulary import Capability, Family, Lane, Role

NODE_PREFIX = "/router/v1/node"
SERVE_PREFIX = NODE_PREFIX + "/serve"

REQUEST_ID = "x-request-id"
MODEL_HEADER = "x-turnout-model"
"""Client side: the model that answered. Master → slave: the local ID, so that the slave need not parse the body."""
NODE_HEADER = "x-turnout-node"
RULE_HEADER = "x-turnout-rule"
LENT_HEADER = "x-turnout-lent-to"
STAGE_HEADER = "x-turnout-stage"
"""On a router's own error answer: `unsent` = no backend saw the request, so another node may get it."""
TOKEN_HEADER = "x-turnout-token"  # noqa: S105 - the name of a header
"""On a GET of a cluster path instead of `Authorization`: the API server of Kubernetes keeps that one for itself when it passes a
request on to a Service."""
QUEUED_HEADER = "x-turnout-queued"
"""On a slave's answer: seconds that the request waited for its slot there."""


class _Message(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class PriceRecord(_Message):
    """What a model's node takes for it, in millionths of the currency."""

    input_micros_per_million_tokens: int = 0
    output_micros_per_million_tokens: int = 0
    micros_per_request: int = 0


class ModelRecord(_Message):
    """One model of one node, as the cluster knows it."""

    public_id: str
    local_id: str
    node_id: str
    source: Literal["local", "remote"] = "local"
    backend: str
    backend_model: str = ""
    """The name that the backend puts into its answers, so that the master recognises it without a parse."""
    family: Family
    capabilities: list[Capability]
    config_hash: str
    weights_hash: str | None = None
    asset_hashes: list[str] = []
    context_window: int | None = None
    parallel: int | None = None
    price: PriceRecord | None = None
    """None = unpriced."""
    available: bool
    """Its lane on the node is ready."""
    reason: str = ""
    """Why it is not available."""
    loaded: bool = False


class Snapshot(_Message):
    """`GET snapshot`, and the body of a registration: what a node advertises."""

    node_id: str
    node: str
    role: Role
    url: str
    instance: str
    """A random ID of this run of the process: a restarted node is told from a second one with the same `node_id`."""
    version: str
    generation: int
    draining: bool = False
    models: list[ModelRecord]


class Registered(_Message):
    """Answer to `POST register`."""

    master_node_id: str
    sync_interval_s: float


class ConfigAccepted(_Message):
    """Answer to `POST config`."""

    generation: int
    changed: bool


class LoadRequest(_Message):
    """`POST load`: load a model, or unload it, without a request for it."""

    model: str
    """Local ID."""
    unload: bool = False


class Loaded(_Message):
    """Answer to `POST load`, once it is done."""

    model: str
    seconds: float
    displaced: list[str] = []


class WaitingState(StrEnum):
    """What becomes of a request that the router has not handed to a backend. Each is in one of them."""

    QUEUED = "queued"
    """Waits for a slot."""
    HELD = "held"
    """Kept on purpose for a faster helper."""
    LENT = "lent"
    """At a helper."""


class ModelQueue(_Message):
    """A model's waiting and running requests."""

    model: str
    queued: int
    """Wait for a slot, borrowed ones too."""
    running: int
    """At the backend."""
    held: int = 0
    """Kept for a faster helper."""
    lent: int = 0
    """At a helper."""
    loaded: bool
    loading_s: float | None = None
    """Seconds since its load began."""


class WaitingRequest(_Message):
    """A request that the router holds: it waits here, or is lent."""

    id: str
    model: str
    """Local ID of the model that it asks for."""
    state: WaitingState
    waited_s: float
    """Since it first arrived, also when it came back from a helper."""
    helper: ModelRef | None = None
    """Who has it, or for whom it is held."""


MAX_LISTED_REQUESTS: Final = 1000
"""In one answer to `GET queue?requests=1`."""


class QueueReport(_Message):
    """`GET queue`."""

    node_id: str
    accepting: bool
    idle_s: float
    """Since the node's last own request ended; 0 while one runs or waits."""
    models: list[ModelQueue]
    lending: NodeState | None = None
    """What the master needs to decide; None = a router of before lending."""
    requests: list[WaitingRequest] | None = None
    """With `?requests=1` those that the router holds, the oldest first, at most MAX_LISTED_REQUESTS; None = not asked for."""
    requests_left_out: int = 0
    """How many more there are."""


class Queues(_Message):
    """Answer to `GET queue?all=1`: that of the router itself, and of a master those of its nodes."""

    queues: list[QueueReport]
    missing: dict[str, str] = {}
    """Node ID → why its queue is not here."""


class LinkRecord(_Message):
    """A link between two instances of nodes."""

    name: str
    lane: Lane
    owner_node: str
    """A node ID, or the name of a node of which no instance is known."""
    owner_model: str
    """Local ID, as `helper_model`."""
    helper_node: str
    helper_model: str
    load_if_unloaded: bool = True
    restore_after_borrow: bool = True


class LinksPush(_Message):
    """`POST links`, master → slave: the links that name the slave, and the settings of lending that hold in the cluster."""

    generation: int
    """Of the master's configuration: a slave whose own is newer keeps its own links until the master has caught up."""
    links: list[LinkRecord]
    settings: dict[str, object] = {}
    """What the master was given under `cluster.scheduling_…`, `cluster.offload_…` and `cluster.analytics`."""


class LinksTaken(_Message):
    """Answer to `POST links`."""

    links: int
    changed: bool


class Acknowledged(_Message):
    """Answer to `POST offload/lease`: it was taken, or an older one was left out."""


class StopLent(_Message):
    """`POST offload/stop`, owner → master → helper: this lent request is no longer wanted there."""

    request_id: str
    lease: str = ""
    """Empty = whatever lease it has."""


class LentStopped(_Message):
    """Answer to `POST offload/stop`. `stopped`: it ran or waited, and does no longer. `unknown`: it is not here."""

    state: Literal["stopped", "unknown"]


class Decisions(_Message):
    """Answer to `GET decisions`: rows of the decision log, newest first."""

    rows: list[DecisionRow]
    missing: dict[str, str] = {}
    """Node ID → why its rows are not here; only where every node was asked."""


class MeasuredJob(_Message):
    """A job that a node measured."""

    model: str
    """Local ID."""
    config_hash: str
    ts: float
    """When it ended, seconds since the epoch on the node's clock."""
    seconds: float
    input_tokens: float = 0.0
    output_tokens: float = 0.0
    pixel_steps: float = 0.0
    body_bytes: int = 0
    has_images: bool = False
    max_tokens: int | None = None


class MeasuredLoad(_Message):
    """A load that a node measured."""

    model: str
    config_hash: str
    ts: float
    """When it began."""
    seconds: float


class Measured(_Message):
    """`GET measurements`, what a node measured, for its master to keep; `POST measurements`, what it gives back to a node.

    Oldest first. A model with another `config_hash` is another model: what was measured of it is not used.
    """

    jobs: list[MeasuredJob] = []
    loads: list[MeasuredLoad] = []


class NodeHealth(_Message):
    """A node as the master sees it."""

    node_id: str
    node: str
    url: str
    healthy: bool
    reason: str = ""
    last_seen_s: float | None = None
    """Seconds since its last good poll or registration."""
    version: str | None = None
    """Build of its router, as it said last; None = it never said, or a master of before does not tell."""
    generation: int | None = None
    """Of the configuration that it runs; None as above."""


class PublicModel(_Message):
    """A name that clients may use."""

    name: str
    nodes: list[str]
    available: bool


class NodeStatus(_Message):
    """`GET status`: slow facts for the operator, `turnout up` and people."""

    node_id: str
    role: Role
    version: str
    generation: int
    draining: bool
    uptime_s: float
    models: list[ModelRecord]
    nodes: list[NodeHealth] = []
    public_models: list[PublicModel] = []
    suspended_links: dict[str, str] | None = None
    """Of a master: link → why nothing is lent over it for now; None = a router of before, which does not say."""
    queue: QueueReport


class ErrorBody(_Message):
    """A router's own error on a cluster path."""

    code: Annotated[str, Field(pattern=r"^[a-z_]+$")]
    message: str
