"""`turnout validate`: verdicts with file and line, offline."""

import json

import pytest
import yaml
from typer.testing import CliRunner

from turnout_cli.main import app_for

GOOD = """\
apiVersion: turnout.dev/v1alpha1
kind: RouterNode
metadata: {name: master}
spec:
  role: Master
  tokenSecretRef: {name: turnout-token}
---
apiVersion: turnout.dev/v1alpha1
kind: RouterNode
metadata: {name: gpu-a}
spec:
  role: Slave
  masterRef: {name: master}
  tokenSecretRef: {name: turnout-token}
  backends:
  - {name: llama, family: LlamaCpp, url: "http://127.0.0.1:8081"}
  models:
  - {id: cc11, backend: llama, contextWindow: 8192}
"""

LINK = """\
# one end is missing
apiVersion: turnout.dev/v1alpha1
kind: RoutingLink
metadata:
  name: a-to-b
spec:
  lane: Text
  owner: {node: gpu-a, model: cc11}
  helper:
    node: gpu-b
    model: cc11
"""

FRONTEND = """\
apiVersion: turnout.dev/v1alpha1
kind: FrontendModel
metadata: {name: assistant}
spec:
  defaults:
    targets:
    - model: cc12
"""


@pytest.fixture
def validate(tmp_path, monkeypatch):
    """Writes files, runs the command on what is named (all of them by default), and gives its result."""
    monkeypatch.chdir(tmp_path)

    def run(files, *arguments, stdin=None):
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        called = ["validate", *(arguments or files)]
        return CliRunner().invoke(app_for(called), called, input=stdin)

    return run


@pytest.fixture
def validate_json(validate):
    def run(files, *arguments, stdin=None):
        result = validate(files, "--output", "json", *(arguments or files), stdin=stdin)
        return result.exit_code, json.loads(result.stdout)

    return run


def test_good_manifests_are_accepted_and_the_exit_code_is_0(validate_json):
    code, said = validate_json({"cluster.yaml": GOOD})

    assert code == 0
    assert said == {
        "resources": [
            {
                "kind": "RouterNode",
                "namespace": "default",
                "name": name,
                "file": "cluster.yaml",
                "line": line,
                "accepted": True,
                "reason": "Accepted",
                "message": "",
                "warnings": [],
            }
            for name, line in (("master", 1), ("gpu-a", 8))
        ],
        "errors": [],
    }


def test_a_refused_object_has_the_line_of_its_fault_and_the_exit_code_is_1(validate_json):
    code, said = validate_json({"cluster.yaml": GOOD, "link.yaml": LINK})

    assert code == 1
    link = said["resources"][2]
    assert (link["file"], link["line"], link["accepted"], link["reason"]) == ("link.yaml", 10, False, "UnknownNode")
    assert "gpu-b" in link["message"]


def test_warnings_do_not_fail(validate_json):
    code, said = validate_json({"cluster.yaml": GOOD, "frontend.yaml": FRONTEND})

    assert code == 0
    assert any(w.startswith("UnknownModel: ") and "did you mean cc11?" in w for w in said["resources"][2]["warnings"])


def test_a_misspelt_field_is_found_at_its_line(validate_json):
    code, said = validate_json({"cluster.yaml": GOOD.replace("backends:", "backend:")})

    assert code == 1
    assert said["resources"][1]["line"] == 15
    assert "backends" in said["resources"][1]["message"]


def test_text_that_is_no_yaml_is_an_error_with_its_line(validate_json):
    code, said = validate_json({"cluster.yaml": GOOD + "---\na: [1,\n"})

    assert code == 1
    [error] = said["errors"]
    assert (error["file"], error["line"] >= 19) == ("cluster.yaml", True)
    assert error["message"]


def test_a_kind_that_does_not_exist_is_an_error(validate_json):
    code, said = validate_json({"x.yaml": "apiVersion: turnout.dev/v1alpha1\nkind: RouteNode\nmetadata: {name: a}\n"})

    assert code == 1
    assert said["errors"][0]["line"] == 2
    assert "RouterNode" in said["errors"][0]["message"]


def test_manifests_of_others_are_passed_over(validate_json):
    secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: turnout-token}\n"

    code, said = validate_json({"cluster.yaml": f"{secret}---\n{GOOD}"})

    assert code == 0
    assert [resource["name"] for resource in said["resources"]] == ["master", "gpu-a"]


