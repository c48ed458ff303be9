"""The conditions of a rule. All that are given must hold; none given = always.

A condition for which a request has no value (no price, no estimate) does not hold. Unknown fields are kept here, and
refused by `resolve`: losing a condition would make its rule match more than it should.
"""

from enum import StrEnum
from typing import Annotated
from zoneinfo import ZoneInfo

import re2
from pydantic import Field

from turnout_api.resources.rules import OpenPart, Unique, rule

_Tokens = Annotated[int, Field(ge=0, le=1_000_000_000)]
_Micros = Annotated[int, Field(ge=0, le=1_000_000_000_000_000)]
_Percent = Annotated[int, Field(ge=0, le=1000)]
_Name = Annotated[str, Field(min_length=1, max_length=253)]
_Names = Annotated[list[_Name], Unique(), Field(min_length=1, max_length=64)]
_TimeOfDay = Annotated[str, Field(max_length=5, pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9]$")]


class Day(StrEnum):
    """Days of the week."""

    MONDAY = "Mon"
    TUESDAY = "Tue"
    WEDNESDAY = "Wed"
    THURSDAY = "Thu"
    FRIDAY = "Fri"
    SATURDAY = "Sat"
    SUNDAY = "Sun"


class HeaderMatch(OpenPart):
    """What a header must be like: exactly one of these."""

    exact: Annotated[str, Field(max_length=1024)] | None = None
    """The whole value, to the letter."""
    prefix: Annotated[str, Field(min_length=1, max_length=1024)] | None = None
    """The value begins with this."""
    regex: Annotated[str, Field(min_length=1, max_length=256)] | None = None
    """RE2 expression that matches somewhere in the value; use ^ and $ for the whole of it."""
    present: bool | None = None
    """True = the header is there, with any value; false = it is not."""

    @rule(
        cel="[has(self.exact), has(self.prefix), has(self.regex), has(self.present)].filter(given, given).size() == 1",
        message="a header needs exactly one of exact, prefix, regex and present",
    )
    def one_way_to_match(self) -> bool:
        given = (self.exact, self.prefix, self.regex, self.present)
        return sum(value is not None for value in given) == 1

    # `in [true, false]` and not `|| true`: in CEL `error || true` is true.
    @rule(
        cel="!has(self.regex) || ''.matches(self.regex) in [true, false]",
        message="regex is no RE2 expression: look-around and back-references do not exist there",
        field="regex",
    )
    def regex_compiles(self) -> bool:
        if self.regex is None:
            return True
        options = re2.Options()
        options.log_errors = False
        try:
            re2.compile(self.regex, options)
        except re2.error:
            return False
        return True


class TimeWindow(OpenPart):
    """A part of the week. Where `to` is before `from` it goes over midnight, and the day is the one on which it began."""

    zone: Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z][A-Za-z0-9_+/-]*$")] = "UTC"
    """Time zone by its IANA name, such as Europe/Berlin."""
    days: Annotated[list[Day], Unique(), Field(min_length=1, max_length=7)] = []
    """Days on which the window begins. Unset = every day."""
    from_: _TimeOfDay = "00:00"
    """Begin, HH:MM, 00:00 to 23:59."""
    to: _TimeOfDay = "00:00"
    """End, HH:MM, not part of the window. The same as `from` = 24 hours."""

    @rule(
        cel="!has(self.zone) || timestamp('2000-01-01T00:00:00Z').getHours(self.zone) >= 0",
        message="zone is no IANA time zone: write for example Europe/Berlin",
        field="zone",
    )
    def zone_exists(self) -> bool:
        try:
            ZoneInfo(self.zone)
        except (ValueError, OSError, LookupError):
            return False
        return True


