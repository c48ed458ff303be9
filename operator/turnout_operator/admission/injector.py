"""Answers reviews with what the rounds found out about nodes.

A round may not have seen yet what was applied a moment ago (`kubectl apply` of a RouterNode and its Deployment in one file).
So a pod whose node is not known is judged by looking anew; every other pod costs no request.
"""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Collection, MutableMapping
from typing import Any

from turnout_operator.admission import review
from turnout_operator.children import RouterPods
from turnout_operator.injection import How, Nodes, inject, node_label

Look = Callable[[str], Awaitable[Nodes]]
"""A namespace's nodes, as they are at this moment."""


class Injector:
    """The answers."""

    def __init__(
        self, namespaces: Collection[str], pods: RouterPods, judged: MutableMapping[str, Nodes], look: Look
    ) -> None:
        """No namespaces = all of them. `judged`: what the last round of each namespace found out; it is written there while this reads."""
        self._namespaces = frozenset(namespaces)
        self._pods = pods
        self._look = look
        self._nodes = judged
        self._looking = asyncio.Lock()

    async def answer(self, document: object) -> dict[str, Any]:
        """To one AdmissionReview. Raises NoReview, and ApiError when the nodes cannot be read."""
        request = review.request_of(document)
        namespace, name = str(request.get("namespace", "")), node_label(request["object"])
        if name is None:
            return review.passed(request)
        if self._namespaces and namespace not in self._namespaces:
            return review.passed(request, f"turnout does not watch namespace {namespace}: the pod gets no sidecar")
        nodes = await self._nodes_with(namespace, name)
        how = How(self._pods.image, secrets.token_hex(16), self._pods.drain_timeout_s)
        return review.admitted(request, lambda pod: inject(pod, nodes, how))

    async def _nodes_with(self, namespace: str, name: str) -> Nodes:
        known = self._nodes.get(namespace)
        if known is not None and name in known.served:
            return known
        async with self._looking:  # a Deployment of many pods makes all of them ask at once
            known = self._nodes.get(namespace)
            if known is None or name not in known.served:
                self._nodes[namespace] = known = await self._look(namespace)
            return known
