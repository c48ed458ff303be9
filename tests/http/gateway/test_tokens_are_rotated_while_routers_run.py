"""A token is rotated in the routers' files, one router after the other: nothing restarts, no request fails."""

from pathlib import Path
from typing import Any

import aiohttp

OLD, NEW = "cluster-0123456789abcdef", "rotated-0123456789abcdef"


class Files:
    """The token files of one router, as a Secret is mounted there."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.token, self.previous = folder / "token", folder / "token-previous"
        self.write(OLD)

    def write(self, token: str, previous: str = "") -> None:
        self.token.write_text(token)
        if previous:
            self.previous.write_text(previous)
        else:
            self.previous.unlink(missing_ok=True)

    @property
    def settings(self) -> dict[str, str]:
        return {"token_file": str(self.token), "token_previous_file": str(self.previous)}


def takes(router: Any, token: str) -> bool:
    return bool(router.tokens.accepts([f"Bearer {token}"]))


async def test_requests_are_served_at_every_step_of_a_rotation(
    cluster: Any, client: aiohttp.ClientSession, until: Any, tmp_path: Path
) -> None:
    of_master, of_slave = Files(tmp_path / "of-master"), Files(tmp_path / "of-slave")
    backend = await cluster.backend(models=("m",))
    slave = await cluster.slave("a", backend.url, cluster.model("m"), **of_slave.settings)
    master = await cluster.master(**of_master.settings)

    async def served() -> None:
        polls = master.registry.health(0)[0].last_seen_s
        body = {"model": "m", "messages": [{"role": "user", "content": "x"}], "max_tokens": 1}
        async with client.post("/v1/chat/completions", json=body) as answer:
            assert answer.status == 200, await answer.text()
        await until(lambda: master.registry.health(0)[0].last_seen_s != polls, "a poll went well")
        assert master.registry.health(0)[0].healthy

    of_master.write(NEW, OLD)
    await until(lambda: takes(master, NEW), "the master has read the new token")
    await served()  # the slave knows the old one only
    of_slave.write(NEW, OLD)
    await until(lambda: takes(slave, NEW), "the slave has read the new token")
    await served()
    of_master.write(NEW)
    await until(lambda: not takes(master, OLD), "the master has forgotten the old token")
    await served()
    of_slave.write(NEW)
    await until(lambda: not takes(slave, OLD), "the slave has forgotten the old token")
    await served()


async def test_a_token_file_that_breaks_changes_nothing(cluster: Any, until: Any, tmp_path: Path) -> None:
    files = Files(tmp_path / "of-master")
    master = await cluster.master(**files.settings)
    seen = []
    follow = master.tokens.follow
    master.tokens.follow = lambda cluster: (follow(cluster), seen.append(files.token.read_text()))

    files.write("changeme")
    await until(lambda: "changeme" in seen, "the file was looked at")

    assert takes(master, OLD)
    assert not takes(master, "changeme")
