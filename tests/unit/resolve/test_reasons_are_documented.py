"""docs/reasons.md and the enum say the same words."""

import re
from pathlib import Path

import pytest

from turnout_api.resolve import Reason
from turnout_api.resolve.declare import REASON_OF_RULE
from turnout_api.resources import Part

PAGE = Path(__file__).parents[3] / "docs" / "reasons.md"
ROW = re.compile(r"^\| `(\w+)` \| (.+?) \| (.+?) \|$", re.MULTILINE)


def test_every_reason_has_exactly_one_row():
    assert sorted(word for word, _, _ in ROW.findall(PAGE.read_text())) == sorted(Reason)


@pytest.mark.parametrize("row", ROW.findall(PAGE.read_text()), ids=lambda row: row[0])
def test_a_row_says_what_the_enum_says_and_what_to_do(row):
    word, meaning, what_to_do = row

    assert meaning == Reason(word).meaning
    assert what_to_do.endswith(".")


def test_every_meaning_is_a_sentence():
    assert [reason for reason in Reason if not reason.meaning.endswith(".")] == []


def test_every_rule_that_has_a_reason_of_its_own_exists():
    rules = {rule.name for part in parts(Part) for rule in part.checks}

    assert set(REASON_OF_RULE) - {"duplicate"} <= rules


def parts(base):
    return [base, *(part for child in base.__subclasses__() for part in parts(child))]
