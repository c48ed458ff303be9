"""The objects that the operator keeps for a RouterNode whose routers run in this cluster. Pure.

    wanted(node, config, how) ──► what there should be
    changes(node, wanted, present) ──► what to apply and to delete

| role | objects |
|---|---|
| Slave | a Service without an address, which names the pods labelled with the node, ready or not |
| Master, Standalone | a Deployment with one router, its Service, ServiceAccount, PodDisruptionBudget, its claim if asked, and where people sign in a RoleBinding, so that it may write what they change |

They belong to the RouterNode and go with it. A node with `publicURL` has a router elsewhere, and none of them.
"""

from turnout_operator.children.changes import Changes, ChildKey, changes, is_ours, key_of, left_behind
from turnout_operator.children.wanted import RouterPods, wanted

__all__ = ["Changes", "ChildKey", "RouterPods", "changes", "is_ours", "key_of", "left_behind", "wanted"]
