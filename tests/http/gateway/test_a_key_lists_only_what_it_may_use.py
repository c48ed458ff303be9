"""A key that may use some models sees only those, and is told of the others what a chat with them is told: 403."""

import time
from hashlib import sha256
from typing import Any

import aiohttp
import pytest

from turnout_router.access import Caller
from turnout_router.families import paths
from turnout_router.families.errors import Forbidden
from turnout_router.gateway import models_api

ANN = Caller("ann", models=frozenset({"hers"}))


async def test_a_key_lists_only_what_it_may_use(cluster: Any) -> None:
    backend = await cluster.backend(models=("hers", "other"))
    alone = await cluster.standalone(backend.url, cluster.model("hers"), cluster.model("other"))
    known = models_api.Known(alone.registry.table, since=time.time())

    def asked(path: str) -> bytes:
        match = paths.find("GET", path)
        return models_api.answer(match.endpoint, match.model, known, ANN)

    assert b'"hers"' in asked("/v1/models")
    assert b'"other"' not in asked("/v1/models")
    assert b'"hers"' in asked("/v1/models/hers")
    with pytest.raises(Forbidden, match="may not use model 'other'"):
        asked("/v1/models/other")


async def test_a_key_is_answered_by_no_other_model(cluster: Any, client: aiohttp.ClientSession) -> None:
    backend = await cluster.backend(models=("hers", "other"))
    alone = await cluster.standalone(backend.url, cluster.model("hers"), cluster.model("other"))
    alone.keys._callers[sha256(b"the key of ann").digest()] = ANN

    async def status_of(model: str) -> int:
        chat = {"model": model, "messages": [{"role": "user", "content": "x"}], "max_tokens": 1}
        headers = {"Authorization": "Bearer the key of ann"}
        async with client.post("/v1/chat/completions", json=chat, headers=headers) as response:
            return response.status

    assert [await status_of(model) for model in ("hers", "other", "nobodys")] == [200, 403, 404]
    assert {record.model for record in backend.requests} == {"hers"}
