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
from turnout_operator.known import Known

Look = Callable[[str], Awaitable[Known]]
"""A namespace as it is at this moment."""


class Injector:
    """The answers."""

    def __init__(
        self, namespaces: Collection[str], pods: RouterPods, judged: MutableMapping[str, Known], look: Look
    ) -> None:
        """No namespaces = all of them. `judged`: what the last round of each namespace found out; it is written there while this reads."""
        self._namespaces = frozenset(namespaces)
        self._pods = pods
        self._look = look
        self._judged = judged
        self._looked: dict[str, Known] = {}
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
        known = self._newest(namespace)
        if name in known.nodes.served:
            return known.nodes
        async with self._looking:  # a Deployment of many pods makes all of them ask at once
            known = self._newest(namespace)
            if name not in known.nodes.served:
                self._looked[namespace] = known = await self._look(namespace)
            return known.nodes

    def _newest(self, namespace: str) -> Known:
        found = (known for known in (self._judged.get(namespace), self._looked.get(namespace)) if known is not None)
        return max(found, key=lambda known: known.read_at, default=Known())
