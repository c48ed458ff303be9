"""`turnout migrate-groups`: each pair of members on different nodes becomes two links, one a direction."""

import json
import re
from itertools import product

import pytest
import yaml
from typer.testing import CliRunner

from turnout_api.resources.common import SUBDOMAIN_PATTERN
from turnout_cli.main import app_for
from turnout_cli.oldgroups import migrate

GROUPS = """\
groups:
- lane: Text
  members:
  - {node: gpu-a, model: cc11-ff, restoreAfterBorrow: true}
  - {node: gpu-b, model: cc11}
- lane: Image
  members:
  - {node: gpu-a, model: flux}
  - {node: gpu-b, model: flux, restoreAfterBorrow: true}
"""


def node(name, *models, **spec):
    backend = {"name": "b", "family": "OpenAI", "url": "http://127.0.0.1:8081"}
    given = {"role": "Slave", "masterRef": {"name": "master"}, "backends": [backend]} | spec
    given["models"] = [{"backend": "b"} | model for model in models]
    return {
        "apiVersion": "turnout.dev/v1alpha1",
        "kind": "RouterNode",
        "metadata": {"name": name, "namespace": "lab"},
        "spec": given,
    }


TEXT = {"id": "cc11", "contextWindow": 8192, "weightsHash": "sha256:aa"}
MASTER = {
    "apiVersion": "turnout.dev/v1alpha1",
    "kind": "RouterNode",
    "metadata": {"name": "master", "namespace": "lab"},
    "spec": {"role": "Master"},
}
FLUX = {"id": "flux", "capabilities": ["Image"], "weightsHash": "sha256:ff"}
NODES = [MASTER, node("gpu-a", TEXT | {"id": "cc11-ff", "weightsHash": "sha256:bb"}, FLUX), node("gpu-b", TEXT, FLUX)]


@pytest.fixture
def run(tmp_path):
    def run(*options, groups=GROUPS, nodes=None):
        file = tmp_path / "groups.yaml"
        file.write_text(groups)
        called = ["migrate-groups", str(file), *options]
        if nodes is not None:
            (tmp_path / "nodes.yaml").write_text(yaml.safe_dump_all(nodes))
            called += ["--nodes", str(tmp_path / "nodes.yaml")]
        return CliRunner().invoke(app_for(called), called)

    return run


def links(result):
    assert result.exit_code == 0, result.stderr
    return list(yaml.safe_load_all(result.stdout))


def ends(link):
    spec = link["spec"]
    return (spec["lane"], *(f"{spec[side]['node']}/{spec[side]['model']}" for side in ("owner", "helper")))


def test_each_pair_becomes_one_link_a_direction_in_its_own_lane(run):
    assert [ends(link) for link in links(run())] == [
        ("Text", "gpu-a/cc11-ff", "gpu-b/cc11"),
        ("Text", "gpu-b/cc11", "gpu-a/cc11-ff"),
        ("Image", "gpu-a/flux", "gpu-b/flux"),
        ("Image", "gpu-b/flux", "gpu-a/flux"),
    ]


def test_loading_is_allowed_and_the_restore_flag_is_that_of_the_helper(run):
    found = {ends(link)[1:]: link["spec"] for link in links(run())}

    assert all(spec["loadIfUnloaded"] is True for spec in found.values())
    assert found["gpu-b/cc11", "gpu-a/cc11-ff"]["restoreAfterBorrow"] is True
    assert found["gpu-a/cc11-ff", "gpu-b/cc11"]["restoreAfterBorrow"] is False


def test_a_group_of_three_nodes_gives_six_links_and_members_of_one_node_none_between_them(run):
    members = [
        {"node": "n1", "model": "a"},
        {"node": "n1", "model": "b"},
        {"node": "n2", "model": "a"},
        {"node": "n3", "model": "a"},
    ]

    found = [
        ends(link)[1:] for link in links(run(groups=json.dumps({"groups": [{"lane": "Text", "members": members}]})))
    ]

    names = [f"{m['node']}/{m['model']}" for m in members]
    assert sorted(found) == sorted(
        (owner, helper) for owner, helper in product(names, names) if owner.split("/")[0] != helper.split("/")[0]
    )


