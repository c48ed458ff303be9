"""The router's configuration: one file that `resolve` writes and a person can write by hand.

Names are those of the requirement texts, in snake case (`cluster.node_id`, `models.startup_model`, `backend.mode`).
Secrets never stand in it: it names files. Durations read `10s`. An unknown key is refused, with its name, so that a
misspelt setting never silently keeps its default.
"""

from dataclasses import fields, replace
from enum import StrEnum
from typing import Annotated, Literal, Self, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from turnout_api.durations import Duration
from turnout_api.hashing import config_hash
from turnout_api.strategy import STRATEGIES, StrategySet
from turnout_api.urls import OPTIONAL_URL_PATTERN, SLAVE_URL_PATTERN
from turnout_api.vocabulary import (
    BackendMode,
    Capability,
    Family,
    Lane,
    OffloadOrder,
    OffloadStrategy,
    Policy,
    RestorePricing,
    Role,
)

MEBIBYTE = 1024 * 1024
Word = TypeVar("Word", bound=StrEnum)
_OptionalURL = Annotated[str, Field(pattern=OPTIONAL_URL_PATTERN)]
_SlaveURL = Annotated[str, Field(pattern=SLAVE_URL_PATTERN)]


def _spelt(words: type[Word]) -> BeforeValidator:
    """Accept the spellings of the requirement texts too: `master`, `llama_sdcpp`, `round-robin`."""
    known = {str(word).lower(): word for word in words}

    def read(value: object) -> object:
        return known.get(value.replace("_", "").replace("-", "").lower(), value) if isinstance(value, str) else value

    return BeforeValidator(read)


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class ClusterConfig(_Section):
    """`cluster`: who this router is, whom it knows, and the settings that the master shares with its slaves."""

    role: Annotated[Role, _spelt(Role)] = Role.STANDALONE
    node_id: Annotated[str, Field(min_length=1, max_length=253)]
    """Unique in the cluster. Several pods of one node are `NAME.POD`."""
    node: str = ""
    """The name of the RouterNode; defaults to `node_id`."""
    token_file: str = ""
    """File with the cluster token. Required for Master and Slave."""
    token_previous_file: str = ""
    """File with the token that is being rotated out; both are accepted."""
    ca_file: str = ""
    """Certificates that are trusted where an URL is https, beside those of the system."""
    master_url: _OptionalURL = ""
    """Where a Slave registers."""
    public_url: _OptionalURL = ""
    """Where the master reaches this router. Required for a Slave."""
    slave_urls: list[_SlaveURL] = []
    """URLs that may register at this Master. `dns+http://HOST:PORT` stands for every address of HOST."""
    store_dir: str = ""
    """Folder of `router.db`; empty = in memory, nothing survives a restart."""

    sync_interval: Duration = 10.0
    """A slave registers again this often."""
    health_interval: Duration = 5.0
    """A master polls each slave, and a router probes its own backends, this often."""
    poll_timeout: Duration = 5.0
    """A poll without an answer for this long has failed."""
    max_queue_depth: Annotated[int, Field(ge=1, le=100_000)] = 1024
    """Requests of one model that wait in a router; the next one gets 429."""
    max_queue_wait: Duration = 600.0
    """A request that waited this long gets 429."""
    max_body_bytes: Annotated[int, Field(ge=1024, le=2 * 1024 * MEBIBYTE)] = 64 * MEBIBYTE
    """A larger request body gets 413 and is not read to its end."""
    explanation_headers: bool = True
    """Whether answers carry `x-turnout-model`, `x-turnout-node`, `x-turnout-rule`."""
    endpoint_policy: Annotated[Policy, _spelt(Policy)] = Policy.ROUND_ROBIN
    """How one model's endpoints share its requests."""
    analytics: bool = True
    refusal_patterns: dict[Family, list[str]] = {}
    """What counts as "this model cannot read images", by backend family."""

    offload_strategy: Annotated[OffloadStrategy, _spelt(OffloadStrategy)] = OffloadStrategy.CLASSIC
    scheduling_backend_depth: Annotated[int, Field(ge=1, le=64)] | None = None
    scheduling_refresh_interval: Duration = 10.0
    scheduling_min_samples: Annotated[int, Field(ge=1, le=100_000)] = 20
    scheduling_sample_window: Duration = 86_400.0
    scheduling_lease_ttl: Duration = 30.0
    scheduling_context_reserve: Annotated[int, Field(ge=0, le=1_000_000)] = 256
    offload_probe_idle: Duration = 5.0
    offload_faster_helper_slots: Annotated[int, Field(ge=1, le=3)] = 2
    offload_slower_helper_slots: Annotated[int, Field(ge=1, le=64)] = 1
    offload_probe_slots: Annotated[int, Field(ge=1, le=1)] = 1
    offload_hold_for_faster_helper: bool = True
    offload_restore_delay: Duration | None = None
    offload_lent_stall_timeout: Duration = 180.0
    offload_decisions_retention: Duration = 2_592_000.0
    offload_decisions_max_rows: Annotated[int, Field(ge=1, le=100_000_000)] = 1_000_000
    requests_retention: Duration = 2_592_000.0
    requests_max_rows: Annotated[int, Field(ge=1000, le=1_000_000_000)] = 10_000_000
    offload_max_helpers: Annotated[int, Field(ge=1, le=64)] | None = None
    offload_borrowed_beyond_recall: Annotated[int, Field(ge=1, le=64)] | None = None
    offload_order: Annotated[OffloadOrder, _spelt(OffloadOrder)] | None = None
    offload_restore_pricing: Annotated[RestorePricing, _spelt(RestorePricing)] | None = None
    offload_switch_hazard: Annotated[float, Field(ge=0, le=1)] | None = None
    offload_probe_until_fit: bool | None = None
    offload_faster_tolerance: Annotated[float, Field(ge=0, le=1)] | None = None
    offload_cut_off_counts_ahead: bool | None = None
    offload_own_wait_limit: Duration = 120.0
    offload_suspension: Duration = 1800.0

    @property
    def strategy_set(self) -> StrategySet:
        """The settings that `offload_strategy` decides about, as they are in force: given by hand, else the strategy's."""
        given = {field.name: getattr(self, field.name) for field in fields(StrategySet)}
        return replace(
            STRATEGIES[self.offload_strategy], **{n: value for n, value in given.items() if value is not None}
        )

    @property
    def backend_depth(self) -> int:
        """`scheduling_backend_depth` as it is in force."""
        return self.strategy_set.scheduling_backend_depth

    @model_validator(mode="after")
    def _lease_outlives_two_ticks(self) -> Self:
        if self.scheduling_lease_ttl < 2 * self.scheduling_refresh_interval:
            raise ValueError(
                f"scheduling_lease_ttl ({self.scheduling_lease_ttl:g}s) must be at least twice "
                f"scheduling_refresh_interval ({self.scheduling_refresh_interval:g}s), else a lease ends between two ticks"
            )
        return self


