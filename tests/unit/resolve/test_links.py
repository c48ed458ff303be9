"""A link is refused with the rule of the requirement text that forbids it."""

import pytest

OTHER = "sha256:" + "b" * 64


def pair(make, owner=None, helper=None, **link):
    """A master, an owner's and a helper's node and the link between them; `None` takes an option away."""

    def model(changes):
        merged = {"id": "m", "contextWindow": 8192, "weightsHash": "sha256:aa"} | (changes or {})
        return {name: value for name, value in merged.items() if value is not None}

    return [
        make.master(),
        make.node("gpu-a", model(owner)),
        make.node("gpu-b", model(helper)),
        make.link("link", "gpu-a/m", "gpu-b/m", **link),
    ]


def test_two_models_that_fit_are_linked(make):
    verdict = make.verdict(*pair(make))

    assert verdict.accepted
    assert verdict.warnings == ()


@pytest.mark.parametrize("side", ["owner", "helper"])
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"parallel": 2}, "serves 2 requests at once"),
        ({"vllm": {"settings": {"maxNumberSequences": 4}}}, "serves 4 requests at once"),
        ({"contextWindow": None}, "states no context window"),
        ({"capabilities": ["Embedding"]}, "has no capability Text"),
        ({"capabilities": ["Text", "Vision"]}, "links with another multimodal model"),
    ],
)
def test_a_text_model_is_not_linked_when(make, side, changes, words):
    verdict = make.verdict(*pair(make, **{side: changes}))

    assert verdict.reason == "IneligibleLink"
    assert words in verdict.message


@pytest.mark.parametrize(
    "changes",
    [
        {"parallel": 1},
        {"vllm": {"settings": {"maxNumberSequences": 1}}},
        {"contextWindow": None, "vllm": {"settings": {"maxModelLength": 4096}}},
    ],
)
def test_a_text_model_is_linked_when(make, changes):
    assert make.verdict(*pair(make, owner=changes, helper=changes)).accepted


def test_two_multimodal_models_are_linked(make):
    both = {"capabilities": ["Text", "Vision"]}

    assert make.verdict(*pair(make, owner=both, helper=both)).accepted


def test_image_models_need_the_image_capability_and_nothing_that_text_needs(make):
    image = {"capabilities": ["Image"], "contextWindow": None, "parallel": 4}

    assert make.verdict(*pair(make, owner=image, helper=image, lane="Image")).accepted
    verdict = make.verdict(*pair(make, owner=image, lane="Image"))
    assert verdict.reason == "IneligibleLink"
    assert "helper m has no capability Image" in verdict.message


def test_a_model_of_another_kind_is_told_that_alone(make):
    verdict = make.verdict(*pair(make, helper={"capabilities": ["Image", "Vision"], "contextWindow": None}))

    assert verdict.message == "helper m has no capability Text, which lane Text needs"


def test_different_weights_need_the_helpers_hash_acknowledged(make):
    refused = make.verdict(*pair(make, helper={"weightsHash": OTHER}))
    accepted = make.verdict(*pair(make, helper={"weightsHash": OTHER}, acknowledgeDifferentWeights=OTHER))

    assert refused.reason == "IneligibleLink"
    assert f"acknowledgeDifferentWeights: {OTHER}" in refused.message
    assert accepted.accepted


def test_a_helper_whose_weights_changed_asks_again(make):
    verdict = make.verdict(*pair(make, helper={"weightsHash": OTHER}, acknowledgeDifferentWeights="sha256:old"))

    assert verdict.reason == "IneligibleLink"
    assert "sha256:old was acknowledged" in verdict.message
    assert verdict.path == ("spec", "acknowledgeDifferentWeights")


def test_a_helper_of_unknown_weights_does_not_match_a_known_one(make):
    verdict = make.verdict(*pair(make, helper={"weightsHash": None}))

    assert verdict.reason == "IneligibleLink"
    assert "states no weightsHash" in verdict.message


def test_an_owner_of_unknown_weights_needs_the_helpers_acknowledged(make):
    assert make.verdict(*pair(make, owner={"weightsHash": None})).reason == "IneligibleLink"
    known = pair(make, owner={"weightsHash": None}, acknowledgeDifferentWeights="sha256:aa")
    assert make.verdict(*known).accepted


def test_unset_equals_unset_with_a_warning(make):
    verdict = make.verdict(*pair(make, owner={"weightsHash": None}, helper={"weightsHash": None}))

    assert verdict.accepted
    assert "WeightsUnknown" in {str(w.reason) for w in verdict.warnings}


def test_the_owners_hash_is_no_acknowledgement_of_the_helpers(make):
    verdict = make.verdict(*pair(make, helper={"weightsHash": OTHER}, acknowledgeDifferentWeights="sha256:aa"))

    assert verdict.reason == "IneligibleLink"


def test_an_acknowledgement_that_is_not_needed_does_no_harm(make):
    assert make.verdict(*pair(make, acknowledgeDifferentWeights=OTHER)).accepted


