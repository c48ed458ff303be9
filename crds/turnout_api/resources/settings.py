"""The settings of a cluster: given once, on the RouterNode of the Master or Standalone, and pushed to its slaves.

Each field is the field of the same name of `turnout_api.config.ClusterConfig`, with the same default. Defaults are
documented but not written into stored objects: so a value given by hand can be told from one that was left alone
(`model_fields_set`), and a later version may choose a better default.
"""

from typing import Annotated

from pydantic import Field, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from turnout_api.resources.rules import DOCUMENT_DEFAULTS, Ordered, Part, Span, rule
from turnout_api.vocabulary import Family, Policy

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
    Such a request goes to the guardian instead of being retried. Given patterns replace the built-in ones of that family."""

    scheduling_backend_depth: Annotated[int, Field(ge=1, le=64)] = 2
    """Requests of an enrolled model that its backend gets at once; the others wait in the router, where they can be lent.
    2 keeps the backend from idling between jobs, 1 leaves one more to be lent."""
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
    offload_restore_delay: Annotated[float, Span("0s", "1h")] = 1.5
    """A helper loads back what borrowed work displaced once nothing more was borrowed for this long and it is quiet."""
    offload_lent_stall_timeout: Annotated[float, Span("1s", "24h")] = 180.0
    """A helper whose lent requests show no change for this long is asked; one that runs none loses them to their owners."""
    offload_decisions_retention: Annotated[float, Span("1h", "87600h")] = 2_592_000.0
    """Rows of the decision log older than this are deleted."""
    offload_decisions_max_rows: Annotated[int, Field(ge=1000, le=100_000_000)] = 1_000_000
    """Rows of the decision log that are kept at most; the oldest go first."""
    offload_max_helpers: Annotated[int, Field(ge=1, le=64)] = 1
    """Helpers that one owner may lend to at the same time, each with a lease of its own."""

    @rule(
        cel=(
            "duration(has(self.schedulingLeaseTTL) ? self.schedulingLeaseTTL : '30s') >= "
            "duration(has(self.schedulingRefreshInterval) ? self.schedulingRefreshInterval : '10s') + "
            "duration(has(self.schedulingRefreshInterval) ? self.schedulingRefreshInterval : '10s')"
        ),
        message="schedulingLeaseTTL (30s) must be at least twice schedulingRefreshInterval (10s), else a lease ends between two ticks",
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
