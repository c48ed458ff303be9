"""RoutingLink: one model may lend its queued work to one model of another node."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from turnout_api.resources.common import Column, Identity, NodeModelRef, Resource, Status, condition_columns
from turnout_api.resources.rules import Part, rule
from turnout_api.vocabulary import Lane


class RoutingLinkSpec(Part):
    """A link is one-way: the owner lends, the helper borrows. The reverse is a link of its own, never implied.

    A link never changes where a request is routed; it moves only what waits.
    """

    lane: Lane
    """Text links models that answer in text, Image models that make images. Each lane has its own links and cost model."""
    owner: NodeModelRef
    """The model that lends what it cannot start."""
    helper: NodeModelRef
    """The model that may answer for it. It is not required to share a name, a hash or a checkpoint: you assert that it can."""
    load_if_unloaded: bool = True
    """Whether the helper may load the linked model, displacing another one, to take lent work. The load is priced.
    When false the helper takes work only while the model is loaded already."""
    restore_after_borrow: bool = True
    """Whether the helper loads back what borrowed work displaced, once it is quiet for `offloadRestoreDelay`."""
    acknowledge_different_weights: Identity | None = None
    """The helper's weights hash, when it differs from the owner's and you accept that clients get answers of a different
    checkpoint under one name. Such a link is refused without it, and asks again when the helper's hash changes."""

    @rule(
        cel="self.owner.node != self.helper.node",
        message="owner and helper are on one node: a link lends to another node",
        field="helper",
    )
    def helper_is_another_node(self) -> bool:
        return self.owner.node != self.helper.node


class RoutingLinkStatus(Status):
    """What the operator saw of the link."""

    weights: Annotated[str, Field(max_length=16)] = ""
    """Same, Different or Unknown: whether owner and helper hold one checkpoint, by their weights hashes."""


class RoutingLink(Resource):
    """Lets one model lend its queued work to one model of another node; one direction, one lane."""

    plural: ClassVar[str] = "routinglinks"
    short: ClassVar[str] = "rl"
    columns: ClassVar[tuple[Column, ...]] = (
        Column("Lane", ".spec.lane", "Which kind of work."),
        Column("Owner", ".spec.owner.node", "The node that lends."),
        Column("Owner model", ".spec.owner.model", "The model that lends.", priority=1),
        Column("Helper", ".spec.helper.node", "The node that borrows."),
        Column("Helper model", ".spec.helper.model", "The model that borrows.", priority=1),
        Column("Weights", ".status.weights", "Whether both hold one checkpoint."),
        *condition_columns(),
    )

    kind: Literal["RoutingLink"] = "RoutingLink"
    spec: RoutingLinkSpec
    status: RoutingLinkStatus | None = None
