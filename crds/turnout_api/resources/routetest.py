"""RouteTest: a request, and the rule and model that must decide it."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from turnout_api.resources.common import Column, ModelID, Resource, Status, condition_columns
from turnout_api.resources.rules import UNKNOWN, Part, rule


class RouteTestRequest(Part):
    """A request as a client would send it. It is decided, never sent."""

    path: Annotated[str, Field(min_length=1, max_length=256, pattern=r"^/[^ ?#]*$")]
    """Path, such as /v1/chat/completions."""
    headers: Annotated[dict[str, Annotated[str, Field(max_length=4096)]], Field(max_length=32)] = {}
    """Headers of the request."""
    client: Annotated[str, Field(max_length=253)] = ""
    """Name of the API key that sends it; empty = the gateway master key."""
    body: Annotated[dict[str, Any], Field(max_length=128, json_schema_extra={UNKNOWN: True})]
    """The JSON body, with `model` in it."""

    @rule(
        cel="!has(self.headers) || self.headers.all(name, size(name) <= 128)",
        message="the keys of headers are at most 128 long",
        field="headers",
    )
    def header_names_are_short(self) -> bool:
        return all(len(name) <= 128 for name in self.headers)


class Expectation(Part):
    """What must come out. Each field that is given must hold."""

    rule: Annotated[str, Field(max_length=320, pattern=r"^[^/ ]+/[^/ ]+$")] | None = None
    """The rule that decides, as FRONTEND/RULE, or FRONTEND/defaults."""
    model: ModelID | None = None
    """Public ID of the model that the request goes to first."""
    denied: bool | None = None
    """Whether the request is refused by a rule. Not the same as a model that nothing serves now."""

    def is_given(self) -> bool:
        """Whether anything is expected."""
        return any(value is not None for value in (self.rule, self.model, self.denied))


class RouteTestSpec(Part):
    """A request and what must come out of it."""

    request: RouteTestRequest
    """The request."""
    expect: Expectation
    """What must come out."""
    required: bool = False
    """Whether a change that makes this test fail is refused. Otherwise the status and `turnout validate` say so."""

    @rule(
        cel="has(self.expect.rule) || has(self.expect.model) || has(self.expect.denied)",
        message="expect needs at least one of rule, model and denied, else the test cannot fail",
        field="expect",
    )
    def something_is_expected(self) -> bool:
        return self.expect.is_given()

    @rule(
        cel="!has(self.expect.denied) || !self.expect.denied || !has(self.expect.model)",
        message="a denied request reaches no model: remove expect.model, or expect.denied",
        field="expect",
    )
    def denied_reaches_no_model(self) -> bool:
        return not self.expect.denied or self.expect.model is None


class RouteTestStatus(Status):
    """What came out at the last change."""

    result: Annotated[str, Field(max_length=16)] = ""
    """Pass or Fail."""
    rule: Annotated[str, Field(max_length=320)] = ""
    """The rule that decided."""
    model: Annotated[str, Field(max_length=253)] = ""
    """The model that the request would go to first."""
    message: Annotated[str, Field(max_length=4096)] = ""
    """What differs from what was expected."""


class RouteTest(Resource):
    """A request and the rule and model that must decide it; the status says whether they do."""

    plural: ClassVar[str] = "routetests"
    short: ClassVar[str] = "rt"
    columns: ClassVar[tuple[Column, ...]] = (
        Column("Result", ".status.result", "Whether what came out is what was expected."),
        Column("Rule", ".status.rule", "The rule that decided."),
        Column("Model", ".status.model", "The model that the request would go to."),
        Column("Required", ".spec.required", "Whether a change that breaks it is refused."),
        *condition_columns(),
    )

    kind: Literal["RouteTest"] = "RouteTest"
    spec: RouteTestSpec
    status: RouteTestStatus | None = None
