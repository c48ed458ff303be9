"""One namespace of names: frontend models, public IDs and recipes; several nodes may bring one public ID."""

import itertools

import pytest

from turnout_api import identity


@pytest.fixture
def holders(make):
    """Objects that want the name `cc11`, by kind."""
    return {
        "RouterNode": make.node("gpu-a", {"id": "local", "publicID": "cc11"}),
        "FrontendModel": make.frontend("front", modelName="cc11", defaults={"targets": [{"model": "other"}]}),
        "SplitRecipe": make.recipe("recipe", "cc11", {"capability": "Text", "node": "gpu-z", "model": "z"}),
    }


KINDS = ("RouterNode", "FrontendModel", "SplitRecipe")


@pytest.mark.parametrize(("first", "second"), list(itertools.permutations(KINDS, 2)))
def test_the_later_object_with_a_taken_name_is_refused(make, holders, first, second):
    resolution = make.resolved(make.master(), holders[first], holders[second])

    assert [v.reason for v in resolution.verdicts] == ["Accepted", "Accepted", "NameConflict"]
    assert f"cc11 belongs to {first}" in resolution.verdicts[2].message


def test_two_frontend_models_with_one_name_conflict(make):
    default = {"targets": [{"model": "m"}]}

    verdict = make.verdict(make.frontend("a", modelName="x", defaults=default), make.frontend("x", defaults=default))

    assert verdict.reason == "NameConflict"
    assert verdict.path == ("metadata", "name")


def test_one_public_id_on_several_nodes_is_one_model_when_they_are_identical(make):
    model = {"id": "cc11", "contextWindow": 8192}

    resolution = make.resolved(make.master(), make.node("gpu-a", model), make.node("gpu-b", model))

    assert all(v.accepted and not v.warnings for v in resolution.verdicts)
    assert identity.all_names(resolution.ledger) == ["cc11"]


def test_one_that_differs_gets_a_suffix_and_its_author_is_told(make):
    resolution = make.resolved(
        make.master(),
        make.node("gpu-b", {"id": "cc11", "contextWindow": 8192}),
        make.node("gpu-a", {"id": "cc11", "contextWindow": 4096}),
    )

    assert all(v.accepted for v in resolution.verdicts)
    assert identity.all_names(resolution.configs["master"].names) == ["cc11", "cc11-2"]
    assert [w.reason for w in resolution.verdicts[2].warnings] == ["NameSuffixed"]
    assert "cc11-2" in resolution.verdicts[2].warnings[0].message


def test_the_first_seen_keeps_the_bare_name_when_it_is_created_anew(make):
    first, second = (
        make.node("gpu-a", {"id": "m", "contextWindow": 1}),
        make.node("gpu-b", {"id": "m", "contextWindow": 2}),
    )
    before = make.resolved(make.master(), first, second)

    after = make.resolved(make.master(), second, first, before=before)

    assert after.ledger == before.ledger


def test_a_name_with_a_suffix_is_never_given_to_another(make):
    nodes = [make.node(f"gpu-{i}", {"id": "m", "contextWindow": i}) for i in (1, 2, 3)]
    before = make.resolved(make.master(), *nodes[:2])

    after = make.resolved(make.master(), nodes[0], nodes[2], before=before)

    assert identity.all_names(after.ledger) == ["m", "m-2", "m-3"]
    assert after.verdicts[2].warnings[0].message.startswith("m is served as m-3")


@pytest.mark.parametrize("other", ["frontend", "node"])
def test_a_name_that_a_suffix_made_cannot_be_declared_later(make, other):
    nodes = [make.node(f"gpu-{i}", {"id": "m", "contextWindow": i}) for i in (1, 2)]
    before = make.resolved(make.master(), *nodes)
    late = (
        make.node("late", {"id": "m-2"})
        if other == "node"
        else make.frontend("m-2", defaults={"targets": [{"model": "m"}]})
    )

    verdict = make.verdict(make.master(), *nodes, late, before=before)

    assert verdict.reason == "NameConflict"
    assert "m-2 was given" in verdict.message


def test_a_suffix_never_makes_a_name_that_is_declared(make):
    frontend = make.frontend("m-2", defaults={"targets": [{"model": "m"}]})
    nodes = [make.node(f"gpu-{i}", {"id": "m", "contextWindow": i}) for i in (1, 2)]

    resolution = make.resolved(make.master(), frontend, *nodes)

    assert all(v.accepted for v in resolution.verdicts)
    assert identity.all_names(resolution.ledger) == ["m", "m-3"]


def test_an_edit_cannot_take_a_name_from_an_object_that_has_it(make):
    default = {"targets": [{"model": "m"}]}
    older, newer = make.frontend("older", defaults=default), make.frontend("newer", defaults=default)
    before = make.resolved(make.master(), older, newer)

    edited = make.frontend("older", modelName="newer", defaults=default)
    after = make.resolved(make.master(), edited, newer, before=before)

    assert [v.reason for v in after.verdicts] == ["Accepted", "NameConflict", "Accepted"]
    assert after.configs == before.configs


