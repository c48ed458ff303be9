"""The last command of the chart's notes works: a real router answers it, from what the commands before made and the operator delivered.

Without a kubelet nobody runs the master's pod: this test does, with the pod's Secrets as files, in the place of the two commands
that wait for the pod and forward its port.
"""

import asyncio
import base64
import json
import subprocess

import yaml

from turnout_api.config import RouterConfig
from turnout_router.backends.process import free_port
from turnout_router.router import Router


async def test_the_curl_lists_models(objects, start, release, tmp_path):
    start()
    commands = [line.strip() for line in release.install(objects.namespace).splitlines() if line.startswith("  ")]
    commands = commands[commands.index("KEY=$(openssl rand -hex 24)") :]
    *making, waiting, forwarding, curl = commands
    assert "routernode/master" in waiting
    assert "port-forward service/master 8900" in forwarding
    script = "\n".join(["set -eu", *making, 'printf %s "$KEY" >&3'])
    key = await asyncio.to_thread(run, f"exec 3>{tmp_path / 'key'}\n{script}", objects.cluster.environment)
    assert key == ""
    port = free_port()

    router = Router(as_if_mounted(objects, tmp_path, port))
    await router.start()
    try:
        last = f"KEY=$(cat {tmp_path / 'key'})\n{curl.replace('8900', str(port))}"
        answer = json.loads(await asyncio.to_thread(run, last, objects.cluster.environment))
    finally:
        await router.stop(drain_timeout_s=0)

    assert answer["object"] == "list"
    release.uninstall(objects.namespace)


def run(script: str, environment: dict[str, str]) -> str:
    """What the last command wrote; kubectl's own words are left out."""
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return "" if ">&3" in script else done.stdout


def as_if_mounted(objects, folder, port: int) -> RouterConfig:
    for name in ("token", "clients"):
        (folder / name).mkdir()
        for key, value in objects.secret(f"turnout-{name}")["data"].items():
            (folder / name / key).write_bytes(base64.b64decode(value))
    text = yaml.safe_dump(objects.config("master")).replace("/etc/turnout", str(folder))
    listen = {"host": "127.0.0.1", "port": port, "health_host": "127.0.0.1", "health_port": 0}
    return RouterConfig.model_validate(yaml.safe_load(text) | {"listen": listen})
