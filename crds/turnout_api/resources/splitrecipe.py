"""SplitRecipe: one public name whose components live on different nodes."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from turnout_api.resources.common import Column, ModelID, NodeModelRef, Resource, Status, condition_columns
from turnout_api.resources.rules import Keyed, Part
from turnout_api.vocabulary import Capability


class Component(NodeModelRef):
    """One part of the recipe: the model that answers requests of one capability."""

    capability: Capability
    """Which requests it answers."""


class SplitRecipeSpec(Part):
    """Requests for one public name go to the component whose capability they need."""

    public_id: ModelID
    """The name that clients use. It shares one namespace of names with models and frontend models."""
    components: Annotated[list[Component], Keyed(("capability",)), Field(min_length=1, max_length=8)]
    """At most one model for each capability; a request that none fits is refused."""


class SplitRecipeStatus(Status):
    """What the operator saw of the recipe."""

    serving: Annotated[str, Field(max_length=32)] = ""
    """Components that serve out of all, such as `2/2`."""


class SplitRecipe(Resource):
    """One public name whose components live on different nodes."""

    plural: ClassVar[str] = "splitrecipes"
    short: ClassVar[str] = "sr"
    columns: ClassVar[tuple[Column, ...]] = (
        Column("Public ID", ".spec.publicID", "The name that clients use."),
        Column("Serving", ".status.serving", "Components that serve out of all."),
        *condition_columns(),
    )

    kind: Literal["SplitRecipe"] = "SplitRecipe"
    spec: SplitRecipeSpec
    status: SplitRecipeStatus | None = None
