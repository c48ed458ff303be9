"""Guardian: which multimodal model answers requests with images that a text-only model cannot read."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from turnout_api.resources.common import Column, NodeModelRef, NodeName, Resource, Status, condition_columns
from turnout_api.resources.rules import Part, rule


class GuardianScope(Part):
    """For whom the guardian answers: exactly one of a model, a node or the cluster. The most specific one wins."""

    model: NodeModelRef | None = None
    """One model of one node."""
    node: NodeName | None = None
    """Every text-only model of a node."""
    cluster: bool = False
    """True = every text-only model of the cluster."""

    @rule(
        cel="[has(self.model), has(self.node), has(self.cluster) && self.cluster].filter(given, given).size() == 1",
        message="scope needs exactly one of model, node and cluster: true",
    )
    def scope_is_one(self) -> bool:
        return [self.model is not None, self.node is not None, self.cluster].count(True) == 1


class GuardianSpec(Part):
    """Requests with images for text-only models in the scope go to the guardian before any backend sees them."""

    scope: GuardianScope
    """For whom it answers."""
    guardian: NodeModelRef
    """The model that answers: one with capabilities Text and Vision."""

    @rule(
        cel=(
            "!has(self.scope.model) || self.scope.model.node != self.guardian.node || "
            "self.scope.model.model != self.guardian.model"
        ),
        message="a model cannot be its own guardian",
        field="guardian",
    )
    def guardian_is_another_model(self) -> bool:
        return self.scope.model is None or self.scope.model != self.guardian


class GuardianStatus(Status):
    """What the operator saw of the guardian."""

    scope: Annotated[str, Field(max_length=512)] = ""
    """The scope in one line: `gpu-a/cc11`, `gpu-a` or `cluster`."""


class Guardian(Resource):
    """Names the multimodal model that answers image requests for a model, a node or the cluster."""

    plural: ClassVar[str] = "guardians"
    short: ClassVar[str] = "gd"
    columns: ClassVar[tuple[Column, ...]] = (
        Column("For", ".status.scope", "For whom it answers."),
        Column("Node", ".spec.guardian.node", "The node that answers."),
        Column("Model", ".spec.guardian.model", "The model that answers."),
        *condition_columns(),
    )

    kind: Literal["Guardian"] = "Guardian"
    spec: GuardianSpec
    status: GuardianStatus | None = None
