"""Two operators, each with an API server of its own: the leader loses its, the other takes over, and the first writes nothing when it is back."""

import pytest

LEASE = ("--lease-duration", "10s")
"""Long enough that a busy machine lets no holder lose it."""


@pytest.fixture
def pair(objects, start, manifests, servers, until):
    """A leader, and one that waits and asks the other API server."""
    objects.apply(*manifests.all())
    leader = start(*LEASE)
    objects.accepted("routernode", "gpu-a")
    waiting = start(*LEASE, kubeconfig=servers.other.kubeconfig)
    until(lambda: "waits: " in waiting.log(), "the second did not say that it waits")
    return leader, waiting, servers


def written(operator):
    """How often an API server answered a request of it that is none for reading."""
    lines = [
        line for line in operator.ask("/metrics").splitlines() if line.startswith("turnout_operator_api_requests_")
    ]
    asked = [line for line in lines if 'method="GET"' not in line and 'code="0"' not in line and "_total" in line]
    assert asked, "it wrote when it led"
    return asked


@pytest.mark.timeout(600)
def test_it_writes_nothing_until_it_leads_again(pair, objects, elsewhere, manifests, until):
    leader, waiting, servers = pair
    servers.stop()
    until(lambda: "lost the Lease" in leader.log(), "the leader did not notice")
    before = written(leader)
    elsewhere.apply(manifests.slave("gpu-a", 2048))
    elsewhere.accepted("routernode", "gpu-a")
    assert (leader.health()["leads"], waiting.health()["leads"]) == (False, True)

    servers.start()
    until(lambda: "waits: " in leader.log(), "the first does not wait")
    objects.apply(manifests.slave("gpu-a", 1024))
    objects.accepted("routernode", "gpu-a")
    waiting.more_rounds(3)

    assert written(leader) == before
    assert leader.health()["holder"] == waiting.health()["holder"]
    assert leader.log().count("lost the Lease") == 1

    waiting.kill()

    objects.apply(manifests.slave("gpu-a", 512))
    objects.accepted("routernode", "gpu-a")
    assert leader.health()["leads"]
    assert leader.metric("turnout_operator_terms_total") == 2
    assert objects.config("gpu-a")["models"]["local"][0]["context_window"] == 512
    assert "Traceback" not in leader.log() + waiting.log()