class AssetConfig(_Section):
    """A file that the model is made of."""

    path: str
    hash: str
    """`sha256:…`; part of the model's identity."""


class PriceConfig(_Section):
    """Millionths of the currency; None = unpriced."""

    input_micros_per_million_tokens: int = 0
    output_micros_per_million_tokens: int = 0
    micros_per_request: int = 0


def _stands_in_a_header(name: str) -> str:
    if any(ord(character) < 0x20 or ord(character) == 0x7F for character in name):
        raise ValueError("a name holds no control character: it stands in headers")
    if name != name.strip():
        raise ValueError("a name neither begins nor ends with a space: headers lose it")
    return name


Name = Annotated[str, Field(max_length=253), AfterValidator(_stands_in_a_header)]


class ModelConfig(_Section):
    """One model of this node."""

    id: Annotated[Name, Field(min_length=1)]
    """The local ID: unique on the node."""
    public_id: Name = ""
    """What clients call it; defaults to `id`."""
    backend: str
    backend_model: str = ""
    """What the backend calls it; defaults to `id`."""
    capabilities: list[Capability] = [Capability.TEXT]
    """What the model can answer. A request that needs another capability is refused before any backend sees it."""
    context_window: int | None = None
    """Tokens of prompt and answer together."""
    parallel: int | None = None
    """Requests that the backend runs at once for this model."""
    weights_hash: str | None = None
    config_hash: str = ""
    """Any text; left out = computed from this entry. Two models are one when public ID, this hash, the weights hash and the assets' hashes are the same."""
    assets: list[AssetConfig] = []
    price: PriceConfig | None = None

    @property
    def public_name(self) -> str:
        """The declared public ID, before any suffix."""
        return self.public_id or self.id

    @property
    def backend_name(self) -> str:
        """The name that goes into the request to the backend."""
        return self.backend_model or self.id


