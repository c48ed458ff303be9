"""RouterNode: a router, what it stands beside, and for the one that leads the cluster its settings."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from turnout_api.resources.common import (
    LABEL_PATTERN,
    BackendURL,
    Column,
    ContentHash,
    FolderPath,
    Identity,
    MasterRef,
    ModelID,
    Resource,
    RouterURL,
    SecretKeyRef,
    SecretRef,
    Status,
    condition_columns,
)
from turnout_api.resources.rules import Keyed, Ordered, Part, Span, StatusPart, Unique, rule
from turnout_api.resources.settings import Settings
from turnout_api.vocabulary import BackendMode, Capability, Family, Role

_MICROS = Field(ge=0, le=1_000_000_000_000_000)


class Backend(Part):
    """A server beside the router that answers for models: reached by `url`, or started by the router from `command`."""

    name: Annotated[str, Field(min_length=1, max_length=63, pattern=LABEL_PATTERN)]
    """Name of the backend, unique on the node; models refer to it."""
    family: Family
    """What kind of server it is, which decides how it is asked for readiness, models, load and unload.
    OpenAI fits any server with that API. Process = the router starts and stops it to load and unload."""
    url: BackendURL = ""
    """Base URL as the router reaches it, on localhost for a sidecar. In a cluster all families but Process need it."""
    command: Annotated[
        list[Annotated[str, Field(max_length=4096)]], Ordered(), Field(min_length=1, max_length=256)
    ] = []
    """Program and arguments. The router starts it, supervises it and stops it, for family Process and in local mode
    (`turnout up`). `${PORT}` becomes a free port; with `${MODEL}` in it there is one process a model, without it one
    for all of them, which may load and unload them itself as llama.cpp's router mode does."""
    env: Annotated[dict[str, Annotated[str, Field(max_length=4096)]], Field(max_length=64)] = {}
    """Environment variables of `command`, beside those of the router. No place for secrets: this object is readable."""
    start_timeout: Annotated[float, Span("1s", "24h")] = 600.0
    """A process that is not ready after this long is stopped, and its load has failed."""
    stop_timeout: Annotated[float, Span("0s", "1h")] = 10.0
    """Between SIGTERM and SIGKILL when a process is stopped."""

    @rule(
        cel="self.family != 'Process' || has(self.command)",
        message="a backend of family Process needs command: the program that the router starts",
        field="command",
    )
    def process_needs_command(self) -> bool:
        return self.family is not Family.PROCESS or bool(self.command)

    @rule(
        cel="self.family == 'Process' || has(self.url) || has(self.command)",
        message="a backend needs url (a server that runs) or command (one that the router starts)",
        field="url",
    )
    def backend_is_reachable(self) -> bool:
        return self.family is Family.PROCESS or bool(self.url) or bool(self.command)


class VLLMSettings(Part):
    """The two settings of a vLLM configuration that lending asks about."""

    max_number_sequences: Annotated[int, Field(ge=1, le=1024)] | None = None
    """Requests that vLLM runs at once; the same as `parallel`."""
    max_model_length: Annotated[int, Field(ge=1, le=100_000_000)] | None = None
    """Tokens of the context window; the same as `contextWindow`."""


class VLLM(Part):
    """A vLLM configuration as it stands in that server's own files."""

    settings: VLLMSettings = VLLMSettings()
    """Settings of the vLLM configuration."""


class Asset(Part):
    """A file that belongs to a model."""

    path: Annotated[str, Field(min_length=1, max_length=1024, pattern=r"^[^\x00-\x1f]+$")]
    """Path of the file under one of `fileRoots`."""
    hash: ContentHash
    """`sha256:` and the 64 hexadecimal digits of the file's content; verified before the file is used or handed out."""


class Price(Part):
    """What a request costs, in millionths of the currency that you count in. All zero = free, which is not unpriced."""

    input_micros_per_million_tokens: Annotated[int, _MICROS] = 0
    """For a million input tokens: 150000 = 0.15."""
    output_micros_per_million_tokens: Annotated[int, _MICROS] = 0
    """For a million output tokens: 600000 = 0.60."""
    micros_per_request: Annotated[int, _MICROS] = 0
    """For each request, whatever its size."""


