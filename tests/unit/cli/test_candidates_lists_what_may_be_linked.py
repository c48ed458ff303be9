"""`turnout candidates` lists every model that an owner could lend to, and why not."""

import json

import pytest
import yaml
from typer.testing import CliRunner

from turnout_cli.main import app_for

CLUSTER = """
apiVersion: turnout.dev/v1alpha1
kind: RouterNode
metadata: {name: master}
spec: {role: Master}
---
apiVersion: turnout.dev/v1alpha1
kind: RouterNode
metadata: {name: gpu-a}
spec:
  role: Slave
  masterRef: {name: master}
  backends: [{name: b, family: LlamaCpp, url: "http://127.0.0.1:8081"}]
  models:
  - {id: org/ff, backend: b, contextWindow: 8192, weightsHash: "sha256:aa"}
---
apiVersion: turnout.dev/v1alpha1
kind: RouterNode
metadata: {name: gpu-b}
spec:
  role: Slave
  masterRef: {name: master}
  backends: [{name: b, family: LlamaCpp, url: "http://127.0.0.1:8081"}]
  models:
  - {id: other, backend: b, contextWindow: 8192, weightsHash: "sha256:bb"}
  - {id: many, backend: b, contextWindow: 8192, weightsHash: "sha256:aa", parallel: 4}
---
apiVersion: turnout.dev/v1alpha1
kind: RoutingLink
metadata: {name: a-to-b}
spec:
  lane: Text
  owner: {node: gpu-a, model: org/ff}
  helper: {node: gpu-b, model: other}
  acknowledgeDifferentWeights: "sha256:bb"
"""


@pytest.fixture
def run(tmp_path):
    def run(*options, text=CLUSTER):
        file = tmp_path / "cluster.yaml"
        file.write_text(text)
        called = ["candidates", str(file), *options]
        return CliRunner().invoke(app_for(called), called)

    return run


def told(result):
    """What stands in the box that typer draws around an error."""
    return " ".join(result.stderr.replace("│", " ").split())


def test_programs_get_every_field(run):
    result = run("--owner", "gpu-a/org/ff", "--output", "json")

    assert result.exit_code == 0
    document = json.loads(result.stdout)
    assert document["owner"] == {"node": "gpu-a", "model": "org/ff"}
    other, many = document["candidates"]
    assert other == {
        "lane": "Text",
        "node": "gpu-b",
        "model": "other",
        "eligible": True,
        "why": [],
        "weights": "Different",
        "acknowledgeDifferentWeights": "sha256:bb",
        "linked": "a-to-b",
    }
    assert (many["eligible"], many["weights"], many["linked"]) == (False, "Same", "")
    assert "serves 4 requests at once" in many["why"][0]


def test_yaml_says_the_same_as_json(run):
    as_json = json.loads(run("--owner", "gpu-a/org/ff", "--output", "json").stdout)

    assert yaml.safe_load(run("--owner", "gpu-a/org/ff", "--output", "yaml").stdout) == as_json


def test_people_see_what_they_must_acknowledge_and_why_not(run):
    result = run("--owner", "gpu-a/org/ff")

    assert result.exit_code == 0
    assert "yes with acknowledgeDifferentWeights: sha256:bb" in result.stdout
    assert "no IneligibleLink: helper many serves 4 requests at once" in result.stdout
    assert "gpu-a/org/ff: 1 of 2 may be linked, 1 are" in result.stdout


def test_one_lane_may_be_asked_for(run):
    result = run("--owner", "gpu-a/org/ff", "--lane", "image", "--output", "json")

    assert {one["lane"] for one in json.loads(result.stdout)["candidates"]} == {"Image"}


@pytest.mark.parametrize(
    ("owner", "says"),
    [
        ("gpu-aa/org/ff", "did you mean gpu-a"),
        ("gpu-a/ff", "no model with the"),
        ("gpu-b/x", "other, many"),
        ("gpu-a", "NODE/MODEL"),
    ],
)
def test_an_owner_that_is_not_there_ends_with_2_and_says_what_to_do(run, owner, says):
    result = run("--owner", owner)

    assert result.exit_code == 2
    assert says in told(result)


def test_an_object_that_its_schema_refuses_is_told_with_its_line(run):
    result = run("--owner", "gpu-a/org/ff", text=CLUSTER.replace("family: LlamaCpp", "family: Llama", 1))

    assert "cluster.yaml:13: RouterNode gpu-a is not looked at" in result.stderr
    assert result.exit_code == 2


def test_a_file_that_cannot_be_read_ends_with_1(run):
    result = run("--owner", "gpu-a/org/ff", text="a: [")

    assert result.exit_code == 1
    assert "cluster.yaml:1" in result.stderr


def test_of_several_namespaces_the_one_with_the_owner_is_meant_or_one_is_named(run):
    def in_namespace(name):
        return CLUSTER.replace("metadata: {name:", f"metadata: {{namespace: {name}, name:")

    both = in_namespace("one") + "---" + in_namespace("two")

    assert "name one: one, two" in told(run("--owner", "gpu-a/org/ff", text=both))
    assert run("--owner", "gpu-a/org/ff", "--namespace", "two", text=both).exit_code == 0
    apart = in_namespace("one") + "---" + in_namespace("two").replace("gpu-a", "gpu-x")
    assert run("--owner", "gpu-x/org/ff", text=apart).exit_code == 0


LINK = CLUSTER.rpartition("---\n")[2]


def test_of_two_links_between_the_same_ends_the_accepted_one_is_named(run):
    twice = f"{CLUSTER}---\n{LINK.replace('name: a-to-b', 'name: once-more')}"
    (other, _) = json.loads(run("--owner", "gpu-a/org/ff", "--output", "json", text=twice).stdout)["candidates"]

    assert other["linked"] == "a-to-b"


def test_a_link_that_may_not_be_is_named_and_not_counted(run):
    wrong = f"{CLUSTER}---\n{LINK.replace('model: other', 'model: many').replace('a-to-b', 'to-many')}"
    result = run("--owner", "gpu-a/org/ff", text=wrong)

    assert "to-many" in result.stdout
    assert "gpu-a/org/ff: 1 of 2 may be linked, 1 are" in result.stdout
