"""ModelPool: a named group of models with one policy."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from turnout_api.resources.common import Column, ModelID, Resource, Status, condition_columns
from turnout_api.resources.rules import Keyed, Part
from turnout_api.vocabulary import Policy


class Member(Part):
    """A model of the pool."""

    model: ModelID
    """Public ID of the model."""
    weight: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    """Share of the requests, relative to the other members. Counts only where the pool has no policy."""


class ModelPoolSpec(Part):
    """Models among which one is chosen for each request; the others follow when it cannot serve."""

    policy: Policy | None = None
    """How a member is chosen. CacheAffinity = the one that has the conversation's prefix; LeastLoaded = the one with the
    least work; LowestLatency = the one that answers fastest; RoundRobin = in turn. Unset = by weight. Cost is none of
    them: a price is fixed, so it never balances."""
    members: Annotated[list[Member], Keyed(("model",)), Field(min_length=1, max_length=64)]
    """Models of the pool. Two pools may hold the same members and differ in policy only."""


class ModelPoolStatus(Status):
    """What the operator saw of the pool."""

    serving: Annotated[str, Field(max_length=32)] = ""
    """Members that serve out of all, such as `2/3`."""


class ModelPool(Resource):
    """A named group of models with one policy."""

    plural: ClassVar[str] = "modelpools"
    short: ClassVar[str] = "mp"
    columns: ClassVar[tuple[Column, ...]] = (
        Column("Policy", ".spec.policy", "How a member is chosen; empty = by weight."),
        Column("Serving", ".status.serving", "Members that serve out of all."),
        *condition_columns(),
    )

    kind: Literal["ModelPool"] = "ModelPool"
    spec: ModelPoolSpec
    status: ModelPoolStatus | None = None
