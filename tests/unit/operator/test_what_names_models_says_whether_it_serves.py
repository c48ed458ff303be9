"""Statuses of links, frontend models, pools, recipes, guardians and route tests, out of what the master says."""

from typing import Any

import pytest

MODELS = {("gpu-a", "gpu-a-ff"): True, ("gpu-b", "gpu-b-ff"): True}


@pytest.fixture
def declared(namespace: Any, specs: Any) -> Any:
    """The namespace with an object of each kind."""
    for node, price in (("gpu-a", 700), ("gpu-b", 300)):
        model = {"contextWindow": 4096, "parallel": 1, "capabilities": ["Text", "Vision"]}
        cost = {"inputMicrosPerMillionTokens": price}
        namespace.put("RouterNode", node, specs.slave(node, publicID=f"m-{node[-1]}", price=cost, **model))
    ends = {end: {"node": f"gpu-{at}", "model": f"gpu-{at}-ff"} for end, at in (("owner", "a"), ("helper", "b"))}
    namespace.put("RoutingLink", "link", {"lane": "Text", **ends})
    namespace.put("ModelPool", "pool", {"members": [{"model": "m-a"}, {"model": "m-b"}, {"model": "gone"}]})
    namespace.put("FrontendModel", "direct", {"defaults": {"targets": [{"model": "m-a"}]}})
    jump = {"rules": [{"name": "j", "action": "Jump", "jumpTo": "pooled"}], "defaults": {"targets": [{"model": "m-a"}]}}
    namespace.put("FrontendModel", "jumping", jump)
    namespace.put("FrontendModel", "pooled", {"defaults": {"targets": [{"pool": "pool"}]}})
    deny = {"rules": [{"name": "no", "action": "Deny", "denyStatus": 403}]}
    namespace.put("FrontendModel", "denying", deny)
    components = [{"capability": "Text", "node": "gpu-a", "model": "gpu-a-ff"}]
    namespace.put("SplitRecipe", "recipe", {"publicID": "studio", "components": components})
    namespace.put("Guardian", "guardian", {"scope": {"node": "gpu-b"}, "guardian": ends["owner"]})
    request = {"path": "/v1/chat/completions", "body": {"model": "direct"}}
    namespace.put("RouteTest", "test", {"request": request, "expect": {"rule": "direct/defaults"}})
    namespace.round()
    return namespace


@pytest.fixture
def known(declared: Any, saying: Any) -> Any:
    """`known(models, public)`: a round that knows which models serve."""

    def round_(models: dict[tuple[str, str], bool], public: dict[str, bool], **more: Any) -> Any:
        return declared.round(readings=saying(models=models, public=public, **more))

    return round_


def ready(namespace: Any, kind: str, name: str) -> tuple[str, str, str]:
    found = namespace.condition(kind, name, "Ready")
    return found["status"], found["reason"], found["message"]


def test_while_everything_serves_all_are_ready(declared: Any, known: Any) -> None:
    known(MODELS, {"m-a": True, "m-b": True})

    judged = [key for key in declared.objects if key[0] != "RouterNode"]
    assert {key: ready(declared, *key)[0] for key in judged} == dict.fromkeys(judged, "True")


def test_links_name_the_end_that_does_not_serve(declared: Any, known: Any) -> None:
    known(MODELS | {("gpu-b", "gpu-b-ff"): False}, {})
    assert ready(declared, "RoutingLink", "link") == (
        "False",
        "HelperUnavailable",
        "gpu-b/gpu-b-ff: its server does not answer",
    )
    known(MODELS | {("gpu-a", "gpu-a-ff"): False}, {})
    assert ready(declared, "RoutingLink", "link")[1] == "OwnerUnavailable"


def test_a_suspended_link_is_not_ready(declared: Any, known: Any) -> None:
    known(MODELS, {}, suspended={"link": "own work waited"})

    assert ready(declared, "RoutingLink", "link")[:2] == ("False", "LendingSuspended")


