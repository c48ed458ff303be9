"""Which of two configurations a router takes at its start."""

import pytest

from turnout_api.config import RouterConfig
from turnout_router.startable import newer


def config(generation: int, node_id: str = "a") -> RouterConfig:
    return RouterConfig.model_validate({"generation": generation, "cluster": {"node_id": node_id}})


@pytest.mark.parametrize(
    ("kept", "taken"),
    [(None, 2), (config(1), 2), (config(2), 2), (config(3), 3), (config(3, node_id="b"), 2)],
    ids=["nothing kept", "older", "as old", "newer", "another node's"],
)
def test_the_newer_one_of_this_node_is_taken(kept: RouterConfig | None, taken: int) -> None:
    assert newer(config(2), kept).generation == taken