def test_a_pair_that_several_groups_repeat_gives_its_links_once(run):
    repeated = GROUPS.split("- lane: Image", maxsplit=1)[0]
    twice = repeated + repeated.removeprefix("groups:\n").replace(
        "restoreAfterBorrow: true", "restoreAfterBorrow: false"
    )

    result = run(groups=twice)

    found = links(result)
    assert len(found) == 2
    assert found[1]["spec"]["restoreAfterBorrow"] is True
    assert "groups.yaml:8: text.gpu-b.cc11.to.gpu-a.cc11-ff: restoreAfterBorrow is true in one place" in result.stderr


def test_the_helpers_weights_are_acknowledged_where_they_differ(run):
    text_there, text_back, image_there, image_back = links(run(nodes=NODES))

    assert text_there["spec"]["acknowledgeDifferentWeights"] == "sha256:aa"
    assert text_back["spec"]["acknowledgeDifferentWeights"] == "sha256:bb"
    assert "acknowledgeDifferentWeights" not in image_there["spec"] | image_back["spec"]


def namespaces(result):
    return {link["metadata"].get("namespace") for link in links(result)}


def test_the_links_stand_in_the_namespace_of_the_nodes(run):
    assert namespaces(run(nodes=NODES)) == {"lab"}
    assert "no RouterNode of namespace other" in run("--namespace", "other", nodes=NODES).stderr


def test_the_links_name_no_namespace_where_nobody_does_so_that_kubectl_decides(run):
    unstated = [one | {"metadata": {"name": one["metadata"]["name"]}} for one in NODES]

    assert namespaces(run()) == namespaces(run(nodes=unstated)) == {None}
    assert namespaces(run("--namespace", "other")) == {"other"}
    assert namespaces(run("--namespace", "other", nodes=unstated)) == {"other"}


def test_of_nodes_of_several_namespaces_one_is_named(run):
    both = [*NODES, *(one | {"metadata": one["metadata"] | {"namespace": "other"}} for one in NODES)]

    assert run(nodes=both).exit_code == 2
    assert namespaces(run("--namespace", "other", nodes=both)) == {"other"}


@pytest.mark.parametrize("output", ["yaml", "json"])
def test_what_is_written_is_accepted_beside_the_nodes(run, tmp_path, output):
    written = tmp_path / f"links.{output}"
    written.write_text(run("--output", output, nodes=NODES).stdout)
    called = ["validate", str(tmp_path / "nodes.yaml"), str(written), "--output", "json"]

    result = CliRunner().invoke(app_for(called), called)

    assert result.exit_code == 0, result.output
    resources = json.loads(result.stdout)["resources"]
    assert [one["accepted"] for one in resources if one["kind"] == "RoutingLink"] == [True] * 4


def test_without_the_nodes_it_is_said_what_a_link_may_ask_for(run):
    result = run()

    assert "--nodes FILE" in result.stderr
    assert "IneligibleLink" in result.stdout.split("---")[0]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"parallel": 4}, "IneligibleLink: helper cc11 serves 4 requests at once"),
        ({"weightsHash": None}, "IneligibleLink: helper cc11 states no weightsHash"),
        ({"id": "cc12"}, "UnknownModel: RouterNode gpu-b has no model with the local ID cc11 (did you mean cc12?)"),
    ],
)
def test_a_pair_that_may_not_be_linked_is_left_out_with_its_line_and_the_rest_is_written(run, change, says):
    changed = {name: value for name, value in (TEXT | change).items() if value is not None}

    result = run(nodes=[*NODES[:2], node("gpu-b", changed, FLUX)])

    assert {ends(link)[0] for link in links(result) if link} >= {"Image"}
    assert f"groups.yaml:5: gpu-a/cc11-ff -> gpu-b/cc11 (Text) is left out: {says}" in result.stderr
    assert "is left out" in result.stdout.split("---")[0]


