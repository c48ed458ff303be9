"""How links come to be: by hand, between which models, what the picker says, and what becomes of routing groups."""

import pytest

from turnout_api.lending import ModelRef, Outcome
from turnout_api.resolve import PlacedAnywhere, candidates, declare, resolve
from turnout_api.resources import NodeModelRef
from turnout_api.vocabulary import Lane
from turnout_cli.oldgroups import migrate
from turnout_router.lending.links import Link

AA, BB = "sha256:" + "a" * 64, "sha256:" + "b" * 64
OWNER = NodeModelRef(node="gpu-a", model="cc11-ff")
MODEL = {"contextWindow": 8192, "weightsHash": AA}


def _object(kind, name, spec):
    return {"apiVersion": "turnout.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def _node(name, *models):
    backend = {"name": "b", "family": "LlamaCpp", "url": "http://127.0.0.1:8081"}
    stated = [
        {name: value for name, value in {"backend": "b", **model}.items() if value is not None} for model in models
    ]
    return _object(
        "RouterNode", name, {"role": "Slave", "masterRef": {"name": "master"}, "backends": [backend], "models": stated}
    )


def _link(owner="gpu-a/cc11-ff", helper="gpu-b/cc11", **spec):
    ends = {
        side: dict(zip(("node", "model"), end.split("/"), strict=True))
        for side, end in (("owner", owner), ("helper", helper))
    }
    return _object("RoutingLink", "link", {"lane": "Text", **ends, **spec})


def _objects(owner=None, helper=None, *links):
    """A master, an owner's and a helper's node, and links."""
    return [
        declare(manifest)
        for manifest in (
            _object("RouterNode", "master", {"role": "Master"}),
            _node("gpu-a", {"id": "cc11-ff", **MODEL, **(owner or {})}),
            _node("gpu-b", {"id": "cc11", **MODEL, **(helper or {})}),
            *links,
        )
    ]


def _resolved(objects):
    return resolve(objects, placement=PlacedAnywhere(), generation=1)


def _verdict(owner=None, helper=None, **link):
    return _resolved(_objects(owner, helper, _link(**link))).verdicts[-1]


def _picker(owner=None, helper=None):
    objects = _objects(owner, helper)
    found = candidates(objects, _resolved(objects), OWNER, Lane.TEXT)
    (one,) = [candidate for candidate in found if candidate.node == "gpu-b"]
    return one


def test_links_are_chosen_by_hand():
    """Two models of one name, one configuration and one checkpoint are not linked unless somebody says so."""
    same = {"id": "cc11", "configHash": AA}
    assert all(config.links == [] for config in _resolved(_objects(same, same)).configs.values())
    linked = _resolved(_objects(same, same, _link("gpu-a/cc11"))).configs
    assert {name: len(config.links) for name, config in linked.items()} == {"master": 1, "gpu-a": 1, "gpu-b": 1}


@pytest.mark.parametrize(
    "differs", [{"publicID": "another-name"}, {"configHash": BB}, {"weightsHash": BB}, {"contextWindow": 2048}]
)
def test_the_two_models_need_not_share_a_name_a_config_hash_or_a_checkpoint(differs):
    acknowledged = {"acknowledgeDifferentWeights": BB} if "weightsHash" in differs else {}
    assert _verdict({"configHash": AA}, {"configHash": AA, **differs}, **acknowledged).accepted


def test_the_common_case_is_one_checkpoint_that_two_nodes_configured_differently():
    verdict = _verdict({"configHash": AA, "contextWindow": 8192}, {"configHash": BB, "contextWindow": 2048})
    assert verdict.accepted
    assert verdict.warnings == ()


def test_a_link_is_between_two_nodes():
    assert not _resolved(_objects(None, None, _link(helper="gpu-a/cc11-ff"))).verdicts[-1].accepted


def test_a_link_asserts_that_the_helper_can_answer_and_different_checkpoints_are_flagged_by_nothing():
    """Once a person acknowledged them there is no warning: the router cannot verify the claim."""
    verdict = _verdict(helper={"weightsHash": BB}, acknowledgeDifferentWeights=BB)
    assert (verdict.accepted, verdict.warnings) == (True, ())


@pytest.mark.parametrize(("hashed", "label"), [(AA, "Same"), (BB, "Different")])
def test_the_picker_labels_every_candidate(hashed, label):
    assert _picker(helper={"weightsHash": hashed}).weights == label


def test_same_weights_means_the_model_hash_matches_and_needs_no_acknowledgement():
    assert _picker().acknowledge == ""
    assert _verdict().accepted


def test_different_weights_means_it_does_not_and_requires_an_explicit_acknowledgement_before_the_link_is_saved():
    assert _picker(helper={"weightsHash": BB}).acknowledge == BB
    refused = _verdict(helper={"weightsHash": BB})
    assert (refused.accepted, refused.reason) == (False, "IneligibleLink")
    assert _verdict(helper={"weightsHash": BB}, acknowledgeDifferentWeights=BB).accepted


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"parallel": 2}, "serves 2 requests at once"),
        ({"vllm": {"settings": {"maxNumberSequences": 2}}}, "serves 2 requests at once"),
        ({"contextWindow": None}, "states no context window"),
        ({"capabilities": ["Text", "Vision"]}, "multimodal"),
    ],
)
@pytest.mark.parametrize("side", ["owner", "helper"])
def test_a_text_model_may_be_linked_only_if_it_serves_requests_one_at_a_time_and_states_a_context_window(
    side, changes, words
):
    refused = _verdict(**{side: changes})
    assert (refused.accepted, refused.reason) == (False, "IneligibleLink")
    assert words in refused.message


