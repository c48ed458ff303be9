"""Who has a gate, what is loaded as one thing and what starts by itself."""

import pytest

from turnout_api.config import RouterConfig
from turnout_router.runtime.plan import enrolled, plan_of

URL = {"name": "url", "family": "OpenAI", "url": "http://127.0.0.1:1"}
EACH = {"name": "each", "family": "Process", "command": ["serve", "--model=${MODEL}", "${PORT}"]}
ALL = {"name": "all", "family": "Process", "command": ["serve", "${PORT}"]}


def config(*models: dict, cluster: dict | None = None, links=(), startup="", **backend) -> RouterConfig:
    return RouterConfig.model_validate(
        {
            "cluster": {"node_id": "n1.pod-0", "node": "n1", **(cluster or {})},
            "backend": {"backends": [URL, EACH, ALL], **backend},
            "models": {"local": [{"config_hash": "h", **model} for model in models], "startup_model": startup},
            "links": list(links),
        }
    )


def link(**ends: str) -> dict:
    unset = {"owner_node": "x", "owner_model": "x", "helper_node": "x", "helper_model": "x"}
    return {"name": "l", "lane": "Text", **unset, **ends}


def gate(plan) -> dict[str, tuple[int | None, bool]]:
    return {model.id: (model.depth, model.direct) for model in plan.models}


def test_a_model_behind_a_url_without_a_link_has_no_gate_and_no_queue():
    assert gate(plan_of(config({"id": "a", "backend": "url"}))) == {"a": (None, True)}


def test_a_model_that_the_router_starts_without_a_link_has_no_gate_once_it_runs():
    assert gate(plan_of(config({"id": "a", "backend": "each"}))) == {"a": (None, False)}


@pytest.mark.parametrize("ends", [{"owner_node": "n1", "owner_model": "a"}, {"helper_node": "n1", "helper_model": "a"}])
def test_an_owner_and_a_helper_are_gated_and_their_neighbours_are_not(ends):
    models = ({"id": "a", "backend": "url"}, {"id": "b", "backend": "url"})
    assert gate(plan_of(config(*models, links=[link(**ends)]))) == {"a": (2, False), "b": (None, True)}


def test_a_link_of_another_node_with_a_model_of_the_same_name_gates_nothing():
    assert (
        enrolled(config({"id": "a", "backend": "url"}, links=[link(owner_node="n2", owner_model="a")])) == frozenset()
    )


def test_on_an_exclusive_runtime_all_models_are_gated_to_the_depth_or_what_they_do_in_parallel():
    models = ({"id": "a", "backend": "url"}, {"id": "b", "backend": "each", "parallel": 8})
    plan = plan_of(config(*models, exclusive=True, cluster={"scheduling_backend_depth": 3}))
    assert gate(plan) == {"a": (3, False), "b": (8, False)}


def test_a_command_with_a_model_is_a_unit_for_each_and_one_without_is_a_unit_for_all():
    models = [{"id": f"{backend}-{n}", "backend": backend} for backend in ("each", "all") for n in (1, 2)]
    plan = plan_of(config(*models))
    assert [unit.name for unit in plan.units] == ["each-1", "each-2", ""]
    assert [backend.one_process for backend in config().backend.backends] == [False, False, True]


SEVERAL = [{"id": f"all-{n}", "backend": "all"} for n in (1, 2)]


def test_one_process_of_several_models_is_taken_to_switch_them_where_one_is_loaded_at_a_time():
    plan = plan_of(config(*SEVERAL, exclusive=True, startup="all-2"))
    assert [(unit.name, unit.switched, unit.kept) for unit in plan.units] == [
        ("all-1", True, False),
        ("all-2", True, True),
    ]


def test_a_process_that_was_seen_to_have_all_its_models_is_one_unit():
    one = config(*SEVERAL, exclusive=True, startup="all-2")
    plan = plan_of(one, whole={unit.backend for unit in plan_of(one).units})
    assert [(unit.name, unit.switched, unit.kept) for unit in plan.units] == [("", False, True)]


@pytest.mark.parametrize(
    ("models", "backends"),
    [
        (SEVERAL[:1], [ALL]),
        ([SEVERAL[0], {**SEVERAL[1], "backend_model": "all-1"}], [ALL]),
        (SEVERAL, [{**ALL, "family": "OpenAI"}]),
    ],
)
def test_a_process_with_nothing_to_switch_or_no_way_to_do_it_is_one_unit(models, backends):
    assert [unit.name for unit in plan_of(config(*models, exclusive=True, backends=backends)).units] == [""]


def test_two_names_for_one_backend_model_are_one_unit():
    models = (
        {"id": "a", "backend": "each", "backend_model": "m"},
        {"id": "b", "backend": "each", "backend_model": "m"},
    )
    assert len(plan_of(config(*models)).units) == 1


@pytest.mark.parametrize(
    ("settings", "kept"),
    [
        ({}, ["e"]),
        ({"mode": "LlamaSdCpp"}, []),
        ({"exclusive": True}, []),
        ({"mode": "LlamaSdCpp", "startup": "e"}, ["e"]),
        ({"exclusive": True, "startup": "u"}, ["u"]),
    ],
)
def test_what_starts_with_nobody_asking(settings, kept):
    plan = plan_of(config({"id": "e", "backend": "each"}, {"id": "u", "backend": "url"}, **settings))
    assert [unit.name for unit in plan.units if unit.kept] == kept


def test_a_changed_declaration_is_another_unit_and_an_unchanged_one_is_the_same():
    model = {"id": "a", "backend": "url"}
    moved = [{**URL, "url": "http://127.0.0.1:2"}]
    same = {unit.id for settings in ({}, {"mode": "LlamaSdCpp"}) for unit in plan_of(config(model, **settings)).units}
    assert len(same) == 1
    assert same.isdisjoint(unit.id for unit in plan_of(config(model, backends=moved)).units)
