"""A key that may use some models sees only those, and is told of the others what a chat with them is told: 403."""

import time
from typing import Any

import pytest

from turnout_router.access import Caller
from turnout_router.families import paths
from turnout_router.families.errors import Forbidden
from turnout_router.gateway import models_api

ANN = Caller("ann", models=frozenset({"hers"}))


async def test_a_key_lists_only_what_it_may_use(cluster: Any) -> None:
    backend = await cluster.backend(models=("hers", "other"))
    alone = await cluster.standalone(backend.url, cluster.model("hers"), cluster.model("other"))
    table = alone.registry.table

    def asked(path: str) -> bytes:
        match = paths.find("GET", path)
        return models_api.answer(match.endpoint, match.model, table, ANN, time.time())

    assert b'"hers"' in asked("/v1/models")
    assert b'"other"' not in asked("/v1/models")
    assert b'"hers"' in asked("/v1/models/hers")
    with pytest.raises(Forbidden, match="may not use model 'other'"):
        asked("/v1/models/other")