def test_a_link_asks_again_when_the_weights_of_its_helper_change_under_it(make):
    acknowledged = {"acknowledgeDifferentWeights": OTHER}
    before = make.resolved(*pair(make, helper={"weightsHash": OTHER}, **acknowledged))

    after = make.resolved(*pair(make, helper={"weightsHash": "sha256:third"}, **acknowledged), before=before)

    assert before.verdicts[3].accepted
    assert after.verdicts[3].reason == "IneligibleLink"
    assert after.configs["gpu-a"].links == []


def test_an_image_link_asks_for_an_acknowledgement_as_a_text_link_does(make):
    image = {"capabilities": ["Image"], "contextWindow": None}
    other = image | {"weightsHash": OTHER}

    assert make.verdict(*pair(make, owner=image, helper=other, lane="Image")).reason == "IneligibleLink"
    known = pair(make, owner=image, helper=other, lane="Image", acknowledgeDifferentWeights=OTHER)
    assert make.verdict(*known).accepted


def test_one_pair_may_be_linked_in_both_lanes(make):
    both = {"capabilities": ["Text", "Image"]}
    objects = [*pair(make, owner=both, helper=both), make.link("image", "gpu-a/m", "gpu-b/m", lane="Image")]

    assert [v.accepted for v in make.resolved(*objects).verdicts] == [True] * 5


def test_models_of_different_names_and_configurations_may_be_linked(make):
    """The common case is one checkpoint that two nodes configured differently."""
    helper = {"id": "m", "publicID": "other", "contextWindow": 2048, "configHash": "sha256:mine"}

    assert make.verdict(*pair(make, helper=helper)).accepted


def test_both_ends_get_the_link_and_no_other_slave_does(make):
    objects = [*pair(make), make.node("gpu-c", {"id": "m", "contextWindow": 8192})]

    configs = make.resolved(*objects).configs

    held = {name: [link.name for link in config.links] for name, config in configs.items()}
    assert held == {"master": ["link"], "gpu-a": ["link"], "gpu-b": ["link"], "gpu-c": []}


def test_what_a_link_allows_reaches_the_routers(make):
    allowed = make.resolved(*pair(make)).configs["gpu-b"].links[0]
    forbidden = make.resolved(*pair(make, loadIfUnloaded=False, restoreAfterBorrow=False)).configs["gpu-b"].links[0]

    assert (allowed.load_if_unloaded, allowed.restore_after_borrow) == (True, True)
    assert (forbidden.load_if_unloaded, forbidden.restore_after_borrow) == (False, False)


def test_the_same_link_twice_counts_once_and_the_reverse_is_another(make):
    verdicts = make.resolved(
        *pair(make), make.link("again", "gpu-a/m", "gpu-b/m"), make.link("back", "gpu-b/m", "gpu-a/m")
    ).verdicts

    assert [v.reason for v in verdicts[3:]] == ["Accepted", "DuplicateLink", "Accepted"]


def test_a_link_to_a_missing_node_names_near_ones(make):
    verdict = make.verdict(*pair(make)[:3], make.link("link", "gpu-a/m", "gpu-bb/m"))

    assert verdict.reason == "UnknownNode"
    assert "did you mean gpu-b" in verdict.message
    assert verdict.path == ("spec", "helper", "node")


def test_a_link_to_a_missing_model_names_near_ones(make):
    verdict = make.verdict(*pair(make, helper={"id": "cc11"})[:3], make.link("link", "gpu-a/m", "gpu-b/cc1"))

    assert verdict.reason == "UnknownModel"
    assert "did you mean cc11" in verdict.message
    assert verdict.path == ("spec", "helper", "model")


def test_a_link_that_gives_a_public_id_is_told_the_local_one(make):
    objects = pair(make, helper={"id": "local", "publicID": "public"})[:3]

    verdict = make.verdict(*objects, make.link("link", "gpu-a/m", "gpu-b/public"))

    assert verdict.reason == "UnknownModel"
    assert "its local ID is local" in verdict.message


def test_a_link_to_a_node_that_is_not_accepted_points_to_it(make):
    orphan = make.node("orphan", {"id": "m", "contextWindow": 1}, masterRef={"name": "nobody"})

    verdict = make.verdict(*pair(make)[:3], orphan, make.link("link", "gpu-a/m", "orphan/m"))

    assert verdict.reason == "UnknownNode"
    assert "orphan is not accepted" in verdict.message


def test_a_link_that_became_ineligible_is_skipped_and_comes_back(make):
    before = make.resolved(*pair(make))

    skipped = make.resolved(*pair(make, helper={"parallel": 2}), before=before)
    back = make.resolved(*pair(make), before=skipped)

    assert skipped.verdicts[3].reason == "IneligibleLink"
    assert not skipped.verdicts[3].last_good
    assert skipped.configs["master"].links == []
    assert skipped.configs["gpu-a"].links == []
    assert [link.name for link in back.configs["gpu-a"].links] == ["link"]
