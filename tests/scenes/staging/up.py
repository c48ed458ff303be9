"""The processes of `turnout up`."""

import asyncio
import json
import os
import re
import signal
import sys
from pathlib import Path
from typing import Any

from staging.real import RealStage
from staging.setting import Node
from staging.story import Run
from turnout_router.simbackend.ledger import Record

START_S = 40.0


class UpStage(RealStage):
    """A subprocess that runs a router process for each node."""

    beat_s = 0.08
    deadline_s = 90.0

    async def _raise(self, text: str) -> None:
        self._manifest = self.folder / "scene.yaml"
        await asyncio.to_thread(self._manifest.write_text, text)
        self._state = self.folder / "state"
        command = [
            sys.executable,
            "-m",
            "turnout_cli.main",
            "up",
            str(self._manifest),
            "--port",
            "0",
            "--state",
            str(self._state),
        ]
        pipe = asyncio.subprocess.PIPE
        self._process = await asyncio.create_subprocess_exec(*command, stdout=pipe, stderr=pipe, start_new_session=True)
        self.said: list[str] = []
        self._listener = asyncio.create_task(self._listen())
        self.down.push_async_callback(self._stop)
        assert self._process.stdout is not None
        async with asyncio.timeout(START_S):
            line = (await self._process.stdout.readline()).decode()
        assert line.startswith("ready: "), "\n".join(self.said)
        self._url = line.removeprefix("ready: ").strip()
        self._credentials = await asyncio.to_thread(self._read, "credentials.json")
        self._ports = {
            name: each["port"] for name, each in (await asyncio.to_thread(self._read, "state.json"))["ports"].items()
        }

    def _read(self, name: str) -> Any:
        return json.loads((self._state / name).read_text())

    async def _listen(self) -> None:
        assert self._process.stderr is not None
        async for line in self._process.stderr:
            self.said.append(line.decode().rstrip())

    async def _stop(self) -> None:
        if self._process.returncode is None:
            self._process.send_signal(signal.SIGINT)
        await self._process.wait()
        await self._listener

    async def _apply(self, text: str) -> None:
        before = len(self.said)
        await asyncio.to_thread(self._manifest.write_text, text)

        async def applied() -> bool | None:
            return any("applied as generation" in line for line in self.said[before:]) or None

        await self.wait(applied, "the edit is applied")

    @property
    def gateway(self) -> str:
        return self._url

    @property
    def keys(self) -> dict[str, str]:
        return self._credentials

    def url_of(self, node: str) -> str:
        return self._url if node == "master" else f"http://127.0.0.1:{self._ports[node]}"

    async def freeze(self, node: str) -> None:
        self._frozen.add(node)
        os.kill(self._pid(node), signal.SIGSTOP)

    async def thaw(self, node: str) -> None:
        self._frozen.discard(node)
        os.kill(self._pid(node), signal.SIGCONT)

    async def crash(self, node: str) -> None:
        os.kill(self._pid(node), signal.SIGKILL)

    async def replace_master(self) -> None:
        old = self._pid("master")
        os.kill(self._pid("o"), signal.SIGSTOP)
        os.kill(old, signal.SIGKILL)

        async def answers() -> bool | None:
            return await self._cluster_get("master", "status") is not None or None

        await self.wait(answers, "`turnout up` has started another master")
        os.kill(self._pid("o"), signal.SIGCONT)
        await self._until_serving()

    # Backends that routers start

    def _backend_of(self, node: Node) -> dict[str, Any]:
        if not self.setting.processes:
            return super()._backend_of(node)
        options = self._options(node)
        command = [
            "turnout", "sim-backend", "--port=${PORT}", "--model=${MODEL}", "--prefill-tokens-per-second=0",
            f"--decode-tokens-per-second={options.decode_tokens_per_second}", f"--image-seconds={options.image_seconds}",
        ]  # fmt: skip
        return {"family": "Process", "command": command}

    async def look_at_runs(self) -> list[Run]:
        if not self.setting.processes:
            return await super().look_at_runs()
        found = await asyncio.gather(*(self._runs_of(node.name, node.models[0].id) for node in self.setting.nodes))
        return [run for runs in found for run in runs]

    async def _runs_of(self, node: str, model: str) -> list[Run]:
        """What the process says that it has and had."""
        (process,) = self._processes(f"--model={model} ")
        port = re.search(r"--port=(\d+)", _command_line(process))
        assert port is not None
        async with self._session.get(f"http://127.0.0.1:{port[1]}/sim/requests") as answer:
            records = [Record(**each) for each in await answer.json()]
        return [self._run_of(node, record) for record in records if record.slot is not None]

    def _pid(self, node: str) -> int:
        """The process of a node's router, not that of its guard."""
        (process,) = self._processes(str(self._state / "nodes" / node / "router.yaml"))
        return int(process.name)

    def _processes(self, part: str) -> list[Path]:
        """Those of this cluster whose command has this in it, in /proc."""
        parents = {int(entry.name): _parent(entry) for entry in Path("/proc").glob("[0-9]*")}
        ours = [self._process.pid]
        for pid in ours:
            ours += [child for child, parent in parents.items() if parent == pid]
        lines = {entry: _command_line(entry) for entry in (Path("/proc") / str(pid) for pid in ours)}
        return [entry for entry, line in lines.items() if part in line and "guard.py" not in line]


def _parent(process: Path) -> int:
    try:
        return int((process / "stat").read_text().rpartition(")")[2].split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return 0


def _command_line(process: Path) -> str:
    try:
        return (process / "cmdline").read_bytes().replace(b"\0", b" ").decode()
    except (FileNotFoundError, ProcessLookupError):
        return ""
