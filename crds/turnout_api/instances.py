"""What a router in a pod is told by its environment, and where it finds things: what the operator writes and a router reads.

All pods of a node have one configuration, which says nothing of a single pod. So each router learns from its pod's
environment which instance it is: its node ID is `NAME.POD`, its URL the pod's address.
"""

POD_NAME_VARIABLE = "TURNOUT_POD_NAME"
"""Name of the pod. Set = the router is one instance of several that its node may have."""
POD_ADDRESS_VARIABLE = "TURNOUT_POD_IP"
"""Where the master reaches it, unless the configuration gives `cluster.public_url`."""
DRAIN_KEY_VARIABLE = "TURNOUT_DRAIN_KEY"
"""What a caller of `DRAIN_PATH` must know."""
DRAIN_PATH = "/drain"
"""On the health port: takes nothing new, and answers once nothing runs any more. For preStop hooks, which know no token."""
DRAIN_KEY_HEADER = "x-turnout-drain-key"

ROUTER_PORT, HEALTH_PORT = 8900, 8901
MOUNTS = "/etc/turnout"
"""Folder with one folder for each Secret."""
ROUTER_MOUNT, TOKEN_MOUNT, CLIENTS_MOUNT, ADMINS_MOUNT = "router", "token", "clients", "admins"
ROUTER_FILE = "router.yaml"
"""The configuration, in `ROUTER_MOUNT`."""
PACKED_SUFFIX = ".gz"
"""After `ROUTER_FILE` where the configuration is compressed."""


def instance_id(node: str, pod: str) -> str:
    """The node ID of a pod's router."""
    return f"{node}.{pod}"
