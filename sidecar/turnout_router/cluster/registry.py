"""Who is in the cluster, as its master knows it. Pure: events with `now` in, answers and a new routing table out.

Rules (spec: Registration and health):

1. Only URLs that the master was configured with may register: `slave_urls`, and what its `dns+` entries resolve to.
2. A node is healthy from a good registration or poll until a poll, or its authorization, fails.
3. Every model of an unhealthy node is unavailable until the next good poll. A registration is no poll: that a slave
   reaches its master does not say that the master reaches it, so it is polled at once.
4. One node ID belongs to one live URL; a second URL with it is refused (`node_id_conflict`). Once the first is down, the
   node has moved, and what it advertised at the first is forgotten.
5. Nodes that leave the configuration leave the table at once; names that they had stay in the ledger.

The order of nodes in the table, and so of suffixes, is that of their first registration.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace

import orjson

from turnout_api import identity
from turnout_api.wire import ModelRecord, NodeHealth, PublicModel, Snapshot
from turnout_router.cluster import table
from turnout_router.cluster.table import NodeModels, RoutingTable
from turnout_router.upstream.interface import Origin

NEVER_SEEN = "not seen yet: no registration and no good poll"


class RegistrationRefused(Exception):
    """A registration that is not taken."""

    status = 403
    code = "url_not_permitted"


class UrlNotPermitted(RegistrationRefused):
    """The URL is not one that the master was configured with."""


class NodeIdConflict(RegistrationRefused):
    """Another live URL, or the master itself, has this node ID."""

    status = 409
    code = "node_id_conflict"


@dataclass(frozen=True, slots=True)
class Node:
    """A configured URL and what is known of it."""

    url: str
    healthy: bool = False
    reason: str = NEVER_SEEN
    last_seen: float | None = None
    snapshot: Snapshot | None = None


@dataclass(slots=True)
class Registry:
    """The state, and the events that change it. `table` and `ledger` are always current."""

    node_id: str
    node: str
    ledger: dict[str, list[str]] = field(default_factory=dict)
    table: RoutingTable = field(default_factory=RoutingTable)
    holders: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict)
    """Who declared what last: (node ID, local ID) → (public ID, identity); a model that is edited keeps its name."""
    _nodes: dict[str, Node] = field(default_factory=dict)
    _local: Sequence[ModelRecord] = ()
    _given: identity.Ledger | None = None
    _taken: Collection[str] = ()
    _retired: Collection[str] = ()
    _remembered: str | None = None

    def permit(
        self,
        urls: Iterable[str],
        names: identity.Ledger,
        *,
        taken: Collection[str] = (),
        retired: Collection[str] = (),
    ) -> None:
        """Take the URLs that may register and the names that the configuration gives; forget other URLs.

        `taken` are names of frontend models and recipes, `retired` those of models that are no longer declared.
        """
        self._taken, self._retired = taken, retired
        wanted = [normalise(url) for url in urls]
        self._nodes = {url: self._nodes.get(url, Node(url)) for url in dict.fromkeys(wanted)}
        for public_id, hashes in names.items() if names != self._given else ():
            known = self.ledger.get(public_id, [])
            self.ledger[public_id] = [*hashes, *(h for h in known[len(hashes) :] if h not in hashes)]
        self._given = names
        self._rebuild()

    def remembered(self) -> str:
        """The names, as text to keep over restarts. Computed anew only when they changed."""
        if self._remembered is None:
            declared = [[*holder, *pair] for holder, pair in self.holders.items()]
            self._remembered = orjson.dumps({"names": self.ledger, "declared": declared}).decode()
        return self._remembered

    def recall(self, remembered: str) -> None:
        """Take what `remembered` gave before the restart; "" = nothing."""
        if remembered:
            kept = orjson.loads(remembered)
            self.ledger = kept["names"]
            self.holders = {(node, local): (public, known) for node, local, public, known in kept["declared"]}

    def has_met_all(self) -> bool:
        """Whether each URL was heard, or could not be reached."""
        return all(node.reason != NEVER_SEEN for node in self._nodes.values())

    def urls(self) -> list[str]:
        """Every URL that is polled."""
        return list(self._nodes)

    def set_local(self, records: Sequence[ModelRecord]) -> None:
        """Take the models of this node, when they changed."""
        if list(records) != list(self._local):
            self._local = tuple(records)
            self._rebuild()

    def on_registered(self, snapshot: Snapshot, now: float) -> bool:
        """A slave registered. True when its last poll failed: poll it now. Raises RegistrationRefused."""
        try:
            url = normalise(snapshot.url)
        except ValueError:
            url = ""
        if url not in self._nodes:
            raise UrlNotPermitted(f"{snapshot.url} is not in cluster.slave_urls of {self.node_id}")
        self._refuse_conflict(url, snapshot)
        before = self._nodes[url]
        if before.healthy or before.reason == NEVER_SEEN:
            self._take(url, snapshot, now)
            return False
        self._put(replace(before, snapshot=_its_own(snapshot)))
        return True

    def on_polled(self, url: str, snapshot: Snapshot, now: float) -> None:
        """A poll of a configured URL went well."""
        url = normalise(url)
        if url not in self._nodes:
            return
        try:
            self._refuse_conflict(url, snapshot)
        except NodeIdConflict as conflict:
            self.on_poll_failed(url, str(conflict))
            return
        self._take(url, snapshot, now)

    def on_poll_failed(self, url: str, reason: str) -> bool:
        """A poll failed, or its authorization did. True when the node was healthy until now."""
        node = self._nodes.get(normalise(url))
        if node is None:
            return False
        was = node.healthy
        self._nodes[node.url] = replace(node, healthy=False, reason=reason)
        if was:
            self._rebuild()
        return was

    def health(self, now: float) -> list[NodeHealth]:
        """The nodes as `GET status` shows them."""
        return [
            NodeHealth(
                node_id=node.snapshot.node_id if node.snapshot else "",
                node=node.snapshot.node if node.snapshot else "",
                url=node.url,
                healthy=node.healthy,
                reason=node.reason,
                last_seen_s=None if node.last_seen is None else now - node.last_seen,
                version=node.snapshot.version if node.snapshot else None,
                generation=node.snapshot.generation if node.snapshot else None,
            )
            for node in self._nodes.values()
        ]

    def instances(self) -> dict[str, Node]:
        """The other nodes that are known, by node ID."""
        return {node.snapshot.node_id: node for node in self._nodes.values() if node.snapshot}

    def public_models(self) -> list[PublicModel]:
        """The names that clients may use."""
        return [
            PublicModel(name=m.name, nodes=sorted({e.node_id for e in m.endpoints}), available=m.available)
            for m in self.table.models.values()
        ]

    def models(self) -> list[ModelRecord]:
        """The cluster's records, local and remote, with names and availability as the master judges them."""
        records = [record.model_copy(update={"public_id": self._name(record)}) for record in self._local]
        for node in self._nodes.values():
            down = "" if node.healthy else node.reason
            for record in node.snapshot.models if node.snapshot else ():
                judged = {
                    "public_id": self._name(record),
                    "source": "remote",
                    "available": record.available and not down,
                    "reason": down or record.reason,
                }
                records.append(record.model_copy(update=judged))
        return records

    def _name(self, record: ModelRecord) -> str:
        return identity.public_name(self.ledger, record.public_id, table.record_identity(record))

    def _refuse_conflict(self, url: str, snapshot: Snapshot) -> None:
        if snapshot.node_id == self.node_id:
            raise NodeIdConflict(f"node ID {snapshot.node_id} is the master's own")
        for other in self._nodes.values():
            if other.url != url and other.healthy and other.snapshot and other.snapshot.node_id == snapshot.node_id:
                raise NodeIdConflict(f"node ID {snapshot.node_id} is live at {other.url}")

    def _take(self, url: str, snapshot: Snapshot, now: float) -> None:
        for other in self._nodes.values():
            if other.url != url and other.snapshot and other.snapshot.node_id == snapshot.node_id:
                moved = f"node {snapshot.node_id} is at {url} now"
                self._nodes[other.url] = replace(other, reason=moved, snapshot=None)
        reason = "draining" if snapshot.draining else ""
        self._put(Node(url, healthy=True, reason=reason, last_seen=now, snapshot=_its_own(snapshot)))

    def _put(self, node: Node) -> None:
        before = self._nodes[node.url]
        self._nodes[node.url] = node
        if before.healthy != node.healthy or before.snapshot != node.snapshot:
            self._rebuild()

    def _rebuild(self) -> None:
        nodes = [NodeModels(self.node, None, self._local)]
        nodes += [
            NodeModels(node.snapshot.node, Origin.of(node.url), node.snapshot.models, _down(node))
            for node in self._nodes.values()
            if node.snapshot
        ]
        now = table.holders(nodes)
        self.ledger = table.extend_ledger(identity.follow(self.ledger, self.holders, now), nodes, self._taken)
        self.holders |= now
        self._remembered = None
        self.table = table.build(self.ledger, nodes, self._retired)


def _its_own(snapshot: Snapshot) -> Snapshot:
    """What the node says of itself, whatever it says of others."""
    if all(record.node_id == snapshot.node_id for record in snapshot.models):
        return snapshot
    own = [record.model_copy(update={"node_id": snapshot.node_id}) for record in snapshot.models]
    return snapshot.model_copy(update={"models": own})


def _down(node: Node) -> str:
    if not node.healthy:
        return node.reason
    return "draining" if node.snapshot and node.snapshot.draining else ""


def normalise(url: str) -> str:
    """One spelling for each URL, so that a trailing slash or a default port does not refuse a slave."""
    return str(Origin.of(url))
