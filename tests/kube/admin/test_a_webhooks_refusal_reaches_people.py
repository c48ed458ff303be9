"""With the chart's validating webhook: what it refuses is a 422 with its reason, and nothing was written at any time."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

BASE = {"name": "assistant", "defaults": {"targets": [{"provider_model_id": "cc11"}]}}
API = "turnout.dev/v1alpha1"


def jump(name: str, to: str) -> dict[str, Any]:
    return {"name": name, "rules": [{"name": "on", "action": "jump", "jump_to": to}]}


@pytest.fixture
def operator(crds: Any, namespace: str, release: Any, tmp_path: Path) -> Iterator[Any]:
    """As the chart runs it: at the address of its Service, with its account."""
    running: list[subprocess.Popen[bytes]] = []

    def start() -> None:
        release.install(namespace)
        service = crds.request("GET", f"/api/v1/namespaces/{namespace}/services/turnout")[1]
        configuration = f"turnout-{namespace}"
        options = {
            "namespace": namespace,
            "health-port": "0",
            "admin-role": "turnout-admin",
            "webhook": configuration,
            "validating-webhook": configuration,
            "webhook-secret": "turnout-webhook",
            "webhook-namespace": namespace,
            "webhook-host": service["spec"]["clusterIP"],
            "webhook-port": "443",
        }
        environment = crds.environment | {"KUBECONFIG": str(release.account(namespace, tmp_path))}
        command = [sys.executable, "-m", "turnout_operator", *(f"--{name}={value}" for name, value in options.items())]
        with (tmp_path / "operator.log").open("a") as log:
            running.append(subprocess.Popen(command, env=environment, stderr=log))

    yield start
    for process in running:
        process.terminate()
        process.wait(timeout=60)
    release.uninstall(namespace)


async def in_force(space: Any) -> None:
    """Wait until the webhook is asked, which is a moment after its configuration was written."""
    rule = {"name": "on", "when": {"unheardOf": 1}, "targets": [{"model": "cc11"}]}
    wrong = {"apiVersion": API, "kind": "FrontendModel", "metadata": {"name": "probe"}, "spec": {"rules": [rule]}}
    how = ("--dry-run=server", "-o", "name", "-f", "-")
    async with asyncio.timeout(60):
        while await space.kubectl("create", *how, stdin=yaml.safe_dump(wrong), check=False):  # noqa: ASYNC110 - another process is asked
            await asyncio.sleep(0.1)


async def test_a_loop_of_jumps_is_refused_before_it_is_there(admin: Any, space: Any) -> None:
    await in_force(space)
    await admin("POST", "/frontend-models", BASE)
    assert (await admin("POST", "/frontend-models", jump("first", "assistant")))[0] == 201
    before = await space.get("frontendmodel", "assistant")

    status, refusal = await admin("PUT", "/frontend-models/assistant", jump("assistant", "first"))

    assert (status, refusal["error"]["code"]) == (422, "JumpLoop")
    assert refusal["error"]["message"].startswith("spec.rules[0].jumpTo: jumps lead back to where they began")
    after = await space.get("frontendmodel", "assistant")
    assert (after["spec"], after["metadata"]["generation"]) == (before["spec"], before["metadata"]["generation"])
    assert await admin("DELETE", "/frontend-models/first") == (204, None)
