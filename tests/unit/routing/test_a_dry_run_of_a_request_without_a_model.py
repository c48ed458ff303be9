"""Transcription and `/sdapi` may name no model: a dry-run says where such a request goes, as the gateway would send it."""

import pytest

from turnout_api.vocabulary import Capability

HEARS, PAINTS, TEXT = (Capability.TRANSCRIPTION,), (Capability.IMAGE,), (Capability.TEXT,)
TRANSCRIPTION, TRANSLATION, PAINTING = "/v1/audio/transcriptions", "/v1/audio/translations", "/sdapi/v1/txt2img"


@pytest.fixture
def told(rules):
    def explained(path, serving, **given):
        routing = rules.routing(serving=serving, prices={"flux": [rules.price(request=7)]})
        return rules.explained(routing, rules.request("", path=path), **given)

    return explained


def test_the_cluster_picks_one_of_those_that_transcribe(told):
    answer = told(TRANSCRIPTION, {"chat": TEXT, "whisper": HEARS, "small-whisper": HEARS})

    assert [tried.model for tried in answer.candidates] == ["whisper", "small-whisper"]
    assert (answer.reason, answer.rule) == (None, None)


def test_the_one_model_that_paints_does_it(told):
    answer = told(PAINTING, {"chat": TEXT, "flux": PAINTS})

    assert [tried.model for tried in answer.candidates] == ["flux"]
    assert answer.cost_micros == 7


def test_of_several_that_paint_one_must_be_named(told):
    assert told(PAINTING, {"flux": PAINTS, "sd": PAINTS}).reason == "no_model"


@pytest.mark.parametrize("path", [TRANSCRIPTION, PAINTING])
def test_where_none_can_do_it_nothing_serves(told, path):
    assert told(path, {"chat": TEXT}).reason == "nothing_serving"


def test_elsewhere_a_model_must_be_named(told):
    assert told(TRANSLATION, {"whisper": HEARS}).reason == "no_model"


def test_only_what_the_callers_key_is_for_counts(told):
    serving = {"flux": PAINTS, "sd": PAINTS}

    assert told(PAINTING, serving, may_use=lambda model: model == "sd").model == "sd"
    assert told(PAINTING, serving, may_use=lambda _: False).reason == "nothing_serving"
