"""Which pod this router is in. Pure.

A node's pods share one configuration, delivered by mount and by nudge. What differs between them is put into each
configuration that a pod's router takes, wherever it comes from: its node ID, and its URL.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from turnout_api.config import RouterConfig
from turnout_api.instances import DRAIN_KEY_VARIABLE, POD_ADDRESS_VARIABLE, POD_NAME_VARIABLE, instance_id


@dataclass(frozen=True, slots=True)
class Instance:
    """All empty = a router whose configuration says everything."""

    pod: str = ""
    address: str = ""
    drain_key: str = ""
    """Who knows it may have this router drain; empty = only holders of the cluster token may."""

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> "Instance":
        """As the environment says."""
        return cls(
            pod=environment.get(POD_NAME_VARIABLE, ""),
            address=environment.get(POD_ADDRESS_VARIABLE, ""),
            drain_key=environment.get(DRAIN_KEY_VARIABLE, ""),
        )

    def place(self, config: RouterConfig) -> RouterConfig:
        """The configuration as it is for this pod; placing twice is placing once."""
        if not self.pod:
            return config
        cluster = config.cluster
        node = cluster.node or cluster.node_id
        told = {"node": node, "node_id": instance_id(node, self.pod)}
        if self.address and not cluster.public_url:
            host = f"[{self.address}]" if ":" in self.address else self.address
            told["public_url"] = f"http://{host}:{config.listen.port}"
        return RouterConfig.model_validate(config.model_dump() | {"cluster": cluster.model_dump() | told})
