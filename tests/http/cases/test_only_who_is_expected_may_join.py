"""Registration: the URL must be configured, the node ID free, the token right; the refusal says which it was."""

import json
from typing import Any

import pytest

TOKEN, OTHER = "cluster-0123456789abcdef", "another-0123456789abcdef"


def snapshot(node_id: str, url: str) -> bytes:
    fields = {
        "node_id": node_id, "node": node_id, "role": "Slave", "url": url, "instance": "i", "version": "1",
        "generation": 0, "models": [],
    }  # fmt: skip
    return json.dumps(fields).encode()


async def register(gate: Any, node_id: str, url: str, token: str = TOKEN) -> tuple[int, dict[str, str]]:
    answer = await gate.ask("POST", "/router/v1/node/register", snapshot(node_id, url), key=token)
    return answer.status, answer.json()


@pytest.mark.parametrize("way", ["slave"], indirect=True)
async def test_a_url_that_is_not_configured_is_403(front: Any, raw_backend: Any) -> None:
    gate = await front((await raw_backend()).url)
    for url in ("http://127.0.0.1:9", gate.node.config.cluster.public_url.replace("127.0.0.1", "localhost"), "x", ""):
        status, body = await register(gate, "new", url)
        assert (status, body["code"]) in {(403, "url_not_permitted"), (400, "invalid_body")}, url


@pytest.mark.parametrize("way", ["slave"], indirect=True)
async def test_a_second_url_with_a_live_node_id_is_409(cluster: Any, front: Any, raw_backend: Any) -> None:
    cluster.slave_urls.append("http://127.0.0.1:9")
    gate = await front((await raw_backend()).url)
    for node_id in ("gpu", "master"):
        status, body = await register(gate, node_id, "http://127.0.0.1:9")
        assert (status, body["code"]) == (409, "node_id_conflict")
    assert (await gate.chat()).status == 200
    assert (await register(gate, "new", "http://127.0.0.1:9"))[0] == 200


@pytest.mark.parametrize("way", ["standalone"], indirect=True)
async def test_a_standalone_takes_no_slaves(front: Any, raw_backend: Any) -> None:
    gate = await front((await raw_backend()).url)
    assert (await register(gate, "new", "http://127.0.0.1:9"))[0] == 409


async def test_a_slave_with_another_token_is_unhealthy_and_both_sides_say_why(
    cluster: Any, raw_backend: Any, until: Any
) -> None:
    backend = await raw_backend()
    model = cluster.model("local-m", "public-m")
    slave = await cluster.slave("gpu", backend.url, model, token_file=cluster.secret("other", OTHER))
    master = await cluster.master(ready=False)
    await until(lambda: "401" in master.registry.health(0)[0].reason, "the master knows")
    await until(lambda: "401" in slave._slave.failure, "the slave knows")
    assert not master.registry.health(0)[0].healthy
    for reason in (master.registry.health(0)[0].reason, slave._slave.failure):
        assert "same cluster token" in reason
        assert TOKEN not in reason
        assert OTHER not in reason


@pytest.mark.parametrize(("slaves", "masters"), [((OTHER, TOKEN), (TOKEN, "")), ((TOKEN, ""), (OTHER, TOKEN))])
async def test_while_a_token_is_rotated_the_old_one_is_as_good(
    cluster: Any, raw_backend: Any, client: Any, slaves: tuple[str, str], masters: tuple[str, str]
) -> None:
    """One side has the new token already, with the old one as its previous; the other has both, or still the old one."""

    def tokens(side: str, current: str, previous: str) -> dict[str, str]:
        return {
            "token_file": cluster.secret(f"{side}-token", current),
            "token_previous_file": cluster.secret(f"{side}-previous", previous) if previous else "",
        }

    both = (masters[0], slaves[0] if slaves[0] != masters[0] else masters[1])
    backend = await raw_backend()
    await cluster.slave("gpu", backend.url, cluster.model("local-m", "public-m"), **tokens("slave", *slaves))
    await cluster.master(**tokens("master", *both))
    async with client.post("/v1/chat/completions", json={"model": "public-m"}) as response:
        assert response.status == 200


@pytest.mark.parametrize("authorization", [{}, {"Authorization": "Bearer "}, {"Authorization": "Bearer anything"}])
async def test_a_standalone_without_a_token_has_no_cluster(
    cluster: Any, raw_backend: Any, plain: Any, authorization: dict[str, str]
) -> None:
    backend = await raw_backend()
    settings = {"role": "Standalone", "node_id": "alone", "token_file": ""}
    alone = await cluster.router(settings, cluster.master_port, backend.url, (cluster.model("m"),))
    for method, path in (
        ("GET", "status"),
        ("POST", "drain"),
        ("POST", "config"),
        ("POST", "serve/v1/chat/completions"),
    ):
        url = f"http://127.0.0.1:{alone.port}/router/v1/node/{path}"
        async with plain.request(method, url, headers=authorization) as response:
            assert response.status == 401
    assert not alone.draining