class Model(Part):
    """A model of this node."""

    id: ModelID
    """Local ID, unique on the node. Links, guardians and recipes name it together with the node."""
    public_id: ModelID = ""
    """What clients call it. Default: `id`. Models of several nodes with one public ID and equal hashes are one model."""
    backend: Annotated[str, Field(min_length=1, max_length=63)]
    """Name of the backend that answers for it."""
    backend_model: Annotated[str, Field(min_length=1, max_length=1024, pattern=r"^[^\x00-\x1f]+$")] = ""
    """What the backend calls it. Default: `id`."""
    capabilities: Annotated[list[Capability], Unique(), Field(min_length=1, max_length=8)] = [Capability.TEXT]
    """What it answers. Text with Vision is a multimodal text model: it reads images, and may be a guardian."""
    context_window: Annotated[int, Field(ge=1, le=100_000_000)] | None = None
    """Tokens that fit, question and answer together. A text model without it cannot be linked."""
    parallel: Annotated[int, Field(ge=1, le=1024)] | None = None
    """Requests that the backend runs at once. A text model with more than 1 cannot be linked."""
    vllm: VLLM | None = None
    """Read where `contextWindow` or `parallel` is not given."""
    weights_hash: Identity | None = None
    """Hash of the weights, such as `sha256:…`: tells whether two nodes hold the same checkpoint."""
    config_hash: Identity | None = None
    """Hash of what makes answers differ beside the weights. Default: computed from family, context window and parallelism."""
    assets: Annotated[list[Asset], Keyed(("path",)), Field(max_length=64)] = []
    """Files of the model, by verified hash."""
    price: Price | None = None
    """What a request costs. Unset = unpriced: conditions on cost decline."""

    @property
    def effective_context_window(self) -> int | None:
        """`contextWindow`, else what the vLLM configuration says."""
        if self.context_window is None and self.vllm is not None:
            return self.vllm.settings.max_model_length
        return self.context_window

    @property
    def effective_parallel(self) -> int | None:
        """`parallel`, else what the vLLM configuration says."""
        if self.parallel is None and self.vllm is not None:
            return self.vllm.settings.max_number_sequences
        return self.parallel

    @rule(
        cel=(
            "!has(self.contextWindow) || !has(self.vllm) || !has(self.vllm.settings) || "
            "!has(self.vllm.settings.maxModelLength) || self.vllm.settings.maxModelLength == self.contextWindow"
        ),
        message="contextWindow and vllm.settings.maxModelLength say different things: give one of them",
        field="contextWindow",
    )
    def one_context_window(self) -> bool:
        stated = None if self.vllm is None else self.vllm.settings.max_model_length
        return self.context_window is None or stated is None or stated == self.context_window

    @rule(
        cel=(
            "!has(self.parallel) || !has(self.vllm) || !has(self.vllm.settings) || "
            "!has(self.vllm.settings.maxNumberSequences) || self.vllm.settings.maxNumberSequences == self.parallel"
        ),
        message="parallel and vllm.settings.maxNumberSequences say different things: give one of them",
        field="parallel",
    )
    def one_parallelism(self) -> bool:
        stated = None if self.vllm is None else self.vllm.settings.max_number_sequences
        return self.parallel is None or stated is None or stated == self.parallel


class Runtime(Part):
    """How models come into memory on this node."""

    exclusive: bool = False
    """At most one model of this node is loaded at a time: loading one displaces the other. True for one GPU that holds one."""
    mode: BackendMode = BackendMode.EAGER
    """Eager starts backends with the router; LlamaSdCpp starts each with the first request that needs it."""
    startup_model: Annotated[str, Field(max_length=253)] = ""
    """Local ID of the model that is loaded at start; empty = none."""


