"""An edit that is not acceptable changes nothing that is served, across restarts too."""

import json

import pytest

from turnout_api.resolve import PlacedAnywhere, declare, dump_accepted, load_accepted, resolve

TARGET = {"targets": [{"model": "m"}]}


@pytest.fixture
def good(make):
    """One of each kind, all accepted."""
    return [
        make.master(settings={"schedulingLeaseTTL": "40s"}),
        make.node("gpu-a", {"id": "m", "contextWindow": 8192}),
        make.node("gpu-b", {"id": "m", "contextWindow": 8192}, {"id": "vl", "capabilities": ["Text", "Vision"]}),
        make.link("link", "gpu-a/m", "gpu-b/m"),
        make.guardian("guardian", {"cluster": True}, "gpu-b", "vl"),
        make.frontend("frontend", {"when": {"timeWindow": {"from": "22:00", "to": "06:00"}}} | TARGET),
        make.pool("pool", "m"),
        make.recipe("recipe", "studio", {"capability": "Text", "node": "gpu-a", "model": "m"}),
    ]


def bad_edits(make):
    return {
        "master": [make.master(settings={"schedulingLeaseTTL": "1s"}), make.object("RouterNode", "master", {})],
        "gpu-a": [
            make.node("gpu-a", {"id": "m", "backend": "nope"}),
            make.node("gpu-a", {"id": "studio"}),
            make.node("gpu-a", {"id": "renamed"}, masterRef={"name": "nobody"}),
            make.node("gpu-a", {"id": "m"}, role="Master"),
            make.node(
                "gpu-a", {"id": "m"}, backends=[{"name": "llama", "family": "Kobold", "url": "http://127.0.0.1:1"}]
            ),
        ],
        "link": [make.link("link", "gpu-a/m", "gpu-b/x"), make.link("link", "gpu-a/m", "gpu-b/vl")],
        "guardian": [make.guardian("guardian", {"cluster": True}, "gpu-a", "m")],
        "frontend": [
            make.frontend("frontend", {"when": {"hasImage": True}} | TARGET),
            make.frontend("frontend", modelName="studio", defaults=TARGET),
            make.jump("frontend", "frontend"),
        ],
        "pool": [make.pool("pool")],
        "recipe": [make.recipe("recipe", "m", {"capability": "Text", "node": "gpu-a", "model": "m"})],
    }


@pytest.mark.parametrize("name", ["master", "gpu-a", "link", "guardian", "frontend", "pool", "recipe"])
def test_a_bad_edit_changes_no_configuration(make, good, name):
    before = make.resolved(*good)
    assert all(v.accepted for v in before.verdicts)

    for edit in bad_edits(make)[name]:
        edited = [edit if manifest["metadata"]["name"] == name else manifest for manifest in good]
        after = make.resolved(*edited, before=before)

        [verdict] = [v for v in after.verdicts if not v.accepted]
        assert (verdict.name, verdict.last_good) == (name, True)
        assert verdict.message.endswith("What was accepted last goes on being served.")
        assert after.configs == before.configs
        assert (after.ledger, after.last_accepted) == (before.ledger, before.last_accepted)


@pytest.mark.parametrize("name", ["gpu-a", "link", "guardian", "frontend", "pool", "recipe"])
def test_a_bad_object_that_was_never_good_is_not_served(make, good, name):
    without = make.resolved(*(manifest for manifest in good if manifest["metadata"]["name"] != name))

    edit = bad_edits(make)[name][0]
    after = make.resolved(*(edit if manifest["metadata"]["name"] == name else manifest for manifest in good))

    refused = {v.name: v for v in after.verdicts if not v.accepted}
    assert not refused[name].last_good
    assert after.configs == without.configs


def test_the_generation_that_is_told_is_the_declared_one(make):
    resolution = make.resolved(make.object("RouterNode", "gpu-a", {}, generation=4))

    assert resolution.verdicts[0].generation == 4


def test_a_deleted_object_is_gone_though_it_was_accepted(make, good):
    before = make.resolved(*good)

    after = make.resolved(*good[:-1], before=before)

    assert after.configs["master"].recipes == []
    assert all(key.name != "recipe" for key in after.last_accepted)


