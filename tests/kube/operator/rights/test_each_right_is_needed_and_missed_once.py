"""Each right of the chart, taken away while the operator runs: one complaint that names it, all else goes on, and it heals.

A right that no case here needs is too wide: the last test finds it. With `clusterWide` the same rights are in a ClusterRole: those
are taken that are asked for in other words there, as watches are, and one of each sort of the others.
"""

from typing import Any, NamedTuple

import pytest

pytestmark = pytest.mark.timeout(300)  # the first test of a stage makes it, and ends the other
PLURALS = ("routernodes", "routinglinks", "guardians", "frontendmodels", "modelpools", "splitrecipes", "routetests")
MADE = ("services", "serviceaccounts", "deployments", "poddisruptionbudgets", "rolebindings")


class Case(NamedTuple):
    role: str
    verb: str
    resource: str


BIND, BIND_EVERYWHERE = (Case("served", "bind", roles) for roles in ("roles", "clusterroles"))
READS = [
    *(Case("served", "list", plural) for plural in (*PLURALS, *MADE, "persistentvolumeclaims", "pods")),
    Case("served", "get", "secrets"),
    Case("served", "update", "secrets"),
]
"""Without them a round ends before it delivers: it would judge by half of what is there, or forget what it delivered."""
WATCHES = [Case("served", "watch", plural) for plural in (*PLURALS, "pods")]
WRITES = [
    *(Case("served", "patch", f"{plural}/status") for plural in PLURALS),
    *(Case("served", verb, resource) for resource in MADE for verb in ("create", "patch", "delete")),
    *(Case("served", verb, "persistentvolumeclaims") for verb in ("create", "patch")),
    *(Case("served", verb, "secrets") for verb in ("create", "patch")),
    Case("served", "create", "events"),
    BIND,
]
LEASES = [Case("leader", verb, "leases") for verb in ("get", "create", "update")]
WEBHOOKS = [
    *(
        Case("webhooks", verb, f"{kind}webhookconfigurations")
        for verb in ("get", "patch")
        for kind in ("mutating", "validating")
    ),
    *(Case("certificates", verb, "secrets") for verb in ("get", "create", "update")),
]


EVERYWHERE = {
    *WATCHES,
    *(Case("served", "list", plural) for plural in ("routernodes", "services", "pods")),
    Case("served", "get", "secrets"),
    Case("served", "patch", "routernodes/status"),
    *(Case("served", "create", plural) for plural in ("secrets", "deployments", "events")),
    Case("served", "delete", "rolebindings"),
    BIND_EVERYWHERE,
    Case("leader", "update", "leases"),
    Case("webhooks", "patch", "validatingwebhookconfigurations"),
}


def each(cases: list[Case]) -> Any:
    found = [("everywhere", case) for case in cases if case in EVERYWHERE]
    found += [("everywhere", BIND_EVERYWHERE)] if BIND in cases else []
    found += [("watched", case) for case in cases]
    ids = ["-".join((stage, *case)) for stage, case in found]
    return pytest.mark.parametrize(("stage", "right"), found, ids=ids, indirect=True)


def complaint_of(right) -> str:
    resource = "the role that it gives to masters" if right.verb == "bind" else right.resource
    return f"may not {right.verb} {resource}{f' of {right.group}' if right.group else ''} in "


def refusals(operator) -> float:
    asked = [line for line in operator.ask("/metrics").splitlines() if line.startswith("turnout_operator_api_requests")]
    return sum(float(line.rpartition(" ")[2]) for line in asked if 'code="403"' in line)


def quiet_but_for_it(said, right, *others: str) -> bool:
    """One complaint, no other warning, and nothing that a programmer alone would read."""
    told = ("was not told its configuration", *others)  # nobody listens at the nodes' URLs
    warnings = [line for line in said(" WARNING ") if not any(other in line for other in told)]
    assert not said("Traceback")
    assert not said(" ERROR ")
    [line] = warnings
    return complaint_of(right) in line and "give the operator's service account that right" in line


def heals(stage, said, right) -> None:
    stage.give(right)
    again = complaint_of(right).replace("may not", "may")
    stage.until(lambda: said(" INFO ", again, " again"), f"{right} was given back, and nothing came of it")
    stage.until(lambda: not stage.operator.facts()["trouble"], "it is still in trouble")