class RouterNodeSpec(Part):
    """A node of the cluster: a router and the backends beside it."""

    role: Role
    """Standalone serves clients with its own models. Master does so with those of its slaves too, and decides lending.
    Slave stands beside a GPU and takes work from its master only. One Master or Standalone a namespace."""
    master_ref: MasterRef | None = None
    """The Master that this Slave registers with. Slave only, and required there."""
    token_secret_ref: SecretKeyRef | None = None
    """The cluster token, which all routers of a cluster share. In a cluster Master and Slave need it;
    `turnout up` makes its own."""
    public_url: RouterURL = ""
    """URL under which the other routers reach this one. Only for a router outside this cluster: pods labelled
    `turnout.dev/node: NAME` get the sidecar, and their URLs follow from the pods."""
    backends: Annotated[list[Backend], Keyed(("name",)), Field(max_length=32)] = []
    """Servers beside this router. None on a master that only routes."""
    models: Annotated[list[Model], Keyed(("id",)), Field(max_length=128)] = []
    """Models of this node. None on a master that only routes."""
    runtime: Runtime = Runtime()
    """How models come into memory on this node."""
    file_roots: Annotated[list[FolderPath], Unique(), Field(max_length=32)] = []
    """Folders that asset paths are under. Nothing outside them is listed, read or handed out."""
    shared_dir: FolderPath = ""
    """Folder that several nodes see, where assets are looked for first."""
    store_dir: FolderPath = ""
    """Folder of the router's database (decision log, samples, registry). Unset = in memory, nothing survives a restart."""
    settings: Settings | None = None
    """Settings of the cluster, pushed to the slaves. Master and Standalone only."""
    clients: SecretRef | None = None
    """API keys of clients: a Secret with `clients.yaml` (name, keySha256, roles, models, requestsPerMinute,
    tokensPerMinute, budgetMicrosPerDay). Master and Standalone only."""
    admins: SecretRef | None = None
    """People who may log in: a Secret with `users.yaml` (name, argon2id hash). Master and Standalone only."""
    tls: SecretRef | None = None
    """Certificate for clients and between routers: a Secret with `tls.crt`, `tls.key` and, for a private CA, `ca.crt`."""

    @rule(
        cel="self.role != 'Slave' || has(self.masterRef)",
        message="a Slave needs masterRef: the Master that it registers with",
        field="masterRef",
    )
    def slave_needs_master(self) -> bool:
        return self.role is not Role.SLAVE or self.master_ref is not None

    @rule(
        cel="self.role == 'Slave' || !has(self.masterRef)",
        message="only a Slave has masterRef: remove it, or set role to Slave",
        field="masterRef",
    )
    def only_slave_has_master(self) -> bool:
        return self.role is Role.SLAVE or self.master_ref is None

    @rule(
        cel="self.role != 'Slave' || !has(self.settings)",
        message="settings belong on the Master or Standalone: a Slave gets them from its master",
        field="settings",
    )
    def settings_on_master(self) -> bool:
        return self.role is not Role.SLAVE or self.settings is None

    @rule(
        cel="self.role != 'Slave' || (!has(self.clients) && !has(self.admins))",
        message="clients and admins belong on the Master or Standalone: a Slave takes work from its master only",
    )
    def access_on_master(self) -> bool:
        return self.role is not Role.SLAVE or (self.clients is None and self.admins is None)

    @rule(
        cel="!has(self.models) || self.models.all(m, has(self.backends) && self.backends.exists(b, b.name == m.backend))",
        message="a model names a backend that this node does not list under backends",
        field="models",
    )
    def models_name_backends(self) -> bool:
        declared = {backend.name for backend in self.backends}
        return all(model.backend in declared for model in self.models)

    @rule(
        cel=(
            "!has(self.runtime) || !has(self.runtime.startupModel) || self.runtime.startupModel == '' || "
            "(has(self.models) && self.models.exists(m, m.id == self.runtime.startupModel))"
        ),
        message="runtime.startupModel is not the id of a model of this node",
        field="runtime",
    )
    def startup_model_is_declared(self) -> bool:
        startup = self.runtime.startup_model
        return not startup or any(model.id == startup for model in self.models)


