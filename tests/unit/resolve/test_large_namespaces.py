"""The work of `resolve` grows with the objects, not with their square: counted in calls, since time is the machine's."""

import sys
from contextlib import contextmanager

import pytest


@contextmanager
def counted_calls():
    """Counts the Python calls inside."""
    calls = [0]

    def count(_frame, event, _argument):
        calls[0] += event == "call"

    sys.setprofile(count)
    try:
        yield calls
    finally:
        sys.setprofile(None)


def unknown_targets(make, count):
    """A node is there, another one is away that has as many models, and every target names one of those."""
    there = [{"id": f"here-{i}"} for i in range(count)]
    rules = [{"when": {"minInputTokens": i}, "targets": [{"model": f"there-{i}"}]} for i in range(8)]
    frontends = [
        make.frontend(f"front-{i}", *(r | {"targets": [{"model": f"there-{i}-{j}"}]} for j, r in enumerate(rules)))
        for i in range(count)
    ]
    return [make.master(), make.node("gpu-a", *there), *frontends]


def shared_policies(make, count):
    """Every frontend model jumps to the next ones."""
    return [make.master(), *(make.jump(f"f-{i}", *(f"f-{i + j}" for j in range(1, 9))) for i in range(count))]


def edited_links(make, count):
    models = [{"id": f"m-{i}", "contextWindow": 8192} for i in range(count)]
    links = [make.link(f"l-{i}", f"gpu-a/m-{i}", f"gpu-b/m-{i}") for i in range(count)]
    return [make.master(), make.node("gpu-a", *models), make.node("gpu-b", *models), *links]


@pytest.mark.parametrize(("namespace", "few"), [(unknown_targets, 50), (shared_policies, 300), (edited_links, 50)])
def test_twice_the_objects_are_not_four_times_the_work(make, namespace, few):
    work = {}
    for count in (few, 2 * few):
        manifests = namespace(make, count)
        before = make.resolved(*manifests)
        edited = [m if m["kind"] != "RoutingLink" else gone(m) for m in manifests]
        with counted_calls() as calls:
            make.resolved(*edited, before=before)
        work[count] = calls[0]

    assert work[2 * few] < 3 * work[few]


def gone(link):
    """The link with a helper that does not exist."""
    spec = link["spec"]
    return link | {"spec": spec | {"helper": spec["helper"] | {"model": "gone"}}}


def test_a_chain_of_many_jumps_is_followed_without_recursion(make):
    chain = [make.jump(f"f-{i}", f"f-{i + 1}") for i in range(3000)]

    resolution = make.resolved(make.master(), *chain, make.jump("f-3000", "f-0"))

    [refused] = [v for v in resolution.verdicts if not v.accepted]
    assert refused.reason == "JumpLoop"
    assert "f-3000>f-0>f-1>" in refused.message
    assert len(refused.message) < 4096, "a condition's message has no more room"