def test_a_pair_that_is_linked_already_is_left_out(run):
    link = {
        "apiVersion": "turnout.dev/v1alpha1",
        "kind": "RoutingLink",
        "metadata": {"name": "mine", "namespace": "lab"},
        "spec": {
            "lane": "Image",
            "owner": {"node": "gpu-a", "model": "flux"},
            "helper": {"node": "gpu-b", "model": "flux"},
        },
    }

    result = run(nodes=[*NODES, link])

    assert len(links(result)) == 3
    assert "DuplicateLink: RoutingLink mine has this lane" in result.stderr


def test_a_node_that_is_not_accepted_is_told_with_its_line(run):
    result = run(nodes=[MASTER, NODES[1], node("gpu-b", TEXT, FLUX, masterRef={"name": "mastr"})])

    assert re.search(r"nodes.yaml:\d+: RouterNode gpu-b is not accepted: .*did you mean master", result.stderr)


@pytest.mark.parametrize(
    ("groups", "says"),
    [
        ("a: [", "groups.yaml:1: no YAML"),
        ("", "groups.yaml:1: holds 0 documents, one is needed: write groups:"),
        ("- lane: Text\n", "groups.yaml:1: holds no groups: write groups:"),
        ("group: []\n", "groups.yaml:1: group: no such field; did you mean groups?"),
        ("groups:\n- members:\n  - {node: a, model: b}\n", "groups.yaml:2: groups[0].lane: is required"),
        (GROUPS.replace("lane: Image", "lane: Images"), "groups.yaml:6: groups[1].lane: must be Text or Image"),
        (
            GROUPS.replace("node: gpu-b", "node: GPU_B", 1),
            "groups.yaml:5: groups[0].members[1].node: must be one DNS label",
        ),
        (GROUPS.replace("model: cc11}", "modle: cc11}"), "did you mean model?"),
        (
            GROUPS.replace("{node: gpu-b, model: cc11}", "{node: gpu-b}"),
            "groups.yaml:5: groups[0].members[1].model: is required",
        ),
        (GROUPS.replace("true", "1.5", 1), "groups.yaml:4: groups[0].members[0].restoreAfterBorrow"),
        (GROUPS + "groups: []\n", "groups.yaml:10: groups is there twice"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_with_line_and_remedy_and_nothing_is_written(run, groups, says):
    result = run(groups=groups)

    assert result.exit_code == 1
    assert says in result.stderr
    assert not result.stdout


def test_a_group_on_one_node_gives_no_link_and_is_told(run):
    result = run(groups="groups:\n- lane: text\n  members:\n  - {node: a, model: p}\n  - {node: a, model: q}\n")

    assert result.exit_code == 0
    assert "groups.yaml:2: all members are on one node" in result.stderr


def test_nodes_that_are_not_there_end_it(run, tmp_path):
    assert run("--nodes", str(tmp_path / "nowhere.yaml")).exit_code == 1
    assert "no RouterNode" in run(nodes=[]).stderr


def test_a_table_shows_the_links_to_people(run):
    result = run("--output", "table", nodes=NODES)

    assert "gpu-a/cc11-ff" in result.stdout
    assert "4 links" in result.stdout


ODD = ["cc11", "cc11.ff", "CC11", "cc11-", "a/b", "a:b", "a.to.b", "x" * 253, "x" * 252 + "y", "qwen2.5:7b@q4+k"]


def test_names_are_valid_unique_and_the_same_each_time():
    members = [{"node": name, "model": model} for name in ("gpu", "gpu-a", "n" * 63) for model in ODD]
    text = json.dumps({"groups": [{"lane": lane, "members": members} for lane in ("Text", "Image")]})

    names = [direction.name for direction in migrate("g", text).directions]

    assert len(set(names)) == len(names) == 2 * 3 * 2 * len(ODD) ** 2
    assert all(re.fullmatch(SUBDOMAIN_PATTERN, name) and len(name) <= 253 for name in names)
    assert names == [direction.name for direction in migrate("g", text).directions]


def test_the_name_of_a_link_says_its_ends_where_they_may_stand_in_one():
    [there, _] = migrate("g", GROUPS.split("- lane: Image", maxsplit=1)[0]).directions

    assert there.name == "text.gpu-a.cc11-ff.to.gpu-b.cc11"
