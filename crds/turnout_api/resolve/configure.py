"""The objects that are served → one configuration for each router.

The master's is whole. A slave's is its own slice: its models and backends, the cluster's settings, and of links and
guardians those that name it. Everything is sorted by name, so that equal objects give equal files.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from turnout_api import identity
from turnout_api.config import (
    AccessConfig,
    AdminConfig,
    AssetConfig,
    BackendConfig,
    BackendSection,
    ClusterConfig,
    FrontendConfig,
    GuardianConfig,
    LinkConfig,
    ListenConfig,
    ModelConfig,
    ModelsConfig,
    PoolConfig,
    PoolMemberConfig,
    PriceConfig,
    RecipeComponentConfig,
    RecipeConfig,
    RouterConfig,
    RuleConfig,
    TargetConfig,
)
from turnout_api.resolve.interface import Key, NodePlacement, Placement, Where
from turnout_api.resolve.world import config_hash_of
from turnout_api.resources import (
    Backend,
    FrontendModel,
    FrontendRule,
    Guardian,
    Model,
    ModelPool,
    Resource,
    RouterNode,
    RoutingLink,
    SplitRecipe,
    Target,
)
from turnout_api.routing.catalog import named_models
from turnout_api.vocabulary import Family, Role


def configure(
    served: Mapping[Key, Resource], *, placement: Placement, ledger: Mapping[str, list[str]], generation: int
) -> dict[str, RouterConfig]:
    """The configuration of each RouterNode that is served; none without a Master or Standalone."""
    objects = [served[key] for key in sorted(served)]
    nodes = [node for node in objects if isinstance(node, RouterNode)]
    master = next((node for node in nodes if node.spec.role is not Role.SLAVE), None)
    if master is None:
        return {}
    shared = _Shared(master, nodes, placement)
    whole = _whole(objects)
    configs = {}
    for node in nodes:
        declared = whole | {"names": dict(ledger)} if node is master else _slice(whole, node.name)
        configs[node.name] = RouterConfig(generation=generation, **shared.node(node), **declared)
    retired = _retired(configs, ledger)
    return configs | {master.name: configs[master.name].model_copy(update={"retired_names": retired})}


def _retired(configs: Mapping[str, RouterConfig], ledger: identity.Ledger) -> list[str]:
    """Names that the ledger keeps only so that nobody else gets them."""
    live = {name for name, _, _ in named_models(configs, ledger)}
    return sorted(set(identity.all_names(ledger)) - live)


class _Shared:
    """What all routers of the cluster are told alike, and each about itself."""

    def __init__(self, master: RouterNode, nodes: list[RouterNode], placement: Placement) -> None:
        self._where = placement.where
        self._places = {node.name: placement.place(node) for node in nodes}
        self._master_url = self._places[master.name].url
        self._slave_urls = [url for n in nodes if n is not master for url in self._places[n.name].slave_urls]
        settings = master.spec.settings
        given = settings.model_fields_set if settings else ()
        self._settings = {name: getattr(settings, name) for name in sorted(given)}

    def node(self, node: RouterNode) -> dict[str, Any]:
        """The sections that speak of one node."""
        placed = self._places[node.name]
        return {
            "cluster": self._cluster(node, placed),
            "listen": ListenConfig(
                host=placed.host,
                port=placed.port,
                tls_cert_file=placed.tls_cert_file,
                tls_key_file=placed.tls_key_file,
                health_host=placed.health_host,
                health_port=placed.health_port,
            ),
            "admin": AdminConfig() if node.spec.role is Role.SLAVE else _admin(placed),
            "access": AccessConfig() if node.spec.role is Role.SLAVE else _access(placed),
            "models": _models(node),
            "backend": BackendSection(
                mode=node.spec.runtime.mode,
                exclusive=node.spec.runtime.exclusive,
                backends=[_backend(backend, self._where) for backend in node.spec.backends],
            ),
        }

    def _cluster(self, node: RouterNode, placed: NodePlacement) -> ClusterConfig:
        role = node.spec.role
        return ClusterConfig(
            role=role,
            node_id=node.name,
            node=node.name,
            token_file=placed.token_file,
            token_previous_file=placed.token_previous_file,
            ca_file=placed.ca_file,
            master_url=self._master_url if role is Role.SLAVE else "",
            public_url=placed.url,
            slave_urls=self._slave_urls if role is Role.MASTER else [],
            store_dir=placed.store_dir or node.spec.store_dir,
            **self._settings,
        )


def _whole(objects: Iterable[Resource]) -> dict[str, list[Any]]:
    sections: dict[str, list[Any]] = {"frontends": [], "pools": [], "links": [], "guardians": [], "recipes": []}
    for resource in objects:
        match resource:
            case FrontendModel():
                sections["frontends"].append(_frontend(resource))
            case ModelPool():
                sections["pools"].append(_pool(resource))
            case RoutingLink():
                sections["links"].append(_link(resource))
            case Guardian():
                sections["guardians"].append(_guardian(resource))
            case SplitRecipe():
                sections["recipes"].append(_recipe(resource))
            case _:
                pass
    return sections


def _slice(whole: Mapping[str, list[Any]], node: str) -> dict[str, list[Any]]:
    """A guardian of the whole cluster names the node on which it answers."""
    return {
        "links": [link for link in whole["links"] if node in {link.owner_node, link.helper_node}],
        "guardians": [g for g in whole["guardians"] if node in {g.scope_node, g.guardian_node}],
    }


def _admin(placed: NodePlacement) -> AdminConfig:
    return AdminConfig(
        objects_url=placed.objects_url,
        objects_token_file=placed.objects_token_file,
        namespace=placed.objects_namespace,
    )


def _access(placed: NodePlacement) -> AccessConfig:
    return AccessConfig(
        gateway_key_file=placed.gateway_key_file, clients_file=placed.clients_file, admins_file=placed.admins_file
    )


def _models(node: RouterNode) -> ModelsConfig:
    return ModelsConfig(
        shared_dir=node.spec.shared_dir,
        file_roots=node.spec.file_roots,
        startup_model=node.spec.runtime.startup_model,
        local=[_model(node, model) for model in node.spec.models],
    )


def _model(node: RouterNode, model: Model) -> ModelConfig:
    return ModelConfig(
        id=model.id,
        public_id=model.public_id,
        backend=model.backend,
        backend_model=model.backend_model,
        capabilities=model.capabilities,
        context_window=model.effective_context_window,
        parallel=model.effective_parallel,
        weights_hash=model.weights_hash,
        config_hash=config_hash_of(node, model),
        assets=[AssetConfig(path=asset.path, hash=asset.hash) for asset in model.assets],
        price=PriceConfig(**model.price.model_dump()) if model.price else None,
    )


def _backend(backend: Backend, where: Where) -> BackendConfig:
    """In a cluster only family Process is started; locally `command` wins over `url`."""
    starts = backend.family is Family.PROCESS or not backend.url or (where is Where.LOCAL and bool(backend.command))
    return BackendConfig(
        name=backend.name,
        family=backend.family,
        url="" if starts else backend.url,
        command=backend.command if starts else [],
        env=backend.env if starts else {},
        start_timeout=backend.start_timeout,
        stop_timeout=backend.stop_timeout,
    )


def _frontend(frontend: FrontendModel) -> FrontendConfig:
    defaults = frontend.spec.defaults
    return FrontendConfig(
        name=frontend.name,
        model_name=frontend.model_name,
        rules=[_rule(rule) for rule in frontend.spec.rules],
        default_targets=_targets(defaults.targets if defaults else []),
    )


def _rule(rule: FrontendRule) -> RuleConfig:
    return RuleConfig(
        name=rule.name,
        when=rule.when.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_unset=True),
        action=rule.action.value,
        targets=_targets(rule.targets),
        deny_status=rule.deny_status,
        deny_message=rule.deny_message,
        jump_to=rule.jump_to or "",
        tag=rule.tag,
    )


def _targets(targets: Iterable[Target]) -> list[TargetConfig]:
    return [TargetConfig(model=target.model or "", pool=target.pool or "") for target in targets]


def _pool(pool: ModelPool) -> PoolConfig:
    members = [PoolMemberConfig(model=member.model, weight=member.weight) for member in pool.spec.members]
    return PoolConfig(name=pool.name, policy=pool.spec.policy, members=members)


def _link(link: RoutingLink) -> LinkConfig:
    spec = link.spec
    return LinkConfig(
        name=link.name,
        lane=spec.lane,
        owner_node=spec.owner.node,
        owner_model=spec.owner.model,
        helper_node=spec.helper.node,
        helper_model=spec.helper.model,
        load_if_unloaded=spec.load_if_unloaded,
        restore_after_borrow=spec.restore_after_borrow,
    )


def _guardian(guardian: Guardian) -> GuardianConfig:
    scope = guardian.spec.scope
    return GuardianConfig(
        name=guardian.name,
        scope_node=scope.model.node if scope.model else scope.node or "",
        scope_model=scope.model.model if scope.model else "",
        guardian_node=guardian.spec.guardian.node,
        guardian_model=guardian.spec.guardian.model,
    )


def _recipe(recipe: SplitRecipe) -> RecipeConfig:
    return RecipeConfig(
        name=recipe.name,
        public_id=recipe.spec.public_id,
        components=[
            RecipeComponentConfig(capability=part.capability, node=part.node, model=part.model)
            for part in recipe.spec.components
        ],
    )
