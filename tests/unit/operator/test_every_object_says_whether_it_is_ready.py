"""While nobody hears of the master, an object says so: none is without the conditions Programmed and Ready, and none keeps an old reason."""

from datetime import timedelta
from typing import Any

import pytest

from turnout_operator.readings import Unread

MODELS = {("gpu-a", "gpu-a-ff"): True}
PUBLIC = {"cc11": True}


@pytest.fixture
def pooled(namespace: Any) -> Any:
    namespace.put("ModelPool", "pool", {"members": [{"model": "cc11"}]})
    return namespace


def said(namespace: Any, kind: str = "ModelPool", name: str = "pool") -> dict[str, tuple[str, str]]:
    found = namespace.status(kind, name)["conditions"]
    return {c["type"]: (c["status"], c["reason"]) for c in found if c["type"] in {"Programmed", "Ready"}}


@pytest.mark.usefixtures("in_cluster")
def test_while_the_master_has_no_pods_nothing_is_ready(pooled: Any) -> None:
    pooled.round(pods=[])

    assert said(pooled) == {
        "Programmed": ("False", "MasterNotReady"),
        "Ready": ("False", "MasterNotReady"),
    }
    assert "master" in pooled.condition("ModelPool", "pool", "Ready")["message"]


def test_before_a_router_was_asked_it_is_not_known(pooled: Any) -> None:
    pooled.round()

    assert said(pooled) == {"Programmed": ("Unknown", "MasterNotRead"), "Ready": ("Unknown", "MasterNotRead")}


@pytest.mark.usefixtures("in_cluster")
def test_what_the_master_said_stays_while_it_is_away_for_a_moment(pooled: Any, router_pod: Any, saying: Any) -> None:
    heard(pooled, router_pod, saying)
    assert said(pooled)["Ready"] == ("True", "Ready")

    pooled.round(pods=[router_pod("master-2", "master", ready=False)], readings={})

    assert said(pooled)["Ready"] == ("True", "Ready")


@pytest.mark.usefixtures("in_cluster")
def test_what_the_master_said_goes_when_it_is_away_for_long(pooled: Any, router_pod: Any, saying: Any) -> None:
    heard(pooled, router_pod, saying)
    pooled.round(pods=[], readings={})
    pooled.now += timedelta(minutes=1)
    pooled.round()

    assert said(pooled)["Ready"] == ("False", "MasterNotReady")
    assert pooled.round().statuses == ()


def test_an_operator_that_starts_anew_leaves_what_is_said_of_a_master_that_does_not_answer(pooled: Any) -> None:
    pooled.round(readings={"http://master:8900": Unread("no answer")})
    assert said(pooled)["Ready"] == ("False", "MasterNotReady")

    assert pooled.round(readings={}).statuses == ()


@pytest.mark.usefixtures("in_cluster")
def test_a_new_master_that_is_silent_ends_what_was_said_without_one(pooled: Any) -> None:
    gone = pooled.objects.pop(("RouterNode", "master"))
    pooled.round(pods=[])
    assert said(pooled)["Ready"] == ("False", "NoMaster")
    pooled.objects["RouterNode", "master"] = gone
    pooled.round(pods=[])

    assert said(pooled)["Ready"] == ("False", "MasterNotReady")


def test_a_standalone_without_a_token_says_that_it_cannot_be_asked(namespace: Any) -> None:
    model = {
        "backends": [{"name": "b", "family": "OpenAI", "url": "http://b"}],
        "models": [{"id": "m", "backend": "b"}],
    }
    namespace.objects.clear()
    namespace.put("RouterNode", "alone", {"role": "Standalone", "publicURL": "http://alone:8900"} | model)
    namespace.put("ModelPool", "pool", {"members": [{"model": "m"}]})
    namespace.round()

    assert said(namespace, "RouterNode", "alone") == {
        "Programmed": ("Unknown", "NotAsked"),
        "Ready": ("Unknown", "NotAsked"),
    }
    assert said(namespace)["Ready"] == ("Unknown", "MasterNotRead")


def test_a_route_test_without_a_master_is_not_ready(namespace: Any) -> None:
    request = {"path": "/v1/chat/completions", "body": {"model": "f"}}
    namespace.put("FrontendModel", "f", {"defaults": {"targets": [{"model": "cc11"}]}})
    namespace.put("RouteTest", "t", {"request": request, "expect": {"rule": "f/defaults"}})
    del namespace.objects["RouterNode", "master"]
    namespace.round()

    assert said(namespace, "RouteTest", "t") == {"Ready": ("False", "NoMaster")}


def heard(namespace: Any, router_pod: Any, saying: Any) -> None:
    """The master runs in one pod, and has said that everything serves."""
    (told,) = saying(models=MODELS, public=PUBLIC).values()
    pod = router_pod("master-1", "master")
    namespace.round(pods=[pod], readings={"http://10.0.0.1:8900": told})