MODEL_PLACEHOLDER = "${MODEL}"


class BackendConfig(_Section):
    """A server on localhost: reached by `url`, or started from `command`."""

    name: Annotated[str, Field(min_length=1, max_length=63)]
    family: Family
    """What kind of server it is: see `backends.md`."""
    url: _OptionalURL = ""
    command: list[str] = []
    """Started, supervised and stopped by the router. `${PORT}` is replaced; `${MODEL}` makes it one process a model.
    A process of several models may switch them: see `backends.md`."""
    env: dict[str, str] = {}
    start_timeout: Duration = 600.0
    """A process that is not ready after this long is stopped, and its load has failed."""
    stop_timeout: Duration = 10.0
    """Between SIGTERM and SIGKILL."""

    @model_validator(mode="after")
    def _is_reachable(self) -> Self:
        if bool(self.url) == bool(self.command):
            raise ValueError(f"backend {self.name}: give either url or command")
        return self

    @property
    def one_process(self) -> bool:
        """One process, started by the router, serves all of its models."""
        return bool(self.command) and not any(MODEL_PLACEHOLDER in part for part in (*self.command, *self.env.values()))


class ModelsConfig(_Section):
    """The models of this node."""

    config_dir: str = ""
    """Folder of further model entries, one YAML file each."""
    shared_dir: str = ""
    """Where assets are shared with other pods."""
    file_roots: list[str] = []
    """Folders that the inventory may show."""
    startup_model: str = ""
    """Local ID of the model that is loaded at start; empty = none."""
    local: list[ModelConfig] = []


class BackendSection(_Section):
    """The servers behind the models, and how they share the node."""

    mode: Annotated[BackendMode, _spelt(BackendMode)] = BackendMode.EAGER
    """`Eager`: processes start with the router. `LlamaSdCpp`: each starts with the first request that needs it."""
    exclusive: bool = False
    """At most one model is loaded at a time on this node."""
    backends: list[BackendConfig] = []


class LinkConfig(_Section):
    """One owner model may lend queued requests to one helper model."""

    name: str
    lane: Lane
    owner_node: str
    owner_model: str
    helper_node: str
    helper_model: str
    load_if_unloaded: bool = True
    restore_after_borrow: bool = True


class TargetConfig(_Section):
    """A public ID or a pool, one of the two."""

    model: str = ""
    pool: str = ""


class RuleConfig(_Section):
    """One rule of a frontend model; the first whose conditions all hold decides."""

    name: Name
    when: dict[str, object] = {}
    action: Literal["Route", "Deny", "Jump"] = "Route"
    targets: list[TargetConfig] = []
    deny_status: int | None = None
    deny_message: str = ""
    jump_to: str = ""
    tag: str = ""


class FrontendConfig(_Section):
    """A client-facing name backed by ordered rules."""

    name: Name
    model_name: Name
    rules: list[RuleConfig] = []
    default_targets: list[TargetConfig] = []


class PoolMemberConfig(_Section):
    """A member of a pool, by public ID."""

    model: str
    weight: int = 1


class PoolConfig(_Section):
    """A named group of models with one policy."""

    name: str
    policy: Policy | None = None
    """Unset = a split by weight."""
    members: list[PoolMemberConfig] = []


class GuardianConfig(_Section):
    """Which multimodal model answers image requests for a model, a node or (no scope) the cluster."""

    name: str
    scope_node: str = ""
    scope_model: str = ""
    guardian_node: str
    guardian_model: str


