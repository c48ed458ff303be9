"""The sidecar into pod templates: one pure function, called by the webhook and by `turnout inject`.

    node_of(template, nodes) ──► which RouterNode, or a refusal
    inject(template, nodes, how) ──► the template with a router in it, and what its author should know

What is found is kept: nothing is taken out, replaced or reordered. Injecting twice is injecting once.
"""

from turnout_operator.injection.inject import How, Injected, inject, is_injected, made_for, node_label
from turnout_operator.injection.nodes import InjectionRefused, Nodes

__all__ = ["How", "Injected", "InjectionRefused", "Nodes", "inject", "is_injected", "made_for", "node_label"]