def test_what_was_accepted_last_is_judged_anew_when_another_object_changed(make, good):
    """The link's edit is bad, and its last good one is ineligible since the helper changed: neither is served."""
    before = make.resolved(*good)
    changed = [
        make.link("link", "gpu-a/m", "gpu-b/x") if m["metadata"]["name"] == "link" else m
        for m in good
        if m["metadata"]["name"] != "gpu-b"
    ]
    changed.append(make.node("gpu-b", {"id": "m", "contextWindow": 8192, "parallel": 4}))

    after = make.resolved(*changed, before=before)

    assert after.configs["master"].links == []
    assert {v.name: v.last_good for v in after.verdicts if not v.accepted}["link"] is False


def test_a_slave_that_is_moved_to_nowhere_keeps_its_names_against_a_newcomer(make):
    """The edit gives the name `old` up and is refused; the newcomer of the same moment must not get it."""
    before = make.resolved(make.master(), make.node("gpu-a", {"id": "old"}))

    after = make.resolved(
        make.master(),
        make.node("gpu-a", {"id": "new"}, masterRef={"name": "nobody"}),
        make.frontend("old", defaults=TARGET),
        before=before,
    )

    assert [v.reason for v in after.verdicts] == ["Accepted", "MasterNotFound", "NameConflict"]
    assert after.configs == before.configs


def test_what_is_kept_survives_a_restart(make, good):
    before = make.resolved(*good)
    kept = json.loads(json.dumps(dump_accepted(before.last_accepted)))
    edits = {name: edits[0] for name, edits in bad_edits(make).items()}
    edited = [edits.get(manifest["metadata"]["name"], manifest) for manifest in good]

    after = resolve(
        [declare(manifest) for manifest in edited],
        placement=make.Placed(),
        generation=7,
        last_accepted=load_accepted(kept),
        ledger=before.ledger,
    )

    assert [v.name for v in after.verdicts if v.accepted] == ["gpu-b"]
    assert after.configs == before.configs


def test_what_another_version_kept_and_this_one_refuses_is_left_out():
    assert load_accepted([{"kind": "RouterNode", "spec": {}}, {"kind": "Unheard"}]) == {}


def test_what_this_version_has_no_driver_for_is_not_served_though_it_was_accepted(make):
    backend = {"name": "b", "family": "Kobold", "url": "http://127.0.0.1:1"}
    declared = declare(make.node("solo", role="Standalone", backends=[backend]))

    after = resolve(
        [declared], placement=PlacedAnywhere(), generation=1, last_accepted={declared.key: declared.resource}
    )

    assert after.verdicts[0].reason == "FamilyNotSupported"
    assert after.configs == {}


def test_several_namespaces_are_several_clusters(make):
    manifests = [make.object("RouterNode", "solo", {"role": "Standalone"}, namespace=space) for space in ("a", "b")]

    with pytest.raises(ValueError, match="by_namespace"):
        make.resolved(*manifests)


@pytest.mark.parametrize("slave_first", [True, False])
def test_a_bad_edit_of_the_master_does_not_refuse_good_edits_of_the_same_moment(make, slave_first):
    """With the master's edit nothing is there that the slaves could be slaves of; but that edit is not what is served."""
    old = [make.node("gpu-a", {"id": "m"}), make.node("gpu-b", {"id": "m"})]
    before = make.resolved(make.master(), *old)
    new = [
        make.node("gpu-a", {"id": "m", "contextWindow": 4096}),
        make.node("gpu-b", {"id": "m", "contextWindow": 1024}),
    ]
    bad = make.node("master", masterRef={"name": "nobody"})

    after = make.resolved(*([*new, bad] if slave_first else [bad, *new]), before=before)

    assert {v.name for v in after.verdicts if not v.accepted} == {"master"}
    assert after.configs == make.resolved(make.master(), *new, before=before).configs


def test_a_long_duration_survives_a_restart(make):
    good = make.master(settings={"schedulingSampleWindow": "8759h59m59s"})
    before = make.resolved(good)
    kept = json.loads(json.dumps(dump_accepted(before.last_accepted)))

    after = resolve(
        [declare(make.master(settings={"schedulingLeaseTTL": "1s"}))],
        placement=make.Placed(),
        generation=7,
        last_accepted=load_accepted(kept),
    )

    assert after.configs == before.configs
