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
    assert [w.reason for w in verdict.warnings] == ["NotServedYet"]


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
