"""What the master's links and settings mean on each router: between instances there, in force here.

A link names two nodes, and a node may be several pods: the master makes one link of it for each pair of instances and
pushes to every router those that name it, with the settings of lending that hold in the cluster. A router works with
them as if they stood in its own configuration, unless that is newer than the master's: then the master catches up.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from turnout_api.config import ClusterConfig, LinkConfig, RouterConfig
from turnout_api.lending import ModelRef
from turnout_api.wire import LinkRecord, LinksPush
from turnout_router.lending.links import Link

_PREFIXES: Final = ("scheduling_", "offload_")
_NAMES: Final = frozenset({"analytics"})


def push_of(config: RouterConfig, instances: Mapping[str, Sequence[str]]) -> LinksPush:
    """Everything that the master has to say; `instances` are the node IDs of each node's name."""
    return LinksPush(
        generation=config.generation,
        links=expanded(config.links, instances),
        settings=_lending_settings(config.cluster.model_dump(mode="json", exclude_unset=True)),
    )


def for_node(push: LinksPush, names: Iterable[str]) -> LinksPush:
    """Of it, what the router with these names (its node's and its own ID) needs."""
    here = frozenset(names)
    mine = [link for link in push.links if link.owner_node in here or link.helper_node in here]
    return push.model_copy(update={"links": mine})


def expanded(links: Iterable[LinkConfig], instances: Mapping[str, Sequence[str]]) -> list[LinkRecord]:
    """One record for each pair of instances; a name of which no instance is known stands for itself."""
    return [
        LinkRecord(**{**link.model_dump(), "owner_node": owner, "helper_node": helper})
        for link in links
        for owner in instances.get(link.owner_node) or (link.owner_node,)
        for helper in instances.get(link.helper_node) or (link.helper_node,)
        if owner != helper
    ]


def in_force(config: RouterConfig, push: LinksPush | None) -> RouterConfig:
    """The router's own configuration with the master's links and settings. Raises ValidationError for bad settings."""
    if push is None or push.generation < config.generation:
        return config
    own = config.cluster.model_dump(exclude_unset=True)
    told = {name: value for name, value in push.settings.items() if name in ClusterConfig.model_fields}
    kept = {name: value for name, value in own.items() if name not in _lending_settings(own)}
    cluster = ClusterConfig.model_validate(kept | _lending_settings(told))
    links = [LinkConfig(**link.model_dump()) for link in push.links]
    return config.model_copy(update={"cluster": cluster, "links": links})


def as_links(records: Iterable[LinkRecord | LinkConfig]) -> tuple[Link, ...]:
    """As the deciding code has them."""
    return tuple(
        Link(
            name=record.name,
            lane=record.lane,
            owner=ModelRef(record.owner_node, record.owner_model),
            helper=ModelRef(record.helper_node, record.helper_model),
            may_load=record.load_if_unloaded,
            restore=record.restore_after_borrow,
        )
        for record in records
    )


def _lending_settings(cluster: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in cluster.items() if name.startswith(_PREFIXES) or name in _NAMES}
