"""A manifest knows the line of each field, and everything that is wrong is said at its line with what to do."""

import pytest

from turnout_api.manifests import Finding, read
from turnout_api.resolve import declare

CLUSTER = """\
# A comment, and the objects of a small cluster.
apiVersion: turnout.dev/v1alpha1
kind: RouterNode
metadata: {name: gpu-a}
spec:
  role: Standalone
  backends:
  - name: llama
    family: LlamaCpp
    url: http://127.0.0.1:8081
  models:
  - {id: cc11, backend: llama}
  - id: flux
    backend: llama
---
apiVersion: v1
kind: Secret
metadata:
  name: turnout-token
---
---
apiVersion: turnout.dev/v1alpha1
kind: ModelPool
metadata:
  name: fast
  namespace: gpu
spec:
  members: [{model: cc11}]
"""


def header(kind="RouterNode", name="gpu-a"):
    return f"apiVersion: turnout.dev/v1alpha1\nkind: {kind}\nmetadata: {{name: {name}}}\nspec:\n"


def load(path, text):
    reading = read([(path, text)])
    assert reading.problems == ()
    return list(reading.manifests)


def said(text, path="a.yaml"):
    """What is wrong, by reading and by the schema, at its place."""
    reading = read([(path, text)])
    refused = [(manifest, problem) for manifest in reading.manifests for problem in declare(manifest.document).problems]
    found = [Finding(path, manifest.line_of(problem.path), problem.message) for manifest, problem in refused]
    return [str(finding) for finding in sorted([*reading.problems, *found])]


def test_several_documents_become_typed_objects_with_their_places():
    node, pool = load("cluster.yaml", CLUSTER)

    assert (node.kind.__name__, node.namespace, node.name) == ("RouterNode", "default", "gpu-a")
    assert (pool.kind.__name__, pool.namespace, pool.name) == ("ModelPool", "gpu", "fast")
    assert declare(node.document).resource.spec.models[1].id == "flux"
    assert node.where() == "cluster.yaml:2"
    assert node.line_of(("spec", "backends", 0, "url")) == 10
    assert node.line_of(("spec", "models", 0, "backend")) == 12
    assert node.line_of(("spec", "models", 1)) == 13
    assert pool.where(("metadata", "namespace")) == "cluster.yaml:26"


def test_a_field_that_is_not_written_has_the_line_of_what_is_around_it():
    node, _ = load("cluster.yaml", CLUSTER)

    assert node.line_of(("spec", "models", 1, "price", "microsPerRequest")) == 13
    assert node.line_of(("spec", "settings")) == 5


def test_documents_of_others_are_passed_over_with_a_note():
    reading = read([("cluster.yaml", CLUSTER)])

    assert [str(note) for note in reading.notes] == [
        "cluster.yaml:16: Secret turnout-token: not of turnout.dev, passed over"
    ]
    assert reading.problems == ()


def test_a_list_as_kubectl_writes_it_is_its_items():
    text = """\
apiVersion: v1
kind: List
items:
- apiVersion: turnout.dev/v1alpha1
  kind: RouterNode
  metadata: {name: gpu-a}
  spec: {role: Standalone}
- apiVersion: turnout.dev/v1alpha1
  kind: RouterNode
  metadata: {name: gpu-b}
  spec:
    role: Standalone
"""
    first, second = load("a.yaml", text)

    assert (first.name, second.name) == ("gpu-a", "gpu-b")
    assert second.where() == "a.yaml:8"
    assert second.line_of(("spec", "role")) == 12


def test_every_error_of_a_file_is_said_in_the_order_of_its_lines():
    text = header() + "  role: Slave\n  modles: []\n  runtime: {exclusive: 'yes'}\n"

    assert said(text) == [
        "a.yaml:6: spec.modles: no such field; did you mean models?",
        "a.yaml:7: spec.runtime.exclusive: must be true or false, without quotes",
    ]


@pytest.mark.parametrize(
    ("lines", "finding"),
    [
        ("  role: Slave\n", "a.yaml:4: spec.masterRef: a Slave needs masterRef: the Master that it registers with"),
        ("  publicURL: http://a:1\n", "a.yaml:4: spec.role: is required"),
        ("  role: master\n", "a.yaml:5: spec.role: must be Standalone, Master or Slave; did you mean Master?"),
        (
            "  role: Standalone\n  public_url: http://a:1\n",
            "a.yaml:6: spec.public_url: no such field; did you mean publicURL?",
        ),
        ("  role: Standalone\n  zzz: 1\n", "a.yaml:6: spec.zzz: no such field: remove it"),
        (
            "  role: Master\n  settings:\n    syncInterval: 10\n",
            'a.yaml:7: spec.settings.syncInterval: must be a text: write "10"',
        ),
        (
            "  role: Master\n  settings:\n    syncInterval: 10d\n",
            "a.yaml:7: spec.settings.syncInterval: '10d' is no duration: write for example 500ms, 1.5s, 3m or 24h",
        ),
        (
            "  role: Slave\n  masterRef: {name: on}\n",
            "a.yaml:6: spec.masterRef.name: must be a text: YAML reads yes, no, on, off, y, n, true and false as true or false, so quote it",
        ),
        (
            "  role: Slave\n  masterRef: {name: GPU}\n",
            "a.yaml:6: spec.masterRef.name: must be one DNS label: a-z, 0-9 and -, beginning and ending with a letter or digit",
        ),
        ("  role: Standalone\n  models: {id: a}\n", "a.yaml:6: spec.models: must be a list"),
        ("  [Standalone]\n", "a.yaml:4: spec: must be a mapping of fields"),
    ],
)
def test_a_refusal_says_where_and_what_to_do(lines, finding):
    assert said(header() + lines) == [finding]


