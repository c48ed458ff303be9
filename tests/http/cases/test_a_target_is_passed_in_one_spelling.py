"""A path that a client spelt in its own way reaches the backend as the one that the router judged, with its query."""

from typing import Any

import pytest

QUERY = "a=1&b=%20%2F&b=x+y&c=caf%C3%A9&d"
SPELLINGS = {
    "plain": "/v1/chat/completions",
    "percent-encoded": "/v1/%63hat/completion%73",
    "encoded slash": "/v1/chat%2Fcompletions",
    "absolute": "http://gateway/v1/chat/completions",
    "dot segments": "/v1/x/../chat/./completions",
}


@pytest.mark.parametrize("spelling", SPELLINGS)
async def test_the_backend_sees_the_path_of_the_table_and_the_query_as_written(
    front: Any, raw_backend: Any, body_of_a_chat: Any, spelling: str
) -> None:
    backend = await raw_backend()
    gate = await front(backend.url)
    answer = await gate.ask("POST", f"{SPELLINGS[spelling]}?{QUERY}", body_of_a_chat())
    assert answer.status in {200, 404}
    assert {seen.target for seen in backend.seen} <= {f"/v1/chat/completions?{QUERY}"}
    assert len(backend.seen) == (answer.status == 200)


@pytest.mark.parametrize("way", ["slave"], indirect=True)
@pytest.mark.parametrize(
    "target",
    [
        "/v1/chat/completions/../../../snapshot",
        "/v1/chat/completions/..%2f..%2f..%2fsnapshot",
        "/v1/models/../../router/v1/node/snapshot",
        "/../snapshot",
        "//v1/models",
        "/router/v1/node/serve/../snapshot",
    ],
)
async def test_no_spelling_leads_a_client_to_what_only_routers_may_call(
    front: Any, raw_backend: Any, target: str
) -> None:
    gate = await front((await raw_backend()).url)
    for method in ("GET", "POST"):
        answer = await gate.ask(method, target, b'{"model": "public-m"}')
        assert answer.status in {400, 401, 404, 405}
        assert b"node_id" not in answer.body