@each(WRITES)
def test_a_write_that_is_refused_holds_up_nothing_else(stage, right, needs, said, until):
    needs(right)
    until(lambda: said(complaint_of(right)), "no complaint")
    before = refusals(stage.operator)

    wanted = None if right.resource == "secrets" and right.verb == "patch" else stage.change("gpu-b")

    if wanted is None:
        assert stage.context("gpu-b")
    else:
        until(lambda: stage.context("gpu-b") == wanted, "what may be written was not written")
    if right.resource == "events":  # nobody says again what was said once: the next one is another
        needs(right)
    until(lambda: refusals(stage.operator) > before, "it did not try again")
    assert quiet_but_for_it(said, right)
    stage.operator.health()
    if right.resource == "events":
        stage.give(right)
        needs(right)
        until(lambda: said("may create events", "again"), "it healed not")
    else:
        heals(stage, said, right)


@each(READS)
def test_what_was_delivered_stays_while_something_cannot_be_read(stage, right, needs, said, until):
    served = stage.get("secrets", "turnout-router-master")
    needs(right)
    until(lambda: said(complaint_of(right)), "no complaint")
    before = refusals(stage.operator)

    until(lambda: refusals(stage.operator) > before, "it did not try again")

    assert quiet_but_for_it(said, right)
    assert (
        stage.get("secrets", "turnout-router-master")["metadata"]["resourceVersion"]
        == (served["metadata"]["resourceVersion"])
    )
    stage.operator.health()
    heals(stage, said, right)


@each(WATCHES)
def test_what_cannot_be_watched_is_noticed_by_the_rounds(stage, right, said, until):
    until(lambda: said(complaint_of(right)), "no complaint")

    wanted = stage.change("gpu-b")

    until(lambda: stage.context("gpu-b") == wanted, "no round noticed it")
    assert quiet_but_for_it(said, right)
    heals(stage, said, right)


@each(LEASES)
def test_without_the_lease_nothing_is_written_and_all_stays(stage, right, needs, said, until):
    needs(right)
    until(lambda: said(complaint_of(right)), "no complaint")
    until(lambda: said("lost the Lease"), "it writes without")
    before = refusals(stage.operator)

    until(lambda: refusals(stage.operator) > before + 1, "it does not try again")

    assert quiet_but_for_it(said, right, "lost the Lease")
    assert stage.context("gpu-a")
    stage.operator.health()
    stage.give(right)
    until(lambda: stage.operator.health()["leads"], "it leads no more")
    stage.operator.more_rounds(1)


@each(WEBHOOKS)
def test_certificates_that_cannot_be_kept_are_said_once_and_judging_goes_on(stage, right, admitting, said, until):
    if right.verb == "create":
        stage.delete("secrets", "turnout-webhook", stage.system)
    if right.verb == "update":
        stage.spoil_certificates()
    if right.verb == "patch":
        stage.delete("secrets", "turnout-webhook", stage.system)
    other = admitting()
    complaint = complaint_of(right)
    until(lambda: said(complaint, operator=other), "no complaint")
    if right.verb == "get":  # it tries again after 5 s: the others are said at the same place
        until(lambda: refusals(other) > 1, "it did not try again")

    assert len(said(complaint, operator=other)) == 1
    assert not said("Traceback", operator=other)
    wanted = stage.change("gpu-b")
    until(lambda: stage.context("gpu-b") == wanted, "the other operator does not deliver")
    stage.give(right)
    until(lambda: said(complaint.replace("may not", "may"), "again", operator=other), "it healed not")


@pytest.mark.parametrize("stage", ["everywhere", "watched"], indirect=True)
def test_every_right_of_the_chart_is_one_that_was_missed(stage):
    tried = {*READS, *WATCHES, *WRITES, *LEASES, *WEBHOOKS}
    if stage.everywhere:  # the same, and its Secrets are in a namespace that it serves
        tried = {BIND_EVERYWHERE if case == BIND else case for case in tried if case.role != "certificates"}

    assert {Case(right.role, right.verb, right.resource) for right in stage.atoms()} == tried