class When(OpenPart):
    """Conditions on a request. All that are given must hold; none given = always.

    An unknown condition is kept and makes the object not accepted, because a lost one would let its rule match too much.
    """

    endpoints: (
        Annotated[
            list[Annotated[str, Field(min_length=1, max_length=256, pattern=r"^/[^ ?#]*$")]],
            Unique(),
            Field(min_length=1, max_length=64),
        ]
        | None
    ) = None
    """Paths of the request, such as /v1/chat/completions: one of these."""
    stream: bool | None = None
    """Whether the client asks for a stream."""
    has_images: bool | None = None
    """Whether the request carries images."""
    has_tools: bool | None = None
    """Whether the request offers tools to the model."""
    has_audio: bool | None = None
    """Whether the request carries audio."""
    min_input_tokens: _Tokens | None = None
    """At least so many input tokens, as estimated from the size of the request."""
    max_input_tokens: _Tokens | None = None
    """At most so many input tokens, as estimated from the size of the request."""
    min_output_tokens: _Tokens | None = None
    """The client asks for at least so many output tokens (max_tokens)."""
    max_output_tokens: _Tokens | None = None
    """The client asks for at most so many output tokens (max_tokens)."""
    min_request_cost_micros: _Micros | None = None
    """The request costs at least so many millionths, at the cheapest model that the frontend model can reach."""
    max_request_cost_micros: _Micros | None = None
    """The request costs at most so many millionths, at the cheapest model that the frontend model can reach."""
    min_budget_used_percent: _Percent | None = None
    """The caller's key has used at least so much of its budget of the day."""
    max_budget_used_percent: _Percent | None = None
    """The caller's key has used at most so much of its budget of the day."""
    max_inflight_per_backend: Annotated[int, Field(ge=1, le=100_000)] | None = None
    """A serving backend of the rule has fewer requests in flight than this. For spill rules; always holds in a dry-run."""
    headers: Annotated[dict[str, HeaderMatch], Field(min_length=1, max_length=16)] | None = None
    """By header name, in lower case, what it must be like: `x-team: {exact: red}`. All of them."""
    clients: _Names | None = None
    """Names of API keys: one of these."""
    roles: _Names | None = None
    """Roles of API keys: the caller's key has one of these."""
    users: _Names | None = None
    """The field `user` of the request's body: one of these."""
    metadata: Annotated[dict[str, Annotated[str, Field(max_length=512)]], Field(min_length=1, max_length=16)] | None = (
        None
    )
    """The object `metadata` of the request's body holds all of these, to the letter."""
    time_window: TimeWindow | None = None
    """The request arrives in this part of the week."""
    percent: Annotated[int, Field(ge=0, le=100)] | None = None
    """So many of a hundred requests, chosen by a hash of client and request, so that a repeated one is decided alike."""

    @property
    def given(self) -> frozenset[str]:
        """Python names of the conditions that are given."""
        return frozenset(name for name in type(self).model_fields if getattr(self, name) is not None)

    @property
    def unknown_paths(self) -> tuple[str, ...]:
        """Unknown fields anywhere under `when`, such as `hasImage` or `timeWindow.zones`, as they were written."""
        inner = [(f"headers.{name}", match) for name, match in (self.headers or {}).items()]
        window = [("timeWindow", self.time_window)] if self.time_window else []
        nested = (f"{path}.{field}" for path, part in (*inner, *window) for field in part.unknown_fields)
        return (*self.unknown_fields, *nested)

    @rule(
        cel="!has(self.headers) || self.headers.all(name, name.matches('^[!#$%&*+.^_`|~0-9a-z-]+$') && size(name) <= 128)",
        message="the keys of headers are header names in lower case, at most 128 long",
        field="headers",
    )
    def header_names_are_lower_case(self) -> bool:
        return all(_HEADER_NAME.fullmatch(name) and len(name) <= 128 for name in self.headers or {})

    @rule(
        cel="!has(self.minInputTokens) || !has(self.maxInputTokens) || self.minInputTokens <= self.maxInputTokens",
        message="minInputTokens is above maxInputTokens: nothing can match",
        field="minInputTokens",
    )
    def input_tokens_in_order(self) -> bool:
        return _in_order(self.min_input_tokens, self.max_input_tokens)

    @rule(
        cel="!has(self.minOutputTokens) || !has(self.maxOutputTokens) || self.minOutputTokens <= self.maxOutputTokens",
        message="minOutputTokens is above maxOutputTokens: nothing can match",
        field="minOutputTokens",
    )
    def output_tokens_in_order(self) -> bool:
        return _in_order(self.min_output_tokens, self.max_output_tokens)

    @rule(
        cel=(
            "!has(self.minRequestCostMicros) || !has(self.maxRequestCostMicros) || "
            "self.minRequestCostMicros <= self.maxRequestCostMicros"
        ),
        message="minRequestCostMicros is above maxRequestCostMicros: nothing can match",
        field="minRequestCostMicros",
    )
    def request_cost_in_order(self) -> bool:
        return _in_order(self.min_request_cost_micros, self.max_request_cost_micros)

    @rule(
        cel=(
            "!has(self.minBudgetUsedPercent) || !has(self.maxBudgetUsedPercent) || "
            "self.minBudgetUsedPercent <= self.maxBudgetUsedPercent"
        ),
        message="minBudgetUsedPercent is above maxBudgetUsedPercent: nothing can match",
        field="minBudgetUsedPercent",
    )
    def budget_in_order(self) -> bool:
        return _in_order(self.min_budget_used_percent, self.max_budget_used_percent)


_HEADER_NAME = re2.compile(r"[!#$%&*+.^_`|~0-9a-z-]+")


def _in_order(low: int | None, high: int | None) -> bool:
    return low is None or high is None or low <= high
