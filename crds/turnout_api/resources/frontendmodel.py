"""FrontendModel: a client-facing name backed by ordered rules. The first rule whose conditions all hold decides."""

from enum import StrEnum
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from turnout_api.resources.common import Column, ModelID, ObjectName, Resource, Status, condition_columns
from turnout_api.resources.rules import Ordered, Part, rule
from turnout_api.resources.when import When


class Action(StrEnum):
    """What a rule does with the request that it decides. Every action is final."""

    ROUTE = "Route"
    DENY = "Deny"
    JUMP = "Jump"


class Target(Part):
    """Where a request may go: a model or a pool, not both."""

    model: ModelID | None = None
    """Public ID of a model."""
    pool: ObjectName | None = None
    """Name of a ModelPool. It expands in place: its chosen member, then its others, then the next target."""

    @rule(
        cel="has(self.model) != has(self.pool)",
        message="a target is either a model or a pool",
    )
    def model_or_pool(self) -> bool:
        return (self.model is None) != (self.pool is None)


Targets = Annotated[list[Target], Ordered(), Field(min_length=1, max_length=32)]
"""An ordered failover chain: tried as written, each only when those before it cannot serve."""


class FrontendRule(Part):
    """When it applies, and what then happens. The first one of which all conditions hold decides, and nothing after it."""

    name: Annotated[str, Field(min_length=1, max_length=63, pattern=r"^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$")]
    """Name of the rule, unique in the frontend model. Answers carry it in `x-turnout-rule` as `FRONTEND/RULE`."""
    when: When = When()
    """Conditions, all of which must hold. None = always, so such a rule belongs at the end."""
    action: Action = Action.ROUTE
    """Route = to the targets. Deny = refused with denyStatus. Jump = go on in the rules of another frontend model."""
    targets: Targets = []
    """Route: where the request goes, in this order. No policy here: point at a pool to balance."""
    deny_status: Annotated[int, Field(ge=400, le=499)] | None = None
    """Deny: HTTP status, 400 to 499. A 5xx would have every client library retry what is never going to be allowed."""
    deny_message: Annotated[str, Field(min_length=1, max_length=1024)] = ""
    """Deny: what the client is told."""
    jump_to: ObjectName | None = None
    """Jump: name of the FrontendModel whose rules, then defaults, go on. A deleted one is no match."""
    tag: Annotated[str, Field(min_length=1, max_length=63, pattern=r"^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$")] = ""
    """Label on the usage rows of what this rule decided, so that spend can be asked by decision."""

    @rule(
        cel="self.name != 'defaults'",
        message="a rule may not be called defaults: x-turnout-rule says FRONTEND/defaults when no rule decided",
        field="name",
    )
    def name_is_not_defaults(self) -> bool:
        return self.name != "defaults"

    @rule(
        cel="self.action != 'Route' || has(self.targets)",
        message="a rule with action Route needs targets",
        field="targets",
    )
    def route_needs_targets(self) -> bool:
        return self.action is not Action.ROUTE or bool(self.targets)

    @rule(
        cel="self.action == 'Route' || !has(self.targets)",
        message="only a rule with action Route has targets: remove them, or the action",
        field="targets",
    )
    def only_route_has_targets(self) -> bool:
        return self.action is Action.ROUTE or not self.targets

    @rule(
        cel="self.action != 'Deny' || has(self.denyStatus)",
        message="a rule with action Deny needs denyStatus, 400 to 499",
        field="denyStatus",
    )
    def deny_needs_status(self) -> bool:
        return self.action is not Action.DENY or self.deny_status is not None

    @rule(
        cel="self.action == 'Deny' || (!has(self.denyStatus) && !has(self.denyMessage))",
        message="only a rule with action Deny has denyStatus and denyMessage: set action: Deny, or remove them",
        field="denyStatus",
    )
    def only_deny_has_status(self) -> bool:
        return self.action is Action.DENY or (self.deny_status is None and not self.deny_message)

    @rule(
        cel="self.action != 'Jump' || has(self.jumpTo)",
        message="a rule with action Jump needs jumpTo: the name of another FrontendModel",
        field="jumpTo",
    )
    def jump_needs_destination(self) -> bool:
        return self.action is not Action.JUMP or self.jump_to is not None

    @rule(
        cel="self.action == 'Jump' || !has(self.jumpTo)",
        message="only a rule with action Jump has jumpTo: set action: Jump, or remove it",
        field="jumpTo",
    )
    def only_jump_has_destination(self) -> bool:
        return self.action is Action.JUMP or self.jump_to is None


class Defaults(Part):
    """What happens when no rule decides."""

    targets: Targets
    """Where the request goes, in this order."""


class FrontendModelSpec(Part):
    """A name that clients use, and what decides where their requests go."""

    model_name: ModelID | None = None
    """The name in requests. Default: the name of this object. Names of frontend models, models and recipes share one
    namespace of names; a later object with a taken one is not accepted (NameConflict)."""
    rules: Annotated[list[FrontendRule], Ordered(), Field(min_length=1, max_length=64)] = []
    """In order; the first of which all conditions hold decides."""
    defaults: Defaults | None = None
    """Used when no rule decides. Without it such a request gets 503."""

    @rule(
        cel="has(self.rules) || has(self.defaults)",
        message="a frontend model needs rules or defaults, else it can never answer",
    )
    def something_decides(self) -> bool:
        return bool(self.rules) or self.defaults is not None

    @rule(
        cel="!has(self.rules) || self.rules.all(rule, self.rules.exists_one(other, other.name == rule.name))",
        message="two rules have one name",
        field="rules",
    )
    def rule_names_differ(self) -> bool:
        return len({rule.name for rule in self.rules}) == len(self.rules)


class FrontendModelStatus(Status):
    """What the operator saw of the frontend model."""

    model_name: Annotated[str, Field(max_length=253)] = ""
    """The name in requests."""
    reachable_models: Annotated[int, Field(ge=0)] = 0
    """Models that its targets can reach, through pools and jumps."""
    cheapest_micros_per_million_tokens: Annotated[int, Field(ge=0)] | None = None
    """The lowest input price among them; unset = none is priced."""


class FrontendModel(Resource):
    """A client-facing model name backed by ordered rules."""

    plural: ClassVar[str] = "frontendmodels"
    short: ClassVar[str] = "fm"
    columns: ClassVar[tuple[Column, ...]] = (
        Column("Model name", ".status.modelName", "The name in requests."),
        Column("Models", ".status.reachableModels", "Models that it can reach.", type="integer"),
        Column(
            "Cheapest",
            ".status.cheapestMicrosPerMillionTokens",
            "Lowest input price, in micros.",
            "integer",
            priority=1,
        ),
        *condition_columns(),
    )

    kind: Literal["FrontendModel"] = "FrontendModel"
    spec: FrontendModelSpec
    status: FrontendModelStatus | None = None

    @property
    def model_name(self) -> str:
        """The name in requests."""
        return self.spec.model_name or self.name

    @rule(
        cel="!has(self.spec.rules) || self.spec.rules.all(rule, !has(rule.jumpTo) || rule.jumpTo != self.metadata.name)",
        message="a rule jumps to its own frontend model: that never ends",
    )
    def jumps_go_elsewhere(self) -> bool:
        return all(rule.jump_to != self.name for rule in self.spec.rules)