def test_two_objects_can_swap_their_names_when_one_lets_go(make):
    default = {"targets": [{"model": "m"}]}
    before = make.resolved(make.master(), make.frontend("b", defaults=default), make.frontend("a", defaults=default))

    after = make.resolved(
        make.master(),
        make.frontend("b", modelName="a", defaults=default),
        make.frontend("a", modelName="c", defaults=default),
        before=before,
    )

    assert [v.reason for v in after.verdicts] == ["Accepted"] * 3
    assert [f.model_name for f in after.configs["master"].frontends] == ["c", "a"]


def test_names_of_a_slave_are_kept_while_its_master_is_away(make):
    slave = make.node("gpu-a", {"id": "m"})
    thief = make.frontend("m", defaults={"targets": [{"model": "x"}]})
    before = make.resolved(make.master(), slave)

    away = make.resolved(slave, thief, before=before)
    back = make.resolved(make.master(), slave, thief, before=away)

    assert [v.reason for v in away.verdicts] == ["MasterNotFound", "NameConflict"]
    assert [v.reason for v in back.verdicts] == ["Accepted", "Accepted", "NameConflict"]


def test_no_suffix_makes_a_name_of_a_node_that_waits_for_its_master(make):
    first, other = make.node("a", {"id": "m", "contextWindow": 1}), make.node("b", {"id": "m", "contextWindow": 2})
    waits = make.node("waits", {"id": "m-2"}, masterRef={"name": "later"})
    before = make.resolved(make.master(), first, waits, other)

    after = make.resolved(make.master(), first, make.node("waits", {"id": "m-2"}), other, before=before)

    assert before.verdicts[2].reason == "MasterNotFound"
    assert [v.reason for v in after.verdicts] == ["Accepted"] * 4


def test_an_object_that_waits_for_a_name_does_not_get_it_from_an_edit_that_fails(make):
    """The waiting one is the oldest; the holder tries to move to a name that is taken, and keeps the one that it has."""
    default = {"targets": [{"model": "m"}]}
    holder, third = make.frontend("holder", modelName="x", defaults=default), make.frontend("third", defaults=default)
    waiting = make.frontend("waiting", modelName="x", defaults=default)
    first = make.resolved(make.master(), holder, third)
    before = make.resolved(make.master(), waiting, holder, third, before=first)

    edited = make.frontend("holder", modelName="third", defaults=default)
    after = make.resolved(make.master(), waiting, edited, third, before=before)

    assert [v.reason for v in before.verdicts] == ["Accepted", "NameConflict", "Accepted", "Accepted"]
    assert [v.reason for v in after.verdicts] == ["Accepted", "NameConflict", "NameConflict", "Accepted"]
    assert after.configs == before.configs == first.configs


def test_an_edited_model_keeps_its_name(make):
    before = make.resolved(make.master(), make.node("gpu-a", {"id": "m", "contextWindow": 1}))

    after = make.resolved(make.master(), make.node("gpu-a", {"id": "m", "contextWindow": 2}), before=before)

    assert identity.all_names(after.ledger) == ["m"]
    assert not after.verdicts[1].warnings


def test_two_nodes_that_are_edited_together_stay_one_model(make):
    before = make.resolved(make.master(), *(make.node(n, {"id": "m", "contextWindow": 1}) for n in ("gpu-a", "gpu-b")))

    after = make.resolved(
        make.master(), *(make.node(n, {"id": "m", "contextWindow": 2}) for n in ("gpu-a", "gpu-b")), before=before
    )

    assert identity.all_names(after.ledger) == ["m"]


def test_a_model_that_is_given_another_public_id_leaves_its_old_number_to_nobody():
    ledger = {"m": ["h1"], "other": ["h0"]}

    edited = identity.follow(ledger, {("gpu-a", "x"): ("m", "h1")}, {("gpu-a", "x"): ("other", "h2")})

    assert edited == ledger


def test_a_name_that_no_node_has_any_more_is_retired_and_not_forgotten(make):
    before = make.resolved(make.master(), make.node("gpu-a", {"id": "m"}), make.node("gpu-b", {"id": "n"}))
    renamed = make.resolved(make.master(), make.node("gpu-a", {"id": "m", "publicID": "new"}), before=before)
    back = make.resolved(make.master(), make.node("gpu-a", {"id": "m"}), before=renamed)

    assert [each.configs["master"].retired_names for each in (before, renamed, back)] == [[], ["m", "n"], ["n", "new"]]
    assert set(renamed.configs["master"].names) == {"m", "n", "new"}
    assert renamed.configs["gpu-a"].retired_names == []
