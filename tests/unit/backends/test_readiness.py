"""Which lane a model needs, and when it is ready."""

import pytest

from turnout_api.vocabulary import Capability, Family, Side
from turnout_router.backends.readiness import READY, Standing, required_sides, side_of, standing_of, unavailable_because

TEXT_SIDE = [Capability.TEXT, Capability.EMBEDDING, Capability.VISION, Capability.SPEECH, Capability.MUSIC]
IMAGE_SIDE = [Capability.IMAGE, Capability.VIDEO]


@pytest.mark.parametrize("family", list(Family))
@pytest.mark.parametrize("capability", list(Capability))
def test_every_capability_needs_one_side_on_every_family(capability, family):
    expected = Side.TEXT
    if capability in IMAGE_SIDE:
        expected = Side.IMAGE
    elif capability is Capability.TRANSCRIPTION and family is Family.WHISPER:
        expected = Side.WHISPER
    assert side_of(capability, family) is expected


def test_a_shared_process_needs_all_sides_of_its_model():
    needs = required_sides([Capability.TEXT, Capability.IMAGE, Capability.TRANSCRIPTION], Family.KOBOLD)
    assert needs == {Side.TEXT, Side.IMAGE}


@pytest.mark.parametrize(
    ("stands", "reason"),
    [
        ({"down": "connection refused"}, "connection refused"),
        ({"down": "connection refused", "start_failed": "exited with 1"}, "connection refused"),
        ({"start_failed": "exited with 1"}, "exited with 1"),
        ({"supervised": True, "kept": True}, "is starting"),
        ({"supervised": True, "kept": True, "last_error": "exited with 1"}, "is starting again: exited with 1"),
        ({"supervised": True, "kept": True, "loaded": True}, ""),
        ({"supervised": True}, ""),  # lazy: it can be started
        ({"supervised": True, "loaded": True}, ""),
        ({"loaded": True}, ""),
        ({}, ""),  # a server with the model unloaded loads it when it is asked
    ],
)
def test_how_a_unit_stands(stands, reason):
    facts = {"down": "", "supervised": False, "loaded": False, "kept": False, "start_failed": ""} | stands
    assert standing_of(**facts) == Standing(reason)


@pytest.mark.parametrize(
    ("capabilities", "family", "standing", "reason"),
    [
        (TEXT_SIDE, Family.LLAMA_CPP, READY, ""),
        ([Capability.TEXT], Family.LLAMA_CPP, Standing("gone"), "text side is not ready: gone"),
        ([Capability.IMAGE], Family.SD_CPP, Standing("gone"), "image side is not ready: gone"),
        ([Capability.TRANSCRIPTION], Family.WHISPER, Standing("gone"), "whisper side is not ready: gone"),
        ([Capability.TRANSCRIPTION], Family.KOBOLD, Standing("gone"), "text side is not ready: gone"),
        (
            [Capability.TEXT, Capability.IMAGE],
            Family.KOBOLD,
            Standing("gone"),
            "image and text side is not ready: gone",
        ),
        (
            [Capability.TEXT, Capability.SPEECH],
            Family.KOBOLD,
            Standing(lacks=frozenset({Capability.SPEECH})),
            "its process cannot do Speech",
        ),
        ([Capability.TEXT], Family.KOBOLD, Standing(lacks=frozenset({Capability.SPEECH})), ""),
    ],
)
def test_a_model_is_available_when_what_it_needs_is_ready(capabilities, family, standing, reason):
    assert unavailable_because(capabilities, family, standing) == reason