class Instance(StatusPart):
    """A pod, or outside router, of this node."""

    node_id: Annotated[str, Field(max_length=253)]
    """`NAME.POD`, or the node's name where there is one."""
    url: Annotated[str, Field(max_length=512)] = ""
    """Where the master reaches it."""
    healthy: bool = False
    """Whether the last poll was good."""
    reason: Annotated[str, Field(max_length=256)] = ""
    """Why it is not healthy."""
    version: Annotated[str, Field(max_length=64)] = ""
    """Build of its router."""
    config_generation: Annotated[int, Field(ge=0)] = 0
    """The configuration that it runs."""


class ModelStatus(StatusPart):
    """A model of this node as the cluster sees it."""

    id: Annotated[str, Field(max_length=253)]
    """Local ID."""
    public_id: Annotated[str, Field(max_length=256)]
    """The name that clients use, with its suffix where another model had the name first."""
    available: bool = False
    """Whether at least one instance can serve it."""
    reason: Annotated[str, Field(max_length=256)] = ""
    """Why it is not available."""


class RouterNodeStatus(Status):
    """What the operator saw of the node."""

    config_generation: Annotated[int, Field(ge=0)] = 0
    """The configuration that its routers should run."""
    serving: Annotated[str, Field(max_length=32)] = ""
    """Healthy instances out of all, such as `2/3`."""
    instances: Annotated[list[Instance], Keyed(("node_id",)), Field(max_length=128)] = []
    """Each pod, or outside router, of this node. Those that are ill come first where not all fit."""
    instances_left_out: Annotated[int, Field(ge=0)] = 0
    """How many more instances there are: a status stays under 64 KiB."""
    builds: Annotated[str, Field(max_length=256)] = ""
    """Builds of its routers; several during an update."""
    lanes: Annotated[str, Field(max_length=32)] = ""
    """Lanes in which a model of this node serves: Text, Image."""
    models_serving: Annotated[str, Field(max_length=32)] = ""
    """Models that at least one instance can serve, out of all, such as `3/4`."""
    models: Annotated[list[ModelStatus], Keyed(("id",)), Field(max_length=128)] = []
    """Each model of this node, with the name that clients use. Those that do not serve come first where not all fit."""
    models_left_out: Annotated[int, Field(ge=0)] = 0
    """How many more models there are; the master knows them all."""


class RouterNode(Resource):
    """A node: a router, the backends beside it and their models; on the Master or Standalone the settings of the cluster."""

    plural: ClassVar[str] = "routernodes"
    short: ClassVar[str] = "rn"
    columns: ClassVar[tuple[Column, ...]] = (
        Column("Role", ".spec.role", "What the router is in its cluster."),
        Column("Serving", ".status.serving", "Healthy instances out of all."),
        Column("Models", ".status.modelsServing", "Models that serve out of all."),
        Column("Lanes", ".status.lanes", "Lanes in which a model serves.", priority=1),
        Column("Build", ".status.builds", "Builds of its routers."),
        Column("Config", ".status.configGeneration", "The configuration that it should run.", "integer", priority=1),
        *condition_columns(),
    )

    kind: Literal["RouterNode"] = "RouterNode"
    spec: RouterNodeSpec
    status: RouterNodeStatus | None = None

    @rule(
        cel="self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$') && size(self.metadata.name) <= 63",
        message="the name of a RouterNode is one DNS label (a-z, 0-9, -; at most 63): it becomes a label value and a Service name",
    )
    def node_name_is_a_label(self) -> bool:
        return "." not in self.name and len(self.name) <= 63

    @rule(
        cel="!has(self.spec.masterRef) || self.spec.masterRef.name != self.metadata.name",
        message="masterRef names this node itself: name the Master",
    )
    def master_is_another_node(self) -> bool:
        return self.spec.master_ref is None or self.spec.master_ref.name != self.name