@pytest.mark.parametrize(
    "changes",
    [
        {"parallel": 1},
        {"vllm": {"settings": {"maxNumberSequences": 1}}},
        {"contextWindow": None, "vllm": {"settings": {"maxModelLength": 4096}}},
    ],
)
def test_one_at_a_time_is_1_or_unset_and_a_window_may_be_stated_in_the_vllm_settings(changes):
    assert _verdict(owner=changes, helper=changes).accepted


def test_an_ineligible_model_is_listed_as_a_candidate_but_disabled_with_the_reason():
    one = _picker(helper={"parallel": 4})
    assert not one.eligible
    assert "serves 4 requests at once" in one.why[0].message


GROUPS = """
groups:
- lane: Text
  members:
  - {node: a, model: m, restoreAfterBorrow: true}
  - {node: b, model: q4}
  - {node: b, model: q8}
"""


def test_on_upgrade_each_pair_of_members_on_different_nodes_becomes_two_links_one_per_direction():
    found = [
        (f"{d.owner.node}/{d.owner.model}", f"{d.helper.node}/{d.helper.model}")
        for d in migrate("g", GROUPS).directions
    ]
    assert sorted(found) == [("a/m", "b/q4"), ("a/m", "b/q8"), ("b/q4", "a/m"), ("b/q8", "a/m")]


def test_with_loading_allowed_and_the_old_restore_flag_kept_on_the_link_whose_helper_had_it():
    specs = [d.manifest(namespace="", acknowledge="")["spec"] for d in migrate("g", GROUPS).directions]
    assert all(spec["loadIfUnloaded"] for spec in specs)
    assert {spec["helper"]["node"]: spec["restoreAfterBorrow"] for spec in specs} == {"a": True, "b": False}


def test_lending_therefore_behaves_as_before_until_an_operator_clears_the_direction_they_do_not_want(spec):
    """Both members of a group lend to each other; without one of the links only the other still does."""
    both = [
        Link(d.name, d.lane, *(ModelRef(e.node, e.model) for e in (d.owner, d.helper)))
        for d in migrate("g", PAIR).directions
    ]

    def lenders(links):
        traffic = [*spec.burst(6), *spec.burst(6, 100.0, ModelRef("h", "m"))]
        world = spec.lending(traffic, h=spec.helper(8.0), reverse=True)
        world.relink(links)
        world.run()
        return {row.owner_node for _, row in spec.rows(world, Outcome.LENT)}

    assert lenders(both) == {"o", "h"}
    assert lenders([link for link in both if link.owner.node == "o"]) == {"o"}


PAIR = "groups: [{lane: Text, members: [{node: o, model: m}, {node: h, model: m}]}]"
