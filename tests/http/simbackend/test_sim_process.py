"""`turnout sim-backend` as a process: its line, its log, its end."""

import asyncio
import json
import signal
import sys

COMMAND = (sys.executable, "-m", "turnout_cli.main", "sim-backend")


async def started(*arguments):
    process = await asyncio.create_subprocess_exec(*COMMAND, *arguments, stdout=asyncio.subprocess.PIPE)
    line = (await process.stdout.readline()).decode()
    assert line.startswith("listening: http://127.0.0.1:")
    return process, line.split()[1]


async def ended(process):
    process.send_signal(signal.SIGTERM)
    assert await process.wait() == 0


async def test_each_request_is_one_line_of_the_log(http, tmp_path):
    log = tmp_path / "requests.jsonl"
    process, url = await started("--model", "a", "--log", str(log))
    chat = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 2, "stream": True}
    async with http.post(f"{url}/v1/chat/completions", json=chat, headers={"x-request-id": "r-1"}) as response:
        await response.read()
    await ended(process)
    (line,) = map(json.loads, log.read_text().splitlines())
    assert {name: line[name] for name in ("id", "model", "outcome", "path", "stream", "status")} == {
        "id": "r-1",
        "model": "a",
        "outcome": "ok",
        "path": "/v1/chat/completions",
        "stream": True,
        "status": 200,
    }
    assert line["started"] <= line["first_byte"] <= line["ended"]


async def test_sigterm_ends_it_in_the_middle_of_a_request(http, tmp_path):
    log = tmp_path / "requests.jsonl"
    process, url = await started("--decode-tokens-per-second", "1", "--log", str(log))
    chat = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 1000, "stream": True}
    async with http.post(f"{url}/v1/chat/completions", json=chat) as response:
        await response.content.readline()
        await ended(process)
    assert json.loads(log.read_text())["outcome"] == "error"


async def test_the_records_can_be_read_while_it_runs(http):
    process, url = await started()
    async with http.post(f"{url}/v1/completions", json={"prompt": "x", "max_tokens": 1}) as response:
        await response.read()
    async with http.get(f"{url}/sim/requests") as response:
        assert [record["outcome"] for record in await response.json()] == ["ok"]
    await ended(process)


async def test_a_port_in_use_is_said_in_one_line():
    process, url = await started()
    port = url.rsplit(":", 1)[1]
    second = await asyncio.create_subprocess_exec(*COMMAND, "--port", port, stderr=asyncio.subprocess.PIPE)
    _, said = await second.communicate()
    assert second.returncode == 1
    assert said.startswith(b"turnout sim-backend: ")
    assert said.count(b"\n") == 1
    await ended(process)


async def test_an_option_that_cannot_be_is_said_in_one_line():
    process = await asyncio.create_subprocess_exec(
        *COMMAND, "--model", "a", "--model", "a", stderr=asyncio.subprocess.PIPE
    )
    _, said = await process.communicate()
    assert process.returncode == 2
    assert said == b"turnout sim-backend: models: name at least one, each once\n"
