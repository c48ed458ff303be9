"""An offline dry-run says what is going to become of a request by guardians and recipes, and that it is not so today."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from turnout_cli.main import app_for

CLUSTER = """\
apiVersion: turnout.dev/v1alpha1
kind: RouterNode
metadata: {name: solo}
spec:
  role: Standalone
  backends: [{name: llama, family: LlamaCpp, url: "http://127.0.0.1:8081"}]
  models:
  - {id: small, backend: llama}
  - {id: eyes, backend: llama, capabilities: [Text, Vision]}
---
apiVersion: turnout.dev/v1alpha1
kind: Guardian
metadata: {name: reader}
spec: {scope: {cluster: true}, guardian: {node: solo, model: eyes}}
---
apiVersion: turnout.dev/v1alpha1
kind: SplitRecipe
metadata: {name: studio}
spec: {publicID: studio, components: [{capability: Text, node: solo, model: small}]}
"""
TEXT = [{"role": "user", "content": "hi"}]
IMAGE = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}]}]


@pytest.fixture
def dry_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("cluster.yaml").write_text(CLUSTER)

    def run(*arguments):
        called = ["dry-run", "cluster.yaml", "--output", "json", *arguments]
        result = CliRunner().invoke(app_for(called), called)
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout), result.stderr

    return run


def of_a_request(dry_run, model, messages):
    Path("request.json").write_text(json.dumps({"model": model, "messages": messages}))
    return dry_run("--request", "request.json")


def test_images_for_a_guardian_are_refused_today(dry_run):
    answer, said = of_a_request(dry_run, "small", IMAGE)

    assert answer["guardian"]["model"] == "eyes"
    assert "do not act on Guardians and SplitRecipes yet" in said
    assert "today this request goes to nothing: no model can do this, and a client gets 400" in said


def test_the_name_of_a_recipe_is_nobodys_today(dry_run):
    answer, said = of_a_request(dry_run, "studio", TEXT)

    assert answer["candidates"][0]["model"] == "studio"
    assert "today this request goes to nothing: nobody declared that name, and a client gets 404" in said


@pytest.mark.parametrize(("model", "messages"), [("small", TEXT), ("eyes", IMAGE)])
def test_a_request_that_needs_neither_is_told_without_a_word(dry_run, model, messages):
    answer, said = of_a_request(dry_run, model, messages)

    assert answer["candidates"][0]["model"] == model
    assert said == ""


@pytest.mark.parametrize(("model", "is_said"), [("studio", True), ("small", False)])
def test_the_counts_of_a_trace_are_told_likewise(dry_run, model, is_said):
    Path("trace.csv").write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,374,44\n")

    answer, said = dry_run("--trace", f"trace.csv={model}")

    assert answer["after"]["models"] == {model: 1}
    assert ("these counts are not today's" in said) is is_said
