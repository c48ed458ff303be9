"""Of two operators one writes, the other waits: until the first stops, dies, or is stopped for longer than its Lease lasts."""

import signal

import pytest

LEASE = ("--lease-duration", "3s")


@pytest.fixture
def pair(objects, start, manifests, until):
    """A leader and one that waits."""
    objects.apply(*manifests.all())
    leader = start(*LEASE)
    objects.accepted("routernode", "gpu-a")
    waiting = start(*LEASE)
    until(lambda: "waits: " in waiting.log(), "the second did not say that it waits")
    return leader, waiting


def test_the_second_waits_says_so_once_and_is_ready(pair, objects):
    leader, waiting = pair
    leader.more_rounds(3)

    assert waiting.health() | {"namespaces": None} == {
        "leads": False,
        "holder": objects.get("lease", "turnout")["spec"]["holderIdentity"],
        "namespaces": None,
    }
    assert waiting.ask("/readyz")
    assert waiting.facts()["rounds"] == 0
    assert waiting.log().count("waits: ") == 1
    assert (leader.metric("turnout_operator_leads"), waiting.metric("turnout_operator_leads")) == (1.0, 0.0)


def test_the_second_takes_over_when_the_first_stops(objects, start, manifests, until):
    objects.apply(*manifests.all())
    leader = start("--lease-duration", "1h")
    objects.accepted("routernode", "gpu-a")
    waiting = start("--lease-duration", "1h")
    until(lambda: "waits: " in waiting.log(), "the second did not say that it waits")

    assert leader.stop() == 0

    objects.apply(manifests.slave("gpu-a", 2048))
    objects.accepted("routernode", "gpu-a")  # long before an hour is over
    assert waiting.health()["leads"]
    assert objects.config("gpu-a")["models"]["local"][0]["context_window"] == 2048


def test_the_second_takes_over_when_the_first_is_killed(pair, objects, manifests):
    leader, waiting = pair

    leader.kill()

    objects.apply(manifests.slave("gpu-a", 2048))
    objects.accepted("routernode", "gpu-a")
    assert waiting.health()["leads"]
    assert objects.get("lease", "turnout")["spec"]["leaseTransitions"] == 1


def test_one_that_was_stopped_for_longer_than_its_lease_writes_nothing_any_more(pair, objects, manifests, until):
    leader, waiting = pair
    before = leader.facts()["rounds"]
    leader.send(signal.SIGSTOP)
    objects.apply(manifests.slave("gpu-a", 2048))
    objects.accepted("routernode", "gpu-a")

    leader.send(signal.SIGCONT)

    until(lambda: "lost the Lease" in leader.log(), "the first did not notice")
    until(lambda: leader.log().count("waits: ") == 1, "the first does not wait")
    assert not leader.health()["leads"]
    assert leader.facts()["rounds"] <= before + 1  # the round that it was in
    assert leader.facts()["age_s"] == 0.0
    assert waiting.health()["leads"]


@pytest.mark.parametrize("renewed", ["2001-01-01T00:00:00.000000Z", "2101-01-01T00:00:00.000000Z"])
def test_times_in_a_lease_mean_nothing(objects, start, manifests, renewed):
    spec = {"holderIdentity": "elsewhere", "leaseDurationSeconds": 2, "renewTime": renewed, "leaseTransitions": 4}
    kind = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "turnout"}}
    objects.apply(kind | {"spec": spec}, *manifests.all())

    operator = start(*LEASE)

    objects.accepted("routernode", "gpu-a")
    assert "waits: elsewhere holds the Lease" in operator.log()
    assert objects.get("lease", "turnout")["spec"]["leaseTransitions"] == 5
