"""What does not fit into a Secret as it is goes into it compressed, and as it is again once it fits."""

import base64
import gzip
from typing import Any

import yaml

from turnout_operator import deliver


def secret_of(planned: Any, node: str) -> dict[str, Any]:
    return next(dict(s) for s in planned.secrets if s["metadata"]["name"] == f"turnout-router-{node}")


def test_it_is_one_file_a_router_reads_and_nothing_is_written_again(
    namespace: Any, specs: Any, monkeypatch: Any
) -> None:
    namespace.round()
    limit = deliver.size_of(deliver.content_of(namespace.round().nudges[1].config)) + 100
    monkeypatch.setattr(deliver, "MAX_CONFIG_BYTES", limit)
    namespace.put("RouterNode", "gpu-a", specs.slave("gpu-a", backendModel="x" * 900))

    secret = secret_of(namespace.round(), "gpu-a")

    assert list(secret["data"]) == ["router.yaml.gz"]
    config = yaml.safe_load(gzip.decompress(base64.b64decode(secret["data"]["router.yaml.gz"])))
    assert config["models"]["local"][0]["backend_model"] == "x" * 900
    assert "TooLarge" not in [
        condition["reason"] for condition in namespace.status("RouterNode", "gpu-a")["conditions"]
    ]
    assert namespace.round().secrets == ()


def test_one_that_fits_again_is_readable_again(namespace: Any, specs: Any, monkeypatch: Any) -> None:
    namespace.round()
    limit = deliver.size_of(deliver.content_of(namespace.round().nudges[1].config)) + 100
    monkeypatch.setattr(deliver, "MAX_CONFIG_BYTES", limit)
    namespace.put("RouterNode", "gpu-a", specs.slave("gpu-a", backendModel="x" * 900))
    namespace.round()
    namespace.put("RouterNode", "gpu-a", specs.slave("gpu-a"))

    assert list(secret_of(namespace.round(), "gpu-a")["data"]) == ["router.yaml"]
