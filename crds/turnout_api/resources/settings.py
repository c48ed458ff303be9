"""The settings of a cluster: given once, on the RouterNode of the Master or Standalone, and pushed to its slaves.

Each field is the field of the same name of `turnout_api.config.ClusterConfig`, with the same default. Defaults are
documented but not written into stored objects: so a value given by hand can be told from one that was left alone
(`model_fields_set`), and a later version may choose a better default. What `offloadStrategy` decides about is None where it
is not given: `turnout_api.strategy` has the set of each strategy.
"""

from typing import Annotated

from pydantic import Field, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from turnout_api.resources.rules import DOCUMENT_DEFAULTS, Ordered, Part, Span, rule
from turnout_api.vocabulary import Family, OffloadOrder, OffloadStrategy, Policy, RestorePricing

_FAMILIES = [str(family) for family in Family]
_MEBIBYTE = 1024 * 1024


class Settings(Part):
    """Settings that the master shares with its slaves. Leave out what the default is right for."""

    sync_interval: Annotated[float, Span("1s", "10m")] = 10.0
    """A slave registers with its master again this often. Shorter finds a restarted master sooner."""
    health_interval: Annotated[float, Span("500ms", "10m")] = 5.0
    """The master polls each slave, and each router probes its own backends, this often.
    A node that fails is found out after at most this long plus `pollTimeout`."""
    poll_timeout: Annotated[float, Span("100ms", "1m")] = 5.0
    """A poll without an answer for this long has failed, and the node's models are unavailable until the next good poll."""
    max_queue_depth: Annotated[int, Field(ge=1, le=100_000)] = 1024
    """Requests of one model that may wait in one router. The next one gets 429 with Retry-After."""
    max_queue_wait: Annotated[float, Span("1s", "24h")] = 600.0
    """A request that waited this long in a router gets 429 with Retry-After."""
    max_body_bytes: Annotated[int, Field(ge=1024, le=2048 * _MEBIBYTE)] = 64 * _MEBIBYTE
    """A larger request body gets 413 and is not read to its end. Images in chat requests are what makes bodies large."""
    explanation_headers: bool = True
    """Whether answers carry `x-turnout-model`, `x-turnout-node`, `x-turnout-rule` and, when lent, `x-turnout-lent-to`."""
    endpoint_policy: Policy = Policy.ROUND_ROBIN
    """How the endpoints of one model (the nodes and instances that hold it) share its requests."""
    analytics: bool = True
    """Whether job times are measured. Off = nothing is measured, so nothing is priced, so only probes are lent."""
    refusal_patterns: Annotated[
        dict[
            str,
            Annotated[
                list[Annotated[str, Field(min_length=1, max_length=256)]], Ordered(), Field(min_length=1, max_length=16)
            ],
        ],
        Field(max_length=8),
    ] = {}
    """By backend family, phrases of a backend's error that mean "this model cannot read images", whatever their case.
    Such a request goes to the guardian instead of being retried. Given patterns replace the built-in ones of that family.
    Without effect in this version, which does not act on guardians."""

    offload_strategy: OffloadStrategy = OffloadStrategy.CLASSIC
    """Which set of lending rules holds. Adaptive lends sooner, to more helpers, and disturbs a helper's own work less.
    It decides about each setting whose default names both; such a setting given by hand wins over the set."""
    scheduling_backend_depth: Annotated[int, Field(ge=1, le=64)] | None = None
    """Requests of an enrolled model that its backend gets at once; the others wait in the router, where they can be lent.
    2 keeps the backend from idling between jobs, 1 leaves one more to be lent. Default: Classic 2, Adaptive 1."""
    scheduling_refresh_interval: Annotated[float, Span("1s", "10m")] = 10.0
    """The master plans lending anew this often even when no event arrives."""
    scheduling_min_samples: Annotated[int, Field(ge=1, le=100_000)] = 20
    """Measured requests that a model needs inside `schedulingSampleWindow` before its times are predicted from them."""
    scheduling_sample_window: Annotated[float, Span("1m", "8760h")] = 86_400.0
    """Measurements older than this no longer count."""
    scheduling_lease_ttl: Annotated[float, Span("2s", "1h")] = 30.0
    """A lease that is not renewed for this long ends. At least twice `schedulingRefreshInterval`."""
    scheduling_context_reserve: Annotated[int, Field(ge=0, le=1_000_000)] = 256
    """Tokens of a helper's context window that are kept free for the answer when the client states no max_tokens."""
    offload_probe_idle: Annotated[float, Span("0s", "24h")] = 5.0
    """A helper that was not chosen gets a one-request probe once it is idle for this long, twelve times that when it must load
    the linked model first."""
    offload_faster_helper_slots: Annotated[int, Field(ge=1, le=3)] = 2
    """Requests lent at once to a helper whose job time is at most the owner's. More than 3 would end healthy work."""
    offload_slower_helper_slots: Annotated[int, Field(ge=1, le=64)] = 1
    """Requests lent at once to a slower helper; never above `schedulingBackendDepth`."""
    offload_probe_slots: Annotated[int, Field(ge=1, le=1)] = 1
    """Requests of a probe: always one."""
    offload_hold_for_faster_helper: bool = True
    """Whether an owner that is generating keeps a waiting request for a helper that is predicted to finish it sooner."""
    offload_restore_delay: Annotated[float, Span("0s", "1h")] | None = None
    """A helper loads back what borrowed work displaced once nothing more was borrowed for this long and it is quiet.
    Shorter than the way of a lent request makes a helper load back and forth.
    Default: Classic 1.5s, Adaptive the larger of 1.5s and the measured load time of the displaced model."""
    offload_lent_stall_timeout: Annotated[float, Span("1s", "24h")] = 180.0
    """A helper whose lent requests show no change for this long is asked; one that runs none loses them to their owners."""
    offload_decisions_retention: Annotated[float, Span("1s", "87600h")] = 2_592_000.0
    """Rows of the decision log older than this are deleted."""
    offload_decisions_max_rows: Annotated[int, Field(ge=1, le=100_000_000)] = 1_000_000
    """Rows of the decision log that are kept at most; the oldest go first."""
    requests_retention: Annotated[float, Span("24h", "87600h")] = 2_592_000.0
    """Records of requests older than this are deleted; usage is not known beyond it. A day at least: budgets are counted from them."""
    requests_max_rows: Annotated[int, Field(ge=1000, le=1_000_000_000)] = 10_000_000
    """Records of requests that are kept at most; the oldest go first."""
    offload_max_helpers: Annotated[int, Field(ge=1, le=64)] | None = None
    """Helpers that one owner may lend to at the same time, each with a lease of its own, priced on what the others leave.
    Default: Classic 1, Adaptive all that are linked."""
    offload_borrowed_beyond_recall: Annotated[int, Field(ge=1, le=64)] | None = None
    """Borrowed requests that a helper gives to its backend at once. Others wait in its router, where its own work sends them
    back. Default: Classic as many as schedulingBackendDepth, Adaptive 1."""
    offload_order: OffloadOrder | None = None
    """Which waiting request is lent: the Oldest, or the FirstThatGains, which is the first that the helper would finish
    sooner than the owner. Default: Classic Oldest, Adaptive FirstThatGains."""
    offload_restore_pricing: RestorePricing | None = None
    """What loading back a helper's displaced model adds to the price of a lease: Full is its load time, ExpectedHarm what
    the helper's own requests are expected to wait for it. Default: Classic Full, Adaptive ExpectedHarm."""
    offload_switch_hazard: Annotated[float, Field(ge=0, le=1)] | None = None
    """A helper that must load the linked model is passed over (helper_recently_busy) when a request of its own is likelier
    than this to arrive before the detour is over, by its recent gaps between requests; one that has loaded it is judged
    again for each further job. 1 = off.
    Default: Classic 1, Adaptive 0.25."""
    offload_probe_until_fit: bool | None = None
    """Whether a helper is probed only until it has measurements enough of its own, and never where its own traffic is
    expected. Default: Classic false, Adaptive true."""
    offload_faster_tolerance: Annotated[float, Field(ge=0, le=1)] | None = None
    """A helper whose job time is longer than the owner's by no more than this share still counts as a faster one: 0.1 = 10 %.
    Default: Classic 0, Adaptive 0.1."""
    offload_cut_off_counts_ahead: bool | None = None
    """Whether the time after which a lent request without an answer is cut off adds what was lent ahead of it, and the owner
    runs it only once the helper has confirmed the stop or cannot be reached. Default: Classic false, Adaptive true."""
    offload_own_wait_limit: Annotated[float, Span("0s", "24h")] = 120.0
    """A link is suspended when a request of its helper's own waited longer than this behind borrowed work. 0s = never."""
    offload_suspension: Annotated[float, Span("1s", "168h")] = 1800.0
    """A suspended link lends again after this long."""

    @rule(
        cel=(
            "duration(has(self.schedulingLeaseTTL) ? self.schedulingLeaseTTL : '30s') >= "
            "duration(has(self.schedulingRefreshInterval) ? self.schedulingRefreshInterval : '10s') + "
            "duration(has(self.schedulingRefreshInterval) ? self.schedulingRefreshInterval : '10s')"
        ),
        message="schedulingLeaseTTL (30s if left out) must be at least twice schedulingRefreshInterval (10s if left out), else a lease ends between two ticks",
        field="schedulingLeaseTTL",
    )
    def lease_outlives_two_ticks(self) -> bool:
        return self.scheduling_lease_ttl >= 2 * self.scheduling_refresh_interval

    @rule(
        cel=f"!has(self.refusalPatterns) || self.refusalPatterns.all(family, family in {_FAMILIES})",
        message=f"the keys of refusalPatterns are backend families: {', '.join(_FAMILIES)}",
        field="refusalPatterns",
    )
    def refusal_patterns_name_families(self) -> bool:
        return all(family in _FAMILIES for family in self.refusal_patterns)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        json_schema = super().__get_pydantic_json_schema__(schema, handler)
        handler.resolve_ref_schema(json_schema)[DOCUMENT_DEFAULTS] = True
        return json_schema
