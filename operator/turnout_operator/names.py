"""Names that the operator writes into a cluster. Others may rely on them: a name that changes leaves things behind."""

from turnout_api.instances import ROUTER_FILE
from turnout_api.resources import GROUP

FIELD_MANAGER = "turnout-operator"
"""Owner of every field that the operator applies."""
STATE_SECRET = "turnout-state"  # noqa: S105 - the name of a Secret
"""Of each namespace: accepted specs, public names and generations. Deleting it forgets them."""
ROUTER_KEY = ROUTER_FILE
"""Key of a router's configuration in its Secret."""
HASH_ANNOTATION = f"{GROUP}/config-hash"
GENERATION_ANNOTATION = f"{GROUP}/config-generation"
LABELS = {"app.kubernetes.io/managed-by": FIELD_MANAGER, "app.kubernetes.io/part-of": "turnout"}
NODE_LABEL = f"{GROUP}/node"
"""On pods: the RouterNode whose sidecar they get, and whose instances they are."""
MASTER_LABEL = f"{GROUP}/router"
"""On what the operator makes for a RouterNode, the pods of a master among it."""
OBJECT_HASH_ANNOTATION = f"{GROUP}/applied-hash"
"""Of an object as it was applied."""
RESTART_HASH_ANNOTATION = f"{GROUP}/restart-hash"
"""In a master's pod template: of the configuration that a running router cannot take."""
STORE_SIZE_ANNOTATION, STORE_CLASS_ANNOTATION = f"{GROUP}/store-size", f"{GROUP}/store-class"
"""On a Master or Standalone: that its store is kept in a claim of that size and class."""
SIDECAR = "turnout-router"
"""Name of the injected container."""
NODE_VARIABLE = "TURNOUT_NODE"
"""In the sidecar's environment: the node that it was made for."""
STORE_VOLUME = "turnout-store"
"""The volume for `storeDir`; a pod that has one of this name keeps it."""


def router_secret(node: str) -> str:
    """Name of the Secret with the configuration of a node's routers."""
    return f"turnout-router-{node}"


def router_object(node: str) -> str:
    """Name of what else there is for a node's routers: its Service alone has the name of the node."""
    return f"turnout-router-{node}"
