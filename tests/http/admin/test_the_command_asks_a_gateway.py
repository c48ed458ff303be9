"""`turnout dry-run --url`: the gateway's answer, for people and for programs."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from turnout_cli.main import app_for

BODY = {"model": "assistant", "messages": [{"role": "user", "content": "hi"}]}
FRONTEND = {
    "name": "assistant",
    "rules": [{"name": "no", "when": {"stream": True}, "action": "deny", "deny_status": 403, "deny_message": "not so"}],
    "defaults": {"targets": [{"provider_model_id": "cc11"}]},
}


@pytest.fixture(autouse=True)
async def assistant(admin: Any, local: Any, until: Any) -> None:
    assert (await admin("POST", "/frontend-models", FRONTEND))[0] == 201
    await until(lambda: all(model.available for model in local.router.registry.models()))


async def run(local: Any, body: dict[str, Any], *options: str) -> Result:
    request: Path = local.folder / "request.json"
    await asyncio.to_thread(request.write_text, json.dumps(body))
    url = f"http://127.0.0.1:{local.router.port}"
    words = ["dry-run", "--url", url, "--request", str(request), "--state", str(local.folder / "state"), *options]
    return await asyncio.to_thread(CliRunner().invoke, app_for(words), words)


async def test_a_program_gets_the_very_answer(admin: Any, local: Any) -> None:
    result = await run(local, BODY, "--output", "json")
    assert result.exit_code == 0
    assert json.loads(result.stdout) == (await admin("POST", "/routing/dry-run", {"body": BODY}))[1]


async def test_a_person_gets_a_table(local: Any) -> None:
    result = await run(local, BODY | {"stream": True})
    assert "assistant/no" in result.stdout
    assert "403 not so" in result.stdout
    result = await run(local, BODY)
    assert "cc11 on alone" in result.stdout
    assert "assistant/no" in result.stdout.partition("Rules before it:")[2]


async def test_a_wrong_password_is_told(local: Any, tmp_path: Path) -> None:
    (tmp_path / "password").write_text("wrong\n")
    result = await run(local, BODY, "--user", "admin", "--password-file", str(tmp_path / "password"))
    assert result.exit_code == 1
    assert "name or password is wrong" in result.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["cluster.yaml"], "either FILEs or --url"),
        (["--user", "ann"], "go together"),
        (["--at", "2026-01-01"], "alone"),
    ],
)
async def test_what_does_not_go_together_is_refused(local: Any, options: list[str], message: str) -> None:
    result = await run(local, BODY, *options)
    assert result.exit_code == 1
    assert message in result.stderr