def test_a_misspelt_field_deep_inside_is_found_with_the_nearest_name():
    text = header() + "  role: Standalone\n  backends:\n  - {name: a, family: OpenAI, command: [a], startTimout: 5s}\n"

    assert said(text) == ["a.yaml:7: spec.backends[0].startTimout: no such field; did you mean startTimeout?"]


TOO_DEEP = "too deep or too large, as when an alias (*name) repeats what it is part of"


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        (
            "apiVersion: turnout.dev/v1alpha1\nkind: RouterNod\n",
            "a.yaml:2: RouterNod: no kind of turnout.dev; did you mean RouterNode?",
        ),
        (
            "apiVersion: turnout.dev/v1\nkind: RouterNode\n",
            "a.yaml:2: turnout.dev/v1 is not served: write apiVersion: turnout.dev/v1alpha1",
        ),
        ("kind: RouterNode\n", "a.yaml:1: RouterNode: apiVersion must be turnout.dev/v1alpha1"),
        (
            "apiVersion: turnout.de/v1alpha1\nkind: RouterNode\n",
            "a.yaml:2: RouterNode: apiVersion must be turnout.dev/v1alpha1",
        ),
        ("models: []\n", "a.yaml:1: no apiVersion and no kind: this is no manifest"),
        ("just words\n", "a.yaml:1: a manifest is a mapping with apiVersion, kind, metadata and spec"),
        (
            "a: b\n\tc: d\n",
            "a.yaml:2: no YAML: while scanning for the next token, found character '\\t' that cannot start any token: YAML indents with spaces",
        ),
        (
            header() + "  role: Standalone\n  role: Master\n",
            "a.yaml:6: role is there twice, first in line 5: remove one",
        ),
        (header() + "  role: !secret a\n", "a.yaml:5: the tag !secret has no meaning in a manifest: remove it"),
        ("a: &a [*a]\n", f"a.yaml:1: {TOO_DEEP}"),
        ("a: 1\nb: " + "[" * 3000 + "]" * 3000, f"a.yaml:2: {TOO_DEEP}"),
    ],
)
def test_what_cannot_be_read_is_said_with_its_line(text, finding):
    assert finding in said(text)


def test_an_object_that_stands_there_twice_is_a_problem_at_the_second():
    text = header() + "  role: Standalone\n"
    reading = read(
        [("a.yaml", text), ("b.yaml", text), ("c.yaml", text.replace("{name: gpu-a}", "{name: gpu-a, namespace: x}"))]
    )

    assert [manifest.file for manifest in reading.manifests] == ["a.yaml", "c.yaml"]
    assert [str(problem) for problem in reading.problems] == [
        "b.yaml:3: RouterNode gpu-a is declared a second time, first at a.yaml:3: remove or rename one"
    ]


def test_objects_before_a_broken_document_are_still_read():
    reading = read([("a.yaml", header() + "  role: Standalone\n---\n{{\n")])

    assert [manifest.name for manifest in reading.manifests] == ["gpu-a"]
    assert len(reading.problems) == 1


def test_anchors_and_merge_keys_work():
    text = """\
apiVersion: turnout.dev/v1alpha1
kind: ModelPool
metadata: {name: fast}
spec:
  members:
  - &one {model: a, weight: 3}
  - <<: *one
    model: b
"""
    (pool,) = load("a.yaml", text)

    assert [(member.model, member.weight) for member in declare(pool.document).resource.spec.members] == [
        ("a", 3),
        ("b", 3),
    ]


def test_json_is_yaml():
    (node,) = load(
        "a.json",
        '{"apiVersion": "turnout.dev/v1alpha1", "kind": "RouterNode",\n "metadata": {"name": "a"}, "spec": {"role": "Standalone"}}',
    )

    assert node.line_of(("spec",)) == 2


def test_a_file_with_nothing_in_it_holds_nothing():
    assert load("a.yaml", "# nothing\n---\n") == []