class RecipeComponentConfig(_Section):
    """Who answers requests of one capability."""

    capability: Capability
    node: str
    model: str


class RecipeConfig(_Section):
    """One public name whose components live on different nodes."""

    name: str
    public_id: str
    components: list[RecipeComponentConfig] = []


class AccessConfig(_Section):
    """Files that say who may call. Their shapes are at the end of `docs/configuration.md`."""

    gateway_key_file: str = ""
    """The gateway master key: one API key that may call every model. At least 16 bytes, as tokens are."""
    clients_file: str = ""
    """API keys by their SHA-256."""
    admins_file: str = ""
    """People who may sign in, with argon2id hashes."""


class AdminConfig(_Section):
    """`admin`: where changes of people are kept. Written by `turnout up` and by the operator."""

    objects_url: _OptionalURL = ""
    """Who is asked to change frontend models, pools, links and guardians: `turnout up`. Without this and `namespace` nobody changes them."""
    objects_token_file: str = ""
    """What is shown there."""
    namespace: str = ""
    """In a cluster: the namespace whose custom resources are changed."""
    api_server_url: _OptionalURL = "https://kubernetes.default.svc"
    service_account_dir: str = "/var/run/secrets/kubernetes.io/serviceaccount"
    """Holds `token` and `ca.crt`, with which the API server is asked."""


class ListenConfig(_Section):
    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 8900
    """Clients and the cluster; 0 = any free port."""
    tls_cert_file: str = ""
    """Certificate, with its chain, for `port`; empty = no TLS. Read again when it changes."""
    tls_key_file: str = ""
    """Its key."""
    health_host: str = "127.0.0.1"
    health_port: Annotated[int, Field(ge=0, le=65535)] = 8901
    """`/healthz`, `/readyz`, `/metrics`."""

    @model_validator(mode="after")
    def _certificate_has_a_key(self) -> Self:
        if bool(self.tls_cert_file) != bool(self.tls_key_file):
            raise ValueError("listen: tls_cert_file and tls_key_file go together")
        return self


class RouterConfig(_Section):
    """Everything that one router needs to know."""

    generation: Annotated[int, Field(ge=0, lt=2**63)] = 0
    """Only grows; a router takes the higher of what it stored and what it is given."""
    cluster: ClusterConfig
    listen: ListenConfig = ListenConfig()
    access: AccessConfig = AccessConfig()
    admin: AdminConfig = AdminConfig()
    models: ModelsConfig = ModelsConfig()
    backend: BackendSection = BackendSection()
    names: dict[str, list[str]] = {}
    """Identity hashes of each public ID in the order first seen: the first keeps the bare name (see `identity`)."""
    retired_names: list[str] = []
    """Names that were given out and that no node has now. A client that asks for one gets 404, not 503."""
    frontends: list[FrontendConfig] = []
    pools: list[PoolConfig] = []
    links: list[LinkConfig] = []
    guardians: list[GuardianConfig] = []
    recipes: list[RecipeConfig] = []

    def hash_of(self, model: ModelConfig) -> str:
        """The model's `config_hash`, given or computed."""
        family = next(backend.family for backend in self.backend.backends if backend.name == model.backend)
        return model.config_hash or config_hash(
            family=family, context_window=model.context_window, parallel=model.parallel
        )

    @model_validator(mode="after")
    def _names_agree(self) -> Self:
        backends = {backend.name for backend in self.backend.backends}
        if len(backends) != len(self.backend.backends):
            raise ValueError("backend.backends: two backends have one name")
        seen: set[str] = set()
        for model in self.models.local:
            if model.id in seen:
                raise ValueError(f"models.local: {model.id} is there twice")
            if model.backend not in backends:
                raise ValueError(f"models.local: {model.id} names backend {model.backend!r}, which is not declared")
            seen.add(model.id)
        if self.models.startup_model and self.models.startup_model not in seen:
            raise ValueError(f"models.startup_model: {self.models.startup_model!r} is not a model of this node")
        return self
