"""What a round remembers of the one before makes it faster, and changes nothing of what it finds."""

from dataclasses import replace
from typing import Any

import pytest
import yaml

from turnout_operator import plan as plan_module
from turnout_operator.deliver import content_of
from turnout_operator.plan import Memory, Outcome, Plan, plan
from turnout_operator.state import Texts, document, dump, load


def frontend(model: str, *rules: str) -> dict[str, Any]:
    made = [{"name": name, "when": {"minInputTokens": 4000}, "targets": [{"model": model}]} for name in rules]
    return {"rules": made, "defaults": {"targets": [{"model": model}]}}


@pytest.fixture
def routed(namespace: Any) -> Any:
    """With frontend models, whose names and rules YAML has to quote."""
    for name, rules in (("app", ["long"]), ("no", ["yes", "on"]), ("dreißig", [])):
        namespace.put("FrontendModel", name, frontend("cc11", *rules))
    return namespace


def edits(namespace: Any) -> Any:
    """One after the other."""
    yield "nothing"
    namespace.put("FrontendModel", "app", frontend("cc11", "long", "longer"))
    yield "a rule"
    namespace.put("FrontendModel", "new", frontend("cc11"))
    yield "a new object"
    namespace.put("FrontendModel", "no", {"rules": "none"})
    yield "a spec that is refused"
    del namespace.objects["FrontendModel", "app"]
    yield "a deletion"
    namespace.put("RouterNode", "gpu-a", namespace.objects["RouterNode", "gpu-b"]["spec"])
    yield "a node"


def said(planned: Plan) -> tuple[object, ...]:
    state = planned.state and document(planned.state)
    statuses = [status.body for status in planned.outlook.statuses(Outcome())]
    return state, planned.secrets, [told.config for told in planned.nudges], statuses


def test_a_plan_is_the_same_with_and_without_memory(routed: Any) -> None:
    memory = Memory()
    for _ in edits(routed):
        observed = replace(routed.observed, objects=list(routed.objects.values()))
        assert said(plan(observed, routed.now, memory=memory)) == said(plan(observed, routed.now))
        routed.round()


def test_objects_are_judged_anew_when_one_changed_and_only_then(routed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    memory, judged = Memory(), []
    monkeypatch.setattr(
        plan_module, "resolve", lambda *a, resolve=plan_module.resolve, **k: judged.append(1) or resolve(*a, **k)
    )
    routed.round()
    judged.clear()

    def round_() -> int:
        plan(replace(routed.observed, objects=list(routed.objects.values())), routed.now, memory=memory)
        return len(judged)

    assert round_() == 1
    assert round_() == 1
    routed.put("FrontendModel", "app", frontend("cc11", "other"))
    assert round_() == 2
    routed.observed = replace(routed.observed, previous_tokens=frozenset({("token", "token")}))
    assert round_() == 3
    routed.observed = replace(routed.observed, kept=load(dump(routed.observed.kept)))
    assert round_() == 4


def test_a_configuration_made_of_parts_is_the_text_of_the_whole(routed: Any) -> None:
    before = None
    for what in edits(routed):
        config = routed.round().outlook.resolution.configs["master"]
        before = content_of(config, before)
        whole = config.model_dump(mode="json", exclude={"generation"})
        assert yaml.safe_load(before.body) == whole, what
        text = yaml.dump(whole, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True, width=120)
        assert before.body == text, what
        assert content_of(config) == before, what


def test_a_state_is_read_and_made_the_same_with_and_without_what_was_read_before(routed: Any) -> None:
    texts = Texts()
    for what in edits(routed):
        routed.round()
        kept = routed.observed.kept
        assert dump(kept, texts) == dump(kept), what
        again = load(dump(kept), texts)
        assert again == load(dump(kept)), what
        assert set(texts.made) == set(kept.last_accepted), f"{what}: what is gone is forgotten"
        assert len(texts.read) == len(kept.last_accepted), f"{what}: what is gone is forgotten"