def test_a_folder_is_read_with_everything_in_it(validate_json):
    files = {"site/b/cluster.yaml": GOOD, "site/a/frontend.yml": FRONTEND, "site/notes.txt": "no: [yaml"}

    code, said = validate_json(files, "site")

    assert code == 0
    assert [resource["file"] for resource in said["resources"]] == [
        "site/a/frontend.yml",
        "site/b/cluster.yaml",
        "site/b/cluster.yaml",
    ]


def test_a_folder_is_read_in_the_order_of_kubectl(validate_json):
    _, said = validate_json({"site/a-b/x.yaml": FRONTEND, "site/a/x.yaml": GOOD}, "site")

    assert [resource["file"] for resource in said["resources"]] == ["site/a/x.yaml", "site/a/x.yaml", "site/a-b/x.yaml"]


def test_a_folder_of_json_is_read_as_kubectl_reads_it(validate_json):
    master = json.dumps(yaml.safe_load(GOOD.partition("---")[0]))

    code, said = validate_json({"site/master.json": master}, "site")

    assert code == 0
    assert [resource["name"] for resource in said["resources"]] == ["master"]


def test_a_dash_is_the_standard_input(validate_json):
    code, said = validate_json({}, "-", stdin=GOOD)

    assert code == 0
    assert {resource["file"] for resource in said["resources"]} == {"-"}


@pytest.mark.parametrize("name", ["missing.yaml", "empty"])
def test_what_cannot_be_read_is_an_error_and_the_rest_is_judged(validate_json, tmp_path, name):
    (tmp_path / "empty").mkdir()

    code, said = validate_json({"cluster.yaml": GOOD}, "cluster.yaml", name)

    assert code == 1
    assert len(said["resources"]) == 2
    assert said["errors"][0]["file"] == name
    assert "cannot be read" in said["errors"][0]["message"]


def test_bytes_that_are_no_text_are_an_error(validate_json, tmp_path):
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")

    code, said = validate_json({}, "binary.yaml")

    assert code == 1
    assert said["errors"][0]["file"] == "binary.yaml"


def test_objects_of_several_namespaces_do_not_see_each_other(validate_json):
    elsewhere = FRONTEND.replace("{name: assistant}", "{name: assistant, namespace: other}")

    _, said = validate_json({"cluster.yaml": GOOD, "frontend.yaml": elsewhere})

    assert any(warning.startswith("NoMaster") for warning in said["resources"][2]["warnings"])


def test_yaml_says_the_same_as_json(validate, validate_json):
    files = {"cluster.yaml": GOOD, "link.yaml": LINK}

    result = validate(files, "--output", "yaml", *files)

    assert yaml.safe_load(result.stdout) == validate_json(files)[1]
    assert result.exit_code == 1


def test_the_table_points_at_each_place_and_counts(validate):
    result = validate({"cluster.yaml": GOOD, "link.yaml": LINK, "frontend.yaml": FRONTEND})

    assert result.exit_code == 1
    lines = [line.split() for line in result.stdout.splitlines()]
    assert ["cluster.yaml:1", "RouterNode", "master", "accepted"] in lines
    assert ["link.yaml:2", "RoutingLink", "a-to-b", "not", "accepted"] in lines
    assert ["link.yaml:10", "UnknownNode"] in [line[:2] for line in lines]
    assert ["frontend.yaml:7", "warning", "UnknownModel"] in [line[:3] for line in lines]
    assert "3 accepted, 1 not accepted, 1 warnings, 0 errors" in result.stdout


@pytest.mark.parametrize("text", ["", "# nothing yet\n", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n"])
def test_files_without_an_object_of_ours_are_an_error(validate, text):
    result = validate({"cluster.yaml": text})
    assert result.exit_code == 1
    assert "no object of turnout.dev" in result.stdout


ROUTE_TEST = """\
apiVersion: turnout.dev/v1alpha1
kind: RouteTest
metadata: {name: goes-home}
spec:
  request: {path: /v1/chat/completions, body: {model: assistant}}
  expect: {model: MODEL}
  required: true
"""


@pytest.mark.parametrize(("model", "code", "result"), [("cc11", 0, "Pass"), ("cc12", 1, "Fail")])
def test_a_route_test_passes_or_fails(validate_json, validate, model, code, result):
    files = {
        "cluster.yaml": GOOD,
        "front.yaml": FRONTEND.replace("cc12", "cc11"),
        "test.yaml": ROUTE_TEST.replace("MODEL", model),
    }

    ended, said = validate_json(files)

    assert (ended, said["resources"][-1]["result"]) == (code, result)
    assert "result" not in said["resources"][0]
    assert f"accepted, {result.lower()}" in validate(files).stdout
