"""An answer says which model and node gave it, by the names of resources; `explanation_headers` turns that off."""

from typing import Any

import pytest


@pytest.mark.parametrize("explained", [True, False])
async def test_who_answered(front: Any, raw_backend: Any, way: str, explained: bool) -> None:
    gate = await front((await raw_backend()).url, explanation_headers=explained)
    answer = await gate.chat()
    node = "solo" if way == "standalone" else "gpu"
    model, node_name = answer.all("x-turnout-model"), answer.all("x-turnout-node")
    assert (model, node_name) == ((["public-m"], [node]) if explained else ([], []))
