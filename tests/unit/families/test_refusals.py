import json

import pytest

from turnout_api.vocabulary import Family
from turnout_router.families.refusals import DEFAULT_PATTERNS, backend_message, refuses_images, refuses_path

LLAMA = json.dumps(
    {
        "error": {
            "code": 500,
            "message": "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj",
            "type": "server_error",
        }
    }
).encode()


@pytest.mark.parametrize(
    ("family", "status", "body"),
    [
        (Family.LLAMA_CPP, 500, LLAMA),
        (Family.LLAMA_CPP, 400, LLAMA),
        (Family.PROCESS, 500, LLAMA),
        (Family.VLLM, 400, b'{"error":{"message":"cc11 is not a multimodal model"}}'),
        (Family.OLLAMA, 500, b'{"error":"this model is missing data required for image input"}'),
        (
            Family.OPENAI,
            400,
            b'{"error":{"message":"Invalid content type. IMAGE_URL is only supported by certain models."}}',
        ),
    ],
)
def test_each_family_says_in_its_words_that_it_cannot_read_images(family, status, body):
    assert refuses_images(family, status, body) is True


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (404, LLAMA),
        (200, LLAMA),
        (503, LLAMA),
        (500, b'{"error":{"message":"out of memory"}}'),
        (400, b""),
        (500, b"\xff"),
    ],
)
def test_any_other_answer_is_no_refusal_of_images(status, body):
    assert refuses_images(Family.LLAMA_CPP, status, body) is False


def test_configured_patterns_replace_those_of_their_family():
    configured = {Family.LLAMA_CPP: ["Blind"]}
    assert refuses_images(Family.LLAMA_CPP, 500, b"i am BLIND", configured) is True
    assert refuses_images(Family.LLAMA_CPP, 500, LLAMA, configured) is False
    assert refuses_images(Family.PROCESS, 500, LLAMA, configured) is True


def test_every_family_has_its_patterns():
    assert set(DEFAULT_PATTERNS) == set(Family)


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (404, b'{"error":{"code":404,"message":"File Not Found","type":"not_found_error"}}', True),
        (404, b'{"detail":"Not Found"}', True),
        (404, b"", True),
        (405, b'{"detail":"Method Not Allowed"}', True),
        (501, b'{"error":{"message":"This server does not support embeddings. Start it with `--embeddings`"}}', True),
        (404, b'{"error":{"message":"The model `x` does not exist."}}', False),
        (404, b'{"error":"model \'x\' not found"}', False),
        (400, b"", False),
        (500, b"not found", False),
    ],
)
def test_a_path_that_is_not_served_is_told_from_a_model_that_is_not_known(status, body, expected):
    assert refuses_path(status, body) is expected


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"error":{"message":"m"}}', "m"),
        (b'{"type":"error","error":{"type":"t","message":"m"}}', "m"),
        (b'{"error":"m"}', "m"),
        (b'{"detail":"m"}', "m"),
        (b'{"object":"error","message":"m","code":400}', "m"),
        (b"m\n", "m"),
        (b'{"error":{"code":1}}', ""),
        (b"[]", ""),
        (b"", ""),
    ],
)
def test_the_message_of_a_backend_is_found_in_any_shape(body, message):
    assert backend_message(body) == message


def test_a_page_of_html_is_cut():
    assert len(backend_message(b"x" * 100_000)) == 2000
