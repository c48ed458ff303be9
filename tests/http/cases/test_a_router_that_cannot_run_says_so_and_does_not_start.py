"""A Slave without its URLs, a token that is empty or copied from an example: refused at the start, with what to do."""

from typing import Any

import pytest
from pydantic import ValidationError

from turnout_router.startable import RouterRefused

SLAVE = {"role": "Slave", "node_id": "gpu", "master_url": "http://127.0.0.1:1", "public_url": "http://127.0.0.1:2"}
MASTER = {"role": "Master", "node_id": "master"}


@pytest.mark.parametrize(
    ("cluster_section", "says"),
    [
        (SLAVE | {"master_url": ""}, "master_url"),
        (SLAVE | {"public_url": ""}, "public_url"),
        (SLAVE | {"public_url": "gpu:8900"}, "public_url"),
        (SLAVE | {"token_file": ""}, "token_file"),
        (MASTER | {"token_file": ""}, "token_file"),
        (MASTER | {"slave_urls": ["gpu:8900"]}, "slave_urls"),
        (MASTER | {"slave_urls": ["dns+gpu"]}, "slave_urls"),
        (MASTER | {"token_file": "/nowhere/token"}, "/nowhere/token"),
    ],
)
async def test_a_configuration(cluster: Any, cluster_section: dict[str, Any], says: str) -> None:
    with pytest.raises((RouterRefused, ValidationError), match=says):
        await cluster.router(cluster_section, 0, "", ())


@pytest.mark.parametrize("name", ["token", "key"])
@pytest.mark.parametrize(
    "secret",
    [
        "",
        "  \n",
        "short",
        "changeme",
        "CHANGE-ME-PLEASE-0123456789",
        "<your cluster token here>",
        "xxplaceholderxx0123",
    ],
)
async def test_a_secret(cluster: Any, monkeypatch: pytest.MonkeyPatch, name: str, secret: str) -> None:
    write = type(cluster).secret
    monkeypatch.setattr(
        type(cluster), "secret", lambda self, which, text: write(self, which, secret if which == name else text)
    )
    with pytest.raises(RouterRefused, match=name):
        await cluster.router(MASTER, 0, "", ())


async def test_a_backend_that_no_driver_knows(cluster: Any) -> None:
    cluster.runtime = {"backends": [{"name": "b", "family": "SdCpp", "url": "http://127.0.0.1:1"}]}
    with pytest.raises(RouterRefused, match="SdCpp"):
        await cluster.router({"role": "Standalone", "node_id": "solo"}, 0, "http://x", (cluster.model("m"),))
