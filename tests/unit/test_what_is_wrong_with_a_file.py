"""A file that a router refuses: each mistake with its place, and nothing of what stands in the file."""

from pathlib import Path

import pytest

from turnout_api.config import AccessConfig
from turnout_router.access import AccessError, ApiKeys
from turnout_router.main import read_config
from turnout_router.startable import RouterRefused


def test_a_misspelt_key_of_the_configuration_is_named(tmp_path: Path) -> None:
    path = tmp_path / "router.yaml"
    path.write_text("cluster: {role: Standalone, node_di: one}\n")
    with pytest.raises(RouterRefused) as refused:
        read_config(path)
    assert str(refused.value).splitlines()[1:] == [
        "  cluster.node_id: this key is missing",
        "  cluster.node_di: no such key",
    ]


def test_a_key_in_the_clear_is_not_shown(tmp_path: Path) -> None:
    path = tmp_path / "clients.yaml"
    path.write_text("clients:\n- {name: ann, key: sk-very-secret}\n")
    with pytest.raises(AccessError) as refused:
        ApiKeys.of(AccessConfig(clients_file=str(path)))
    assert "clients.0.key: no such key" in str(refused.value)
    assert "sk-very-secret" not in str(refused.value)
    assert refused.value.__cause__ is None
