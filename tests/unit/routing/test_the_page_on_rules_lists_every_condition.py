"""docs/rules.md has a row for each condition, in the order in which they are asked."""

import re
from pathlib import Path

from turnout_api.resources import When
from turnout_api.resources.rules import camel
from turnout_api.routing.conditions import compiled

PAGE = Path(__file__).parents[3] / "docs" / "rules.md"


def listed():
    section = PAGE.read_text().split("## Conditions")[1].split("\n## ")[0]
    return [name for row in re.findall(r"^\| (`.+?) \|", section, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)]


def test_every_condition_has_its_row():
    assert listed() == [camel(name) for name in When.model_fields]


def test_conditions_are_asked_in_the_order_of_the_page():
    every = When(
        endpoints=["/x"], stream=True, has_images=True, has_tools=True, has_audio=True, min_input_tokens=1,
        max_input_tokens=1, min_output_tokens=1, max_output_tokens=1, min_request_cost_micros=1,
        max_request_cost_micros=1, min_budget_used_percent=1, max_budget_used_percent=1, max_inflight_per_backend=1,
        headers={"x": {"present": True}}, clients=["a"], roles=["a"], users=["a"], metadata={"a": "b"}, time_window={},
        percent=1,
    )  # fmt: skip

    assert [condition.name for condition in compiled(every, rule="f/r", models=())] == listed()
