"""Generated requests: whatever a client sends, the router answers below 500, in the shape of the API, and accounts for it.

Bodies are made from OpenAI's own description of its API, where it lies beside the repository, and from no description
at all; then some are bent, cut or spoilt. A seed gives the same requests each time; it is the parameter of the test.
"""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from turnout_router.families.errors import ApiFamily
from turnout_router.families.paths import ENDPOINTS, BodyKind

REQUESTS = 60
SEEDS = range(8)
MAX_DEPTH = 5
DESCRIPTION = "shared/cases/openai-paths.json"
EVERYTHING = ["Text", "Vision", "Embedding", "Transcription", "Speech", "Music", "Image", "Video"]
ANY: dict[str, Any] = {}
TEXTS = ["", "hi", "你好🙂", "\ud83d", "\0", "../..", "data:image/png;base64,AA==", '"}', "x" * 3000, "-1", "model"]
NUMBERS = [0, 1, -1, 2**31, 2**63, -(2**63) - 1, 1e308, 0.5, -0.0]
LEAVES: dict[str, list[Any]] = {
    "string": TEXTS,
    "integer": NUMBERS,
    "number": NUMBERS,
    "boolean": [True, False],
    "null": [None],
}
IDS = ["ok-1", "", " ", "x" * 129, "caf\xe9", "a b", "a,b"]
ANSWERED = (200, 400, 403, 404, 408, 413, 415)


class Maker:
    """Makes values of a schema, mostly."""

    def __init__(self, seed: int, components: dict[str, Any]) -> None:
        self.random = random.Random(seed)  # noqa: S311 - a seed, not a secret
        self._schemas = components

    def one(self, *choices: Any) -> Any:
        return self.random.choice(choices)

    def often(self, share: float) -> bool:
        return self.random.random() < share

    def value(self, schema: dict[str, Any], depth: int = 0) -> Any:
        if self.often(0.03):
            schema = ANY
        if "$ref" in schema:
            return self.value(self._schemas[schema["$ref"].rpartition("/")[2]], depth)
        for union in ("anyOf", "oneOf"):
            if union in schema:
                return self.value(self.one(*schema[union]), depth)
        if "allOf" in schema:
            parts = [self.value(part, depth) for part in schema["allOf"]]
            objects = [part for part in parts if isinstance(part, dict)]
            return {key: value for part in objects for key, value in part.items()} if objects else parts[0]
        if "enum" in schema:
            return self.one(*schema["enum"])
        return self._of_type(schema, schema.get("type", "any"), depth)

    def _of_type(self, schema: dict[str, Any], kind: Any, depth: int) -> Any:
        match self.one(*kind) if isinstance(kind, list) else kind:
            case "array":
                return self._list(schema.get("items", ANY), depth)
            case "object":
                return self._object(schema, depth)
            case "string" | "integer" | "number" | "boolean" | "null" as leaf:
                return self.one(*LEAVES[leaf])
            case _:
                return self._of_type(ANY, self.one(*LEAVES, *(("array", "object") if depth < MAX_DEPTH else ())), depth)

    def _list(self, items: dict[str, Any], depth: int) -> list[Any]:
        return [self.value(items, depth + 1) for _ in range(self.random.randrange(3) if depth < MAX_DEPTH else 0)]

    def _object(self, schema: dict[str, Any], depth: int) -> dict[str, Any]:
        declared = schema.get("properties") or dict.fromkeys(("model", "stream", "messages", "content", "options"), ANY)
        wanted = set(schema.get("required", ()))
        return {
            name: self.value(inner, depth + 1)
            for name, inner in declared.items()
            if (name in wanted and self.often(0.95)) or (depth < MAX_DEPTH and self.often(0.3))
        }

    def body(self, schema: dict[str, Any]) -> bytes:
        """A JSON body that names the model, mostly."""
        document = self.value(schema)
        if isinstance(document, dict) and self.often(0.8):
            document["model"] = "public-m"
            if self.often(0.7):
                document["stream"] = self.often(0.5)
        written = json.dumps(document, ensure_ascii=self.often(0.5)).encode("utf-8", "surrogatepass")
        return self._spoilt(written) if self.often(0.1) else written

    def _spoilt(self, body: bytes) -> bytes:
        at = self.random.randrange(len(body) + 1)
        return self.one(body[:at], body[:at] + bytes([self.random.randrange(256)]) + body[at + 1 :], body * 2, b"")

    def form(self, schema: dict[str, Any]) -> tuple[bytes, str]:
        """The same as a form, and its content type."""
        document = self.value(schema)
        fields = document if isinstance(document, dict) else {}
        fields["model"] = self.one("public-m", "public-m", "", fields.get("model"))
        parts = [self._part(name, value) for name, value in fields.items()]
        body = b"".join(parts) + b"--B--\r\n"
        return (self._spoilt(body) if self.often(0.15) else body), "multipart/form-data; boundary=B"

    def _part(self, name: str, value: Any) -> bytes:
        file = '; filename="a.wav"' if name in {"file", "image", "mask"} else ""
        text = value if isinstance(value, str) else json.dumps(value)
        head = f'--B\r\nContent-Disposition: form-data; name="{name}"{file}\r\n\r\n'
        return head.encode() + text.encode("utf-8", "surrogatepass") + b"\r\n"


