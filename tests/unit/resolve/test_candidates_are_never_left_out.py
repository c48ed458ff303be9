"""Every model is listed as a candidate of an owner; one that may not be linked with the reason."""

import pytest

from turnout_api.resolve import candidates, declare
from turnout_api.resources import NodeModelRef
from turnout_api.vocabulary import Lane

AA, BB = "sha256:aa", "sha256:bb"
TEXT = {"id": "m", "contextWindow": 8192, "weightsHash": AA}


@pytest.fixture
def listed(make):
    def listed(*manifests, owner="gpu-a/m", lane=None):
        node, model = owner.split("/")
        objects = [declare(manifest) for manifest in manifests]
        return candidates(objects, make.resolved(*manifests), NodeModelRef(node=node, model=model), lane)

    return listed


def names(found):
    return [f"{one.node}/{one.model}" for one in found]


def test_every_model_but_the_owner_is_listed_and_the_eligible_ones_stand_first(make, listed):
    found = listed(
        make.master(),
        make.node("gpu-a", TEXT, TEXT | {"id": "beside"}),
        make.node("gpu-b", TEXT | {"id": "many", "parallel": 4}, TEXT),
        make.node("gpu-c", {"id": "flux", "capabilities": ["Image"]}),
    )

    assert names(found) == ["gpu-b/m", "gpu-a/beside", "gpu-b/many", "gpu-c/flux"]
    assert [one.eligible for one in found] == [True, False, False, False]
    assert all(one.why for one in found if not one.eligible)


@pytest.mark.parametrize(
    ("helper", "words"),
    [
        ({"parallel": 2}, "serves 2 requests at once"),
        ({"contextWindow": None}, "states no context window"),
        ({"capabilities": ["Embedding"]}, "no capability Text"),
        ({"capabilities": ["Text", "Vision"]}, "another multimodal model"),
        ({"weightsHash": None}, "states no weightsHash"),
    ],
)
def test_a_model_that_may_not_be_linked_says_which_rule_forbids_it(make, listed, helper, words):
    model = {name: value for name, value in (TEXT | helper).items() if value is not None}

    [found] = listed(make.master(), make.node("gpu-a", TEXT), make.node("gpu-b", model))

    assert not found.eligible
    assert words in str(found.why[0])


def test_what_forbids_the_owner_to_lend_is_said_at_each_candidate(make, listed):
    [found] = listed(
        make.master(), make.node("gpu-a", TEXT | {"parallel": 8}), make.node("gpu-b", TEXT), lane=Lane.TEXT
    )

    assert not found.eligible
    assert "owner m serves 8 requests at once" in found.why[0].message


def test_models_of_a_node_that_is_not_accepted_are_listed_with_what_is_wrong_with_it(make, listed):
    orphan = make.node("orphan", TEXT, masterRef={"name": "nobody"})

    [found] = listed(make.master(), make.node("gpu-a", TEXT), orphan)

    assert (found.node, found.eligible) == ("orphan", False)
    assert found.why[0].reason == "MasterNotFound"


@pytest.mark.parametrize(
    ("owner", "helper", "said"),
    [
        (AA, AA, ("Same", "")),
        (AA, BB, ("Different", BB)),
        (None, BB, ("Unknown", BB)),
        (None, None, ("Unknown", "")),
        (AA, None, ("Unknown", "")),
    ],
)
def test_the_weights_of_each_pair_are_the_same_different_or_unknown(make, listed, owner, helper, said):
    def model(hashed):
        return {"id": "m", "contextWindow": 8192} | ({"weightsHash": hashed} if hashed else {})

    [found] = listed(make.master(), make.node("gpu-a", model(owner)), make.node("gpu-b", model(helper)))

    assert (found.weights, found.acknowledge) == said


def test_the_same_weights_stand_before_unknown_and_different_ones(make, listed):
    found = listed(
        make.master(),
        make.node("gpu-a", TEXT),
        make.node("gpu-b", TEXT | {"weightsHash": BB}),
        make.node("gpu-c", TEXT),
    )

    assert names(found) == ["gpu-c/m", "gpu-b/m"]


def test_a_pair_that_is_linked_in_that_direction_names_its_link(make, listed):
    manifests = [
        make.master(),
        make.node("gpu-a", TEXT),
        make.node("gpu-b", TEXT),
        make.link("a-to-b", "gpu-a/m", "gpu-b/m"),
    ]

    assert [one.linked for one in listed(*manifests)] == ["a-to-b"]
    assert [one.linked for one in listed(*manifests, owner="gpu-b/m")] == [""]


def test_the_lanes_are_those_in_which_the_owner_may_lend(make, listed):
    both = TEXT | {"capabilities": ["Text", "Image"]}
    nodes = [make.master(), make.node("gpu-a", both), make.node("gpu-b", both)]

    assert [one.lane for one in listed(*nodes)] == ["Text", "Image"]
    assert [one.lane for one in listed(*nodes, lane=Lane.IMAGE)] == ["Image"]


def test_an_owner_that_may_lend_in_no_lane_has_candidates_all_the_same(make, listed):
    speech = {"id": "m", "capabilities": ["Speech"]}

    found = listed(make.master(), make.node("gpu-a", speech), make.node("gpu-b", TEXT))

    assert [one.eligible for one in found] == [False, False]


@pytest.mark.parametrize(("owner", "near"), [("gpu-aa/m", "did you mean gpu-a"), ("gpu-a/mm", "did you mean m")])
def test_an_unknown_owner_is_told_with_near_names(make, listed, owner, near):
    with pytest.raises(LookupError, match=near):
        listed(make.master(), make.node("gpu-a", TEXT), owner=owner)


def test_a_link_to_an_eligible_candidate_is_accepted_and_to_another_is_not(make, listed):
    """The list and the judgement of links never differ."""
    odd = [{}, {"parallel": 2}, {"weightsHash": BB}, {"capabilities": ["Text", "Vision"]}]
    nodes = [make.master(), make.node("gpu-a", TEXT), *(make.node(f"n{i}", TEXT | more) for i, more in enumerate(odd))]

    for found in listed(*nodes):
        more = {"acknowledgeDifferentWeights": found.acknowledge} if found.acknowledge else {}
        verdict = make.verdict(*nodes, make.link("link", "gpu-a/m", f"{found.node}/{found.model}", **more))
        assert verdict.accepted is found.eligible
