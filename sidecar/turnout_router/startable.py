"""Which configurations a router can run with, and which of two it takes. Pure; what it refuses, it says how to repair."""

from turnout_api.config import RouterConfig
from turnout_api.vocabulary import Role

DNS_PREFIX = "dns+"
FIXED_WHILE_RUNNING = ("role", "node_id", "store_dir")
"""Fields of `cluster` that another process is needed for."""


class RouterRefused(Exception):
    """A configuration that this router cannot run with; the message says what to do."""


def check_startable(config: RouterConfig) -> None:
    """Raise RouterRefused for what no router of that role can run with."""
    cluster = config.cluster
    if cluster.role is Role.SLAVE:
        if not cluster.master_url:
            raise RouterRefused("cluster.master_url is missing: a Slave registers there")
        if not cluster.public_url:
            raise RouterRefused("cluster.public_url is missing: the URL under which the master reaches this Slave")
    elif cluster.master_url:
        raise RouterRefused(f"cluster.master_url is for a Slave, and this router is a {cluster.role}")
    if cluster.slave_urls and cluster.role is not Role.MASTER:
        raise RouterRefused(f"cluster.slave_urls is for a Master, and this router is a {cluster.role}")


def check_change(old: RouterConfig, new: RouterConfig) -> None:
    """Raise RouterRefused for what needs another process."""
    check_startable(new)
    for name in FIXED_WHILE_RUNNING:
        if getattr(old.cluster, name) != getattr(new.cluster, name):
            raise RouterRefused(f"cluster.{name} cannot change while the router runs: restart it")
    if old.listen != new.listen:
        raise RouterRefused("listen cannot change while the router runs: restart it")


def newer(given: RouterConfig, kept: RouterConfig | None) -> RouterConfig:
    """The higher generation of the configuration that was given and the one that the store kept."""
    if kept is None or kept.cluster.node_id != given.cluster.node_id or kept.generation <= given.generation:
        return given
    return kept