def test_a_refused_link_is_not_ready_for_that_reason(declared: Any) -> None:
    declared.put("RoutingLink", "bad", {"lane": "Text", **{e: {"node": e, "model": "m"} for e in ("owner", "helper")}})
    declared.round()

    assert ready(declared, "RoutingLink", "bad")[:2] == ("False", "UnknownNode")


@pytest.mark.parametrize(
    ("name", "reachable", "cheapest"),
    [("direct", 1, 700), ("pooled", 2, 300), ("jumping", 2, 300), ("denying", 0, None)],
)
def test_frontend_models_say_what_they_reach_and_the_cheapest_price(
    declared: Any, name: str, reachable: int, cheapest: int | None
) -> None:
    status = declared.status("FrontendModel", name)

    assert (status["modelName"], status["reachableModels"]) == (name, reachable)
    assert status.get("cheapestMicrosPerMillionTokens") == cheapest


def test_a_frontend_model_without_a_model_that_serves_names_them(declared: Any, known: Any) -> None:
    known(MODELS, {"m-a": False, "m-b": True})

    assert ready(declared, "FrontendModel", "direct") == ("False", "NothingServes", "m-a")
    assert ready(declared, "FrontendModel", "jumping")[0] == "True"


def test_pools_count_members_that_serve(declared: Any, known: Any) -> None:
    known(MODELS, {"m-a": True, "m-b": True})
    assert declared.status("ModelPool", "pool")["serving"] == "2/3"
    known(MODELS, {"m-a": False, "m-b": False})
    assert declared.status("ModelPool", "pool")["serving"] == "0/3"
    assert ready(declared, "ModelPool", "pool") == ("False", "NothingServes", "m-a, m-b, gone")


def test_recipes_and_guardians_name_what_does_not_serve(declared: Any, known: Any) -> None:
    known(MODELS | {("gpu-a", "gpu-a-ff"): False}, {})

    assert declared.status("SplitRecipe", "recipe")["serving"] == "0/1"
    assert ready(declared, "SplitRecipe", "recipe") == ("False", "NothingServes", "Text (gpu-a/gpu-a-ff)")
    assert ready(declared, "Guardian", "guardian")[1:] == (
        "NothingServes",
        "gpu-a/gpu-a-ff: its server does not answer",
    )
    assert declared.status("Guardian", "guardian")["scope"] == "gpu-b"


def test_route_tests_pass_or_fail(declared: Any) -> None:
    assert ready(declared, "RouteTest", "test")[:2] == ("True", "Passes")
    del declared.objects["FrontendModel", "direct"]
    declared.round()

    assert ready(declared, "RouteTest", "test")[:2] == ("False", "Fails")


def test_while_the_master_was_not_read_what_stands_there_stays(declared: Any, known: Any) -> None:
    known(MODELS, {"m-a": True, "m-b": True})

    assert declared.round(readings={}).statuses == ()


def test_without_a_master_nothing_is_ready(declared: Any) -> None:
    del declared.objects["RouterNode", "master"]
    declared.round()

    assert ready(declared, "ModelPool", "pool")[:2] == ("False", "NoMaster")


def test_a_rule_is_programmed_once_the_master_runs_a_configuration_with_it(declared: Any, known: Any) -> None:
    generation = declared.generation("master")
    known(MODELS, {}, generation=generation - 1)
    assert declared.condition("FrontendModel", "direct", "Programmed")["status"] != "True"

    known(MODELS, {}, generation=generation)

    assert declared.condition("FrontendModel", "direct", "Programmed")["status"] == "True"


def test_what_is_programmed_stays_so_while_others_are_on_their_way(declared: Any, known: Any) -> None:
    generation = declared.generation("master")
    known(MODELS, {"m-a": True, "m-b": True}, generation=generation)
    declared.put("FrontendModel", "new", {"defaults": {"targets": [{"model": "m-a"}]}})

    planned = known(MODELS, {"m-a": True, "m-b": True}, generation=generation)

    assert {status.key.name for status in planned.statuses} == {"master", "new"}