def description() -> dict[str, Any]:
    """OpenAI's description: beside the repository, or beside a folder of its worktrees."""
    for folder in Path(__file__).parents[3].parents:
        if (folder / DESCRIPTION).exists():
            found: dict[str, Any] = json.loads((folder / DESCRIPTION).read_text(encoding="utf-8"))
            return found
    pytest.skip(f"../{DESCRIPTION} is not here")


def schemas_of(described: dict[str, Any]) -> dict[str, tuple[str, dict[str, Any]]]:
    """For each path that takes a body: its content type and its schema."""
    found = {}
    for path, methods in described["paths"].items():
        for kind, content in methods.get("post", {}).get("requestBody", {}).get("content", {}).items():
            found.setdefault("/v1" + path, (kind, content["schema"]))
    return found


def check_error(api: ApiFamily, answer: Any) -> None:
    document = answer.json()
    match api:
        case ApiFamily.OPENAI:
            assert set(document["error"]) == {"message", "type", "param", "code"}
        case ApiFamily.ANTHROPIC:
            assert document["type"] == "error"
            assert document["error"]["message"]
        case ApiFamily.OLLAMA:
            assert document["error"]
        case ApiFamily.SDAPI:
            assert document["detail"]


async def answer_anything(seen: Any) -> None:
    try:
        stream = json.loads(seen.body).get("stream") is True
    except ValueError:
        stream = False
    if stream:
        await seen.stream(b'data: {"model": "backend-m", "choices": []}\n\n', b"data: [DONE]\n\n")
    else:
        choice = {"index": 0, "text": "hi", "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}
        vector = {"index": 0, "embedding": [0.5]}
        await seen.json({"object": "anything", "model": "backend-m", "choices": [choice], "data": [vector]})


async def send_all(gate: Any, backend: Any, until: Any, requests: list[tuple[Any, bytes, str]], maker: Maker) -> None:
    """Send the requests one after the other, and hold everything that must be true of each."""
    for number, (row, body, content_type) in enumerate(requests):
        seen = len(backend.seen)
        given = maker.one(*IDS)
        answer = await gate.ask("POST", row.path, body, f"Content-Type: {content_type}", f"x-request-id: {given}")
        what = f"request {number}: {row.path} {body[:2000]!r} -> {answer}"
        assert answer.status in ANSWERED, what
        assert len(answer.all("x-request-id")) == 1, what
        if given == "ok-1":
            assert answer.all("x-request-id") == ["ok-1"]
        assert len(backend.seen) - seen == (1 if answer.status == 200 and "x-turnout-node" in dict(answer.headers) else 0), what  # fmt: skip
        if answer.status >= 400:
            check_error(row.api, answer)
    await until(gate.idle)
    answered = [record for record in gate.records() if record["status"]]
    assert len(answered) == len(gate.records()) == len(requests)
    assert {record["outcome"] for record in answered} <= {"ok", "refused"}


@pytest.mark.parametrize("seed", SEEDS)
async def test_made_from_openais_description(front: Any, raw_backend: Any, until: Any, caplog: Any, seed: int) -> None:
    described = description()
    backend = await raw_backend(answer_anything)
    gate = await front(backend.url, model={"capabilities": EVERYTHING})
    maker = Maker(seed, described["components"]["schemas"])
    rows = {row.path: row for row in ENDPOINTS if row.method == "POST"}
    kinds = schemas_of(described)
    assert len(kinds) >= 9
    requests = []
    for _ in range(REQUESTS):
        path = maker.one(*kinds)
        kind, schema = kinds[path]
        made = maker.form(schema) if kind.startswith("multipart") else (maker.body(schema), kind)
        requests.append((rows[path], *made))
    await send_all(gate, backend, until, requests, maker)
    assert not [record for record in caplog.records if record.exc_info]


@pytest.mark.parametrize("seed", SEEDS)
async def test_made_from_no_description(front: Any, raw_backend: Any, until: Any, caplog: Any, seed: int) -> None:
    backend = await raw_backend(answer_anything)
    gate = await front(backend.url, model={"capabilities": EVERYTHING})
    maker = Maker(seed, {})
    rows = [row for row in ENDPOINTS if row.method == "POST" and not row.is_local]
    requests = []
    for _ in range(REQUESTS):
        row = maker.one(*rows)
        as_form = row.body is BodyKind.MULTIPART or (row.body is BodyKind.EITHER and maker.often(0.5))
        schema = {"type": "object"} if maker.often(0.9) else ANY
        made = maker.form(schema) if as_form else (maker.body(schema), "application/json")
        requests.append((row, *made))
    await send_all(gate, backend, until, requests, maker)
    assert not [record for record in caplog.records if record.exc_info]
