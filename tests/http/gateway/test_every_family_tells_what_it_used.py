"""What a stream used is known of every family, in every API, ended or left; a backend that must be asked for it is asked."""

import json
from typing import Any

import pytest

from turnout_api.vocabulary import Family

PRICE = {"input_micros_per_million_tokens": 1_000_000, "output_micros_per_million_tokens": 1_000_000}
MESSAGES = [{"role": "user", "content": "hello"}]
CASES = [
    (Family.OPENAI, "/v1/chat/completions", {"messages": MESSAGES, "max_tokens": 5}),
    (Family.OPENAI, "/v1/completions", {"prompt": "hello", "max_tokens": 5}),
    (Family.OPENAI, "/v1/messages", {"messages": MESSAGES, "max_tokens": 5}),
    (Family.OPENAI, "/v1/responses", {"input": "hello", "max_output_tokens": 5}),
    (Family.OPENAI, "/api/chat", {"messages": MESSAGES, "options": {"num_predict": 5}}),
    (Family.OPENAI, "/api/generate", {"prompt": "hello", "options": {"num_predict": 5}}),
    (Family.LLAMA_CPP, "/v1/chat/completions", {"messages": MESSAGES, "max_tokens": 5}),
    (Family.LLAMA_CPP, "/api/chat", {"messages": MESSAGES, "options": {"num_predict": 5}}),
]


async def started(cluster: Any, family: Family, **options: Any) -> Any:
    cluster.family = family.value
    backend = await cluster.backend(models=("local-m",), serve_messages=True, **options)
    return await cluster.standalone(backend.url, cluster.model("local-m", "m", price=PRICE))


def counted(router: Any) -> list[tuple[Any, ...]]:
    return list(router.store.query("SELECT outcome, output_tokens, input_tokens > 0, cost_micros > 0 FROM requests"))


Case = tuple[Family, str, dict[str, Any]]
every_case = pytest.mark.parametrize("streamed", CASES, ids=[f"{family.value} {path}" for family, path, _ in CASES])


@every_case
async def test_a_stream_that_ended(cluster: Any, client: Any, streamed: Case) -> None:
    family, path, body = streamed
    router = await started(cluster, family)
    async with client.post(path, json={"model": "m", "stream": True, **body}) as response:
        said = await response.read()
        assert response.status == 200, said
    assert counted(router) == [("ok", 5, 1, 1)]
    if path == "/v1/chat/completions":
        events = [json.loads(line[6:]) for line in said.splitlines() if line.startswith(b"data: {")]
        assert not any("usage" in event or not event["choices"] for event in events), "nobody asked for it"


@every_case
async def test_a_stream_that_was_left(cluster: Any, client: Any, until: Any, streamed: Case) -> None:
    family, path, body = streamed
    router = await started(cluster, family, decode_tokens_per_second=20)
    endless = {
        key: value if isinstance(value, (str, list)) else ({"num_predict": 4000} if key == "options" else 4000)
        for key, value in body.items()
    }
    async with client.post(path, json={"model": "m", "stream": True, **endless}) as response:
        assert response.status == 200
        got = b""
        while len(got) < 2000:
            got += await response.content.readany()
        response.close()
    await until(lambda: not router.open_requests, "the request ended")
    ((outcome, output, has_input, has_cost),) = counted(router)
    assert (outcome, has_input, has_cost) == ("client_gone", 1, 1)
    sent = got.count(b"\n") if path.startswith("/api/") else got.count(b"\n\n")
    assert sent - 6 <= output <= sent + 2, "an event is a token, but for its frame"
