"""Eligibility by what the models' records say now (spec: LLM lending)."""

import pytest

from turnout_api.lending import LinkedModel
from turnout_api.vocabulary import Capability, Family, Lane
from turnout_api.wire import ModelRecord
from turnout_router.lending.eligibility import ineligible_because, records_ineligible_because


def linked(*, window: int | None = 8192, parallel: int = 1, vision: bool = False) -> LinkedModel:
    return LinkedModel("m", Lane.TEXT, loaded=True, context_window=window, parallel=parallel, vision=vision)


def record(*capabilities: Capability, window: int | None = 8192, parallel: int | None = None) -> ModelRecord:
    return ModelRecord(
        public_id="m",
        local_id="m",
        node_id="n",
        backend="b",
        family=Family.LLAMA_CPP,
        capabilities=list(capabilities),
        config_hash="sha256:0",
        context_window=window,
        parallel=parallel,
        available=True,
    )


@pytest.mark.parametrize(
    ("owner", "helper", "why"),
    [
        (linked(), linked(), ""),
        (linked(vision=True), linked(vision=True), ""),
        (linked(parallel=2), linked(), "owner serves 2 requests at once"),
        (linked(), linked(parallel=2), "helper serves 2 requests at once"),
        (linked(window=None), linked(), "owner states no context window"),
        (linked(), linked(window=None), "helper states no context window"),
        (linked(vision=True), linked(), "only the owner is multimodal"),
        (linked(), linked(vision=True), "only the helper is multimodal"),
        (None, linked(vision=True), ""),
        (None, linked(window=None), "helper states no context window"),
    ],
)
def test_text_models_are_linked_one_at_a_time_with_a_window_and_alike_in_vision(owner, helper, why):
    assert ineligible_because(owner, helper, Lane.TEXT) == why


def test_image_models_need_none_of_that():
    assert not ineligible_because(linked(window=None, parallel=4), linked(window=None, vision=True), Lane.IMAGE)


@pytest.mark.parametrize(
    ("owner", "helper", "lane", "why"),
    [
        (record(Capability.TEXT), record(Capability.TEXT, parallel=1), Lane.TEXT, ""),
        (record(Capability.TEXT), record(Capability.IMAGE), Lane.TEXT, "helper has no capability Text"),
        (record(Capability.TEXT), record(Capability.IMAGE), Lane.IMAGE, "owner has no capability Image"),
        (record(Capability.IMAGE, window=None), record(Capability.IMAGE), Lane.IMAGE, ""),
        (
            record(Capability.TEXT, Capability.VISION),
            record(Capability.TEXT),
            Lane.TEXT,
            "only the owner is multimodal",
        ),
    ],
)
def test_records_also_say_what_the_models_can_answer(owner, helper, lane, why):
    assert records_ineligible_because(owner, helper, lane) == why
