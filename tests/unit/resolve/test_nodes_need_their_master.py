"""Roles: one master a namespace, and slaves that name it."""

import pytest


def test_a_second_master_is_refused_and_the_first_goes_on(make):
    resolution = make.resolved(make.master(), make.node("second", role="Master"))

    assert [v.reason for v in resolution.verdicts] == ["Accepted", "MasterExists"]
    assert "RouterNode master" in resolution.verdicts[1].message
    assert list(resolution.configs) == ["master"]


@pytest.mark.parametrize("role", ["Master", "Standalone"])
def test_a_standalone_counts_as_one(make, role):
    assert make.verdict(make.node("solo", role="Standalone"), make.node("second", role=role)).reason == "MasterExists"


def test_a_master_that_is_deleted_makes_room_for_the_second(make):
    second = make.node("second", role="Master")
    before = make.resolved(make.master(), second)

    after = make.resolved(second, before=before)

    assert after.verdicts[0].accepted
    assert after.master == "second"


def test_two_masters_can_change_roles_in_one_go(make):
    a, b = make.node("a", role="Master"), make.node("b", masterRef={"name": "a"})
    before = make.resolved(a, b)

    after = make.resolved(make.node("a", masterRef={"name": "b"}), make.node("b", role="Master"), before=before)

    assert [v.reason for v in after.verdicts] == ["Accepted", "Accepted"]
    assert after.master == "b"


def test_a_slave_without_its_master_is_not_served_and_near_names_are_told(make):
    resolution = make.resolved(make.node("masters", role="Master"), make.node("gpu-a", {"id": "m"}))

    assert resolution.verdicts[1].reason == "MasterNotFound"
    assert "did you mean masters?" in resolution.verdicts[1].message
    assert list(resolution.configs) == ["masters"]
    assert resolution.configs["masters"].cluster.slave_urls == []


@pytest.mark.parametrize("other", [{"role": "Slave", "masterRef": {"name": "master"}}, {"role": "Standalone"}])
def test_a_master_ref_to_something_else_is_a_role_mistake(make, other):
    first = [] if other["role"] == "Standalone" else [make.master()]

    verdict = make.verdict(*first, make.node("other", **other), make.node("gpu-a", masterRef={"name": "other"}))

    assert verdict.reason == "NotAMaster"
    assert other["role"] in verdict.message


def test_a_slave_of_a_refused_master_is_pointed_to_it(make):
    verdict = make.verdict(
        make.master(), make.node("second", role="Master"), make.node("gpu-a", masterRef={"name": "second"})
    )

    assert verdict.reason == "MasterNotFound"
    assert "second is not accepted" in verdict.message


def test_slaves_may_be_declared_before_their_master(make):
    resolution = make.resolved(make.node("gpu-a", {"id": "m"}), make.master())

    assert all(v.accepted for v in resolution.verdicts)


def test_a_slave_that_nobody_can_reach_is_refused(make):
    verdict = make.verdict(make.master(), make.node("gpu-a"), placement=make.Placed(unreachable=frozenset({"gpu-a"})))

    assert verdict.reason == "UnreachableNode"
    assert "publicURL" in verdict.message


def test_a_master_that_slaves_cannot_reach_is_their_problem(make):
    resolution = make.resolved(
        make.master(), make.node("gpu-a"), placement=make.Placed(unreachable=frozenset({"master"}))
    )

    assert [v.reason for v in resolution.verdicts] == ["Accepted", "UnreachableNode"]


def in_cluster(make):
    return make.Placed(where=make.Where.CLUSTER)


def test_a_cluster_needs_a_token(make):
    assert make.verdict(make.master(), placement=in_cluster(make)).reason == "TokenMissing"
    with_token = make.master(tokenSecretRef={"name": "turnout-token"})
    assert make.verdict(with_token, placement=in_cluster(make)).accepted
    assert make.verdict(make.node("solo", role="Standalone"), placement=in_cluster(make)).accepted


def test_a_cluster_starts_family_process_only(make):
    backend = {"name": "llama", "family": "LlamaCpp", "command": ["serve"]}
    node = make.node("solo", role="Standalone", backends=[backend])

    assert make.verdict(node, placement=in_cluster(make)).reason == "BackendWithoutURL"
    assert make.verdict(node).accepted


def test_where_the_place_is_not_known_what_only_works_locally_is_a_warning(make):
    verdict = make.verdict(
        make.master(backends=[{"name": "llama", "family": "LlamaCpp", "command": ["serve"]}]), placement=make.anywhere
    )

    assert verdict.accepted
    assert {str(w.reason) for w in verdict.warnings} == {"TokenMissing", "BackendWithoutURL"}


def test_tls_that_is_not_served_is_said(make):
    verdict = make.verdict(make.master(tls={"secretRef": {"name": "turnout-tls"}}))

    assert verdict.accepted
    assert [w.reason for w in verdict.warnings] == ["NotServedYet"]
    assert "not encrypted" in verdict.warnings[0].message
