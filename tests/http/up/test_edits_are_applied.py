"""Editing a manifest applies it as `kubectl apply` would; a bad edit changes nothing that is served and says why."""

import json
from typing import Any


def chat(model: str, **more: Any) -> dict[str, Any]:
    return {"model": model, "messages": [{"role": "user", "content": "hello"}], "max_tokens": 4, **more}


async def names(session: Any) -> list[str]:
    async with session.get("/v1/models") as response:
        return sorted(model["id"] for model in (await response.json())["data"])


async def test_a_good_edit_applies_without_dropping_a_running_stream(
    up: Any, write: Any, client: Any, until: Any
) -> None:
    cluster = await up(write(a=("one", 20)))
    session = client(cluster)
    async with session.post("/v1/chat/completions", json=chat("one", stream=True) | {"max_tokens": 100}) as stream:
        first = await stream.content.readline()
        assert first.startswith(b"data: ")
        pids = {cluster.router_pid("master"), cluster.router_pid("a")}
        write(a=("one", 20), b=("two", 0))
        assert "b started" in await cluster.until_said("applied as generation 2")
        rest = (first + await stream.read()).decode().split("\n\n")
    assert rest[-2:] == ["data: [DONE]", ""]
    words = [json.loads(event[6:])["choices"][0]["delta"].get("content") for event in rest[:-2]]
    assert len([word for word in words if word]) == 100
    assert pids == {cluster.router_pid("master"), cluster.router_pid("a")}
    await until.healthy(cluster, "one", "two")
    assert await names(session) == ["one", "two"]
    async with session.post("/v1/chat/completions", json=chat("two")) as response:
        assert (response.status, response.headers["x-turnout-node"]) == (200, "b")


async def test_a_removed_node_is_stopped(up: Any, write: Any, client: Any, until: Any) -> None:
    cluster = await up(write(a=("one", 0), b=("two", 0)))
    pid = cluster.router_pid("b")
    write(a=("one", 0))
    assert "b stopped" in await cluster.until_said("applied as generation 2")
    assert until.alive({pid}) == set()
    async with client(cluster).post("/v1/chat/completions", json=chat("two")) as response:
        assert response.status in {404, 503}
    assert await names(client(cluster)) == ["one"]


BAD_EDITS = (
    ("backend: sim,", "backend: other,", "cluster.yaml:19: RouterNode a: UnknownBackend"),
    (
        "contextWindow: 8192",
        "contextWindow: many",
        "cluster.yaml:20: RouterNode a: Invalid: spec.models[0].contextWindow",
    ),
    ("role: Slave", "role: Master", "cluster.yaml:13: RouterNode a: RoleMismatch"),
    ("metadata: {name: a}", "metadata: {name: a", "cluster.yaml:1"),
)


async def test_bad_edits_change_nothing_and_say_where_and_why(up: Any, write: Any, client: Any, until: Any) -> None:
    manifest = write(a=("one", 0))
    cluster = await up(manifest)
    session, before, text = client(cluster), cluster.pids(), manifest.read_text()
    for number, (old, new, why) in enumerate(BAD_EDITS, 1):
        assert old in text
        manifest.write_text(text.replace(old, new))
        assert await cluster.until_said(why)
        await until(lambda n=number: sum(line.startswith("nothing changed") for line in cluster.said) == n)
        assert cluster.pids() == before
        async with session.post("/v1/chat/completions", json=chat("one")) as response:
            assert response.status == 200
    manifest.write_text(text.replace("contextWindow: 8192", "contextWindow: 4096"))
    assert "a" in await cluster.until_said("applied as generation 2")


async def test_what_was_accepted_last_is_served_after_a_restart_too(up: Any, write: Any, client: Any) -> None:
    manifest = write(a=("one", 0))
    first = await up(manifest)
    await first.stop()
    manifest.write_text(manifest.read_text().replace("backend: sim,", "backend: other,"))
    second = await up(manifest)
    assert await second.until_said("UnknownBackend")
    assert await names(client(second)) == ["one"]


async def test_an_edit_after_the_state_folder_was_removed_changes_nothing_and_says_so(
    up: Any, write: Any, client: Any
) -> None:
    cluster = await up(write(a=("one", 0)))
    session = client(cluster)
    cluster.state.rename(cluster.state.with_name("removed"))
    write(a=("one", 0), b=("two", 0))
    assert await cluster.until_said("was removed or replaced")
    assert await cluster.until_said("nothing changed")
    async with session.post("/v1/chat/completions", json=chat("one")) as response:
        assert response.status == 200
