"""Names that the operator writes into a cluster. Others may rely on them: a name that changes leaves things behind."""

from turnout_api.resources import GROUP

FIELD_MANAGER = "turnout-operator"
"""Owner of every field that the operator applies."""
STATE_SECRET = "turnout-state"  # noqa: S105 - the name of a Secret
"""Of each namespace: accepted specs, public names and generations. Deleting it forgets them."""
ROUTER_KEY = "router.yaml"
"""Key of a router's configuration in its Secret."""
HASH_ANNOTATION = f"{GROUP}/config-hash"
GENERATION_ANNOTATION = f"{GROUP}/config-generation"
LABELS = {"app.kubernetes.io/managed-by": FIELD_MANAGER, "app.kubernetes.io/part-of": "turnout"}
TOKEN_MOUNT, CLIENTS_MOUNT, ADMINS_MOUNT = "token", "clients", "admins"
"""Folders under the mounts' root in a router's container: one for each Secret that its RouterNode names."""
MOUNTS = "/etc/turnout"


def router_secret(node: str) -> str:
    """Name of the Secret with the configuration of a node's routers."""
    return f"turnout-router-{node}"
