"""Whatever stands in a body, the answer is a 400 in the shape of the API in use, and nothing is queued."""

from typing import Any

import pytest

from turnout_router.families.errors import ApiFamily
from turnout_router.families.paths import ENDPOINTS, BodyKind

EVERYTHING = ["Text", "Embedding", "Transcription", "Speech", "Music", "Image", "Video"]
BODIES = {
    "null": b"null", "list": b"[]", "text": b'"x"', "open": b"{", "empty": b"", "only space": b" \n",
    "byte order mark": b'\xef\xbb\xbf{"model": "public-m"}', "deep arrays": b"[" * 2000 + b"]" * 2000,
    "deep arrays inside": b'{"model": "public-m", "messages": ' + b"[" * 2000 + b"]" * 2000 + b"}",
    "deep objects": b'{"model": "public-m", "x": ' + b'{"a":' * 2000 + b"1" + b"}" * 2001,
    "not UTF-8": b'{"model": "public-m", "x": "\xff"}', "number": b"1e999", "NaN": b'{"model": NaN}',
    "two documents": b'{"model": "public-m"} {}', "model is a list": b'{"model": ["public-m"]}',
    "model is empty": b'{"model": ""}', "lone surrogate": b'{"model": "\\ud800"}',
    "stream is text": b'{"model": "public-m", "stream": "yes"}', "a huge model": b'{"model": "' + b"m" * 5000 + b'"}',
    "a NUL": b'{"model": "public-m\x00"}',
}  # fmt: skip
STILL_GOOD = {"/api/show", "/v1/audio/speech"}
"""Where `stream` means nothing."""


def message(api: ApiFamily, body: Any) -> str:
    match api:
        case ApiFamily.OPENAI:
            assert set(body["error"]) == {"message", "type", "param", "code"}
            return str(body["error"]["message"])
        case ApiFamily.ANTHROPIC:
            assert body["type"] == "error"
            return str(body["error"]["message"])
        case ApiFamily.OLLAMA:
            return str(body["error"])
        case ApiFamily.SDAPI:
            return str(body["detail"])


@pytest.mark.parametrize(
    "path", [row for row in ENDPOINTS if row.body in {BodyKind.JSON, BodyKind.EITHER}], ids=lambda row: row.path
)
async def test_on_every_path_that_takes_json(front: Any, raw_backend: Any, until: Any, path: Any) -> None:
    backend = await raw_backend()
    gate = await front(backend.url, model={"capabilities": EVERYTHING})
    client = await gate.connect()
    asked = 0
    for what, body in BODIES.items():
        if what == "stream is text" and path.path in STILL_GOOD:
            continue
        if what in {"model is empty", "a NUL"} and path.model_optional:
            continue
        await client.ask("POST", path.path, body, "Content-Type: application/json")
        answer = await client.answer()
        asked += 1
        assert answer.status in {400, 404} if "surrogate" in what else answer.status == 400, (what, answer)
        assert message(path.api, answer.json()), what
        assert answer.all("x-request-id"), what
    assert not backend.seen
    await until(gate.idle)
    expected = [] if path.is_local else ["refused"] * asked
    assert [record["outcome"] for record in gate.records()] == expected
    assert not [record for record in gate.records() if record["attempts"]]
