"""`POST config` with what the router cannot run with: an error that says why; the last good one serves and is kept."""

import json
from typing import Any

import pytest

TOKEN = "cluster-0123456789abcdef"


def changed(router: Any, **sections: dict[str, Any]) -> bytes:
    document = router.config.model_dump(mode="json")
    document["generation"] += 1
    for name, section in sections.items():
        document[name] |= section
    return json.dumps(document).encode()


def kept(router: Any) -> list[int]:
    """The generation of the configuration that would be taken after a restart."""
    rows = router.store.query("SELECT value FROM kept WHERE name = 'config'")
    return [json.loads(value)["generation"] for (value,) in rows]


BAD: dict[str, dict[str, Any]] = {
    "another role": {"cluster": {"role": "Slave", "master_url": "http://h:1", "public_url": "http://h:2"}},
    "another ID": {"cluster": {"node_id": "somebody-else"}},
    "another port": {"listen": {"port": 1}},
    "a family without a driver": {"backend": {"backends": [{"name": "b", "family": "SdCpp", "url": "http://h:1"}]}},
    "a URL that is none": {"backend": {"backends": [{"name": "b", "family": "OpenAI", "url": "h:1"}]}},
    "no such backend": {"backend": {"backends": []}},
    "an unknown key": {"cluster": {"colour": "red"}},
}


@pytest.mark.parametrize("what", BAD)
async def test_it_is_refused(front: Any, raw_backend: Any, caplog: Any, what: str) -> None:
    gate = await front((await raw_backend()).url)
    for router in gate.routers:
        if what == "another role" and router.config.cluster.role == "Slave":
            continue
        if "backend" in BAD[what] and router is not gate.node:
            continue  # a gateway without models needs none
        before = router.config
        gate.gateway, front_router = router, gate.gateway
        answer = await gate.ask("POST", "/router/v1/node/config", changed(router, **BAD[what]), key=TOKEN)
        gate.gateway = front_router
        assert answer.status in {400, 409}, answer
        assert answer.json()["message"]
        assert router.config is before
        assert kept(router) == []
    assert (await gate.chat()).status == 200
    assert not [record for record in caplog.records if record.exc_info]


async def test_a_good_one_is_taken_once_and_kept(front: Any, raw_backend: Any) -> None:
    gate = await front((await raw_backend()).url)
    good = changed(gate.gateway, cluster={"max_body_bytes": 2048})
    for expected in (True, False):
        answer = await gate.ask("POST", "/router/v1/node/config", good, key=TOKEN)
        assert (answer.status, answer.json()["changed"]) == (200, expected)
    assert (await gate.chat(x="y" * 3000)).status == 413
    assert kept(gate.gateway) == [gate.gateway.config.generation]
