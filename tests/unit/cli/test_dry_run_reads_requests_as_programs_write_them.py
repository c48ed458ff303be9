"""A request for `turnout dry-run` may be written by a program: what a router would read, the command reads alike."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from turnout_api.routing import read
from turnout_cli.main import app_for

CLUSTER = """\
apiVersion: turnout.dev/v1alpha1
kind: RouterNode
metadata: {name: solo}
spec:
  role: Standalone
  backends: [{name: llama, family: LlamaCpp, url: "http://127.0.0.1:8081"}]
  models: [{id: small, backend: llama, price: {inputMicrosPerMillionTokens: 1000000}}]
"""
SMILES = {"model": "small", "messages": [{"role": "user", "content": "😀" * 1000}], "max_tokens": 1}


@pytest.fixture
def dry_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("cluster.yaml").write_text(CLUSTER)

    def run(text):
        Path("request.json").write_text(text)
        called = ["dry-run", "cluster.yaml", "--request", "request.json", "--output", "json"]
        return CliRunner().invoke(app_for(called), called)

    return run


@pytest.mark.parametrize("indent", [None, "\t"], ids=["one line", "tabs"])
def test_the_estimate_of_an_escaped_text_is_that_of_the_text(dry_run, indent):
    result = dry_run(json.dumps(SMILES, indent=indent))

    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["cost_micros"] == read("/v1/chat/completions", SMILES).input_tokens


def test_a_query_is_no_part_of_the_path(dry_run):
    result = dry_run(json.dumps({"path": "/v1/chat/completions?api-version=1", "body": SMILES}))

    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["candidates"][0]["model"] == "small"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "request.json: a request is a mapping with path, headers, client and body"),
        ("", "request.json: a request is a mapping"),
        ("{}\n---\n{}", "request.json: a request is a mapping"),
        ("{", "request.json:1: no YAML"),
        ('{"model": "small",\n"model": "large"}', "request.json:2: model is there twice"),
        ('{"body": {"model": "small", "messages": %s}}' % ("[" * 5000 + "]" * 5000), "too deep"),
        ('{"body": "hi"}', "request.json: body: must be a mapping"),
    ],
)
def test_what_is_no_request_is_told_in_a_line(dry_run, text, said):
    result = dry_run(text)

    assert result.exit_code == 1
    assert said in result.stderr
    assert result.stdout == ""
