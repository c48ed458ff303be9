"""The router's configuration file, as people write it."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from turnout_api.config import ClusterConfig, RouterConfig
from turnout_api.vocabulary import BackendMode, Policy, Role
from turnout_router.main import read_config
from turnout_router.startable import RouterRefused, check_startable

ONE: dict[str, Any] = {
    "cluster": {"node_id": "n"},
    "models": {"local": [{"id": "m", "backend": "b"}]},
    "backend": {"backends": [{"name": "b", "family": "OpenAI", "url": "http://127.0.0.1:1"}]},
}


def test_the_spellings_of_the_requirement_texts_are_accepted() -> None:
    config = RouterConfig.model_validate(
        {
            "cluster": {"node_id": "n", "role": "master", "endpoint_policy": "least-loaded"},
            "backend": {"mode": "llama_sdcpp"},
        }
    )
    assert config.cluster.role is Role.MASTER
    assert config.cluster.endpoint_policy is Policy.LEAST_LOADED
    assert config.backend.mode is BackendMode.LLAMA_SD_CPP


def test_a_misspelt_key_is_refused_by_its_name() -> None:
    with pytest.raises(ValidationError, match="max_queue_deph"):
        RouterConfig.model_validate({"cluster": {"node_id": "n", "max_queue_deph": 3}})


def test_a_lease_that_would_end_between_two_ticks_is_refused() -> None:
    with pytest.raises(ValidationError, match="at least twice"):
        RouterConfig.model_validate({"cluster": {"node_id": "n", "scheduling_lease_ttl": "15s"}})


def test_a_hash_that_is_not_given_is_computed_and_differs_with_the_context_window() -> None:
    def hashed(**fields: Any) -> str:
        config = RouterConfig.model_validate(ONE | {"models": {"local": [{"id": "m", "backend": "b", **fields}]}})
        return config.hash_of(config.models.local[0])

    assert hashed() == hashed() != hashed(context_window=8192)
    assert hashed(config_hash="mine") == "mine"


def test_a_model_of_an_undeclared_backend_is_refused() -> None:
    with pytest.raises(ValidationError, match="'c', which is not declared"):
        RouterConfig.model_validate(ONE | {"models": {"local": [{"id": "m", "backend": "c"}]}})


def test_models_of_the_config_folder_are_added(tmp_path: Path) -> None:
    folder = tmp_path / "models"
    folder.mkdir()
    (folder / "second.yaml").write_text("{id: second, backend: b}")
    (folder / "notes.txt").write_text("no model")
    path = tmp_path / "router.yaml"
    path.write_text(yaml.safe_dump(ONE | {"models": {"config_dir": str(folder), "local": ONE["models"]["local"]}}))
    assert [model.id for model in read_config(path).models.local] == ["m", "second"]


@pytest.mark.parametrize(
    ("text", "says"),
    [("[", "cannot be read"), ("cluster: {}", "cluster.node_id"), ("- a", "no router configuration")],
)
def test_a_file_that_is_no_configuration_is_refused_with_its_name(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "router.yaml"
    path.write_text(text)
    with pytest.raises(RouterRefused, match=says) as refusal:
        read_config(path)
    assert str(path) in str(refusal.value)


@pytest.mark.parametrize(
    ("cluster", "says"),
    [
        ({"role": "slave", "public_url": "http://h:1"}, "master_url"),
        ({"role": "slave", "master_url": "http://h:1"}, "public_url"),
        ({"role": "master", "master_url": "http://h:1"}, "master_url is for a Slave"),
        ({"role": "standalone", "slave_urls": ["http://h:1"]}, "slave_urls is for a Master"),
    ],
)
def test_a_role_without_what_it_needs_does_not_start(cluster: dict[str, Any], says: str) -> None:
    with pytest.raises(RouterRefused, match=says):
        check_startable(RouterConfig.model_validate({"cluster": {"node_id": "n", **cluster}}))


@pytest.mark.parametrize("url", ["http://gpu:http", "http://gpu:65536", "gpu:8900", "dns+gpu", "http://gpu:1\n"])
def test_a_url_that_no_router_could_call_is_refused_before_one_tries(url: str) -> None:
    with pytest.raises(ValidationError, match="slave_urls"):
        ClusterConfig.model_validate({"node_id": "master", "role": "Master", "slave_urls": [url]})


@pytest.mark.parametrize(
    "url", ["http://gpu", "https://gpu.space.svc:8900/", "dns+http://gpu:8900", "http://[::1]:1/a"]
)
def test_urls_of_slaves_may_be_names_and_addresses(url: str) -> None:
    ClusterConfig.model_validate({"node_id": "master", "role": "Master", "slave_urls": [url]})
