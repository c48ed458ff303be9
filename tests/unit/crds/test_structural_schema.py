"""The converter writes what a structural schema can say, and refuses the rest by path."""

from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field

from turnout_api.resources.rules import Keyed, OpenPart, Ordered, Part, Span, Unique, rule
from turnout_api.schema import NotStructural, structural


class Documented(BaseModel):
    model_config = ConfigDict(use_attribute_docstrings=True)


class Inner(Part):
    name: Annotated[str, Field(max_length=9)]
    """Its name."""


class Sample(Part):
    """A sample."""

    inner: Inner
    """Said where it is used."""
    maybe: Inner | None = None
    """May be left out."""
    fixed: Literal["only"] = "only"
    """Always the same."""
    above: Annotated[int, Field(gt=3, lt=9)] = 4
    """Between two others."""
    large: Annotated[int, Field(ge=0)] = 0
    """Has no upper bound."""
    off: bool = False
    """Off unless set."""
    pause: Annotated[float, Span("1s", "1h")] = 90.0
    """A time."""
    keyed: Annotated[list[Inner], Keyed(("name",)), Field(max_length=2)]
    """Told apart by name."""
    names: Annotated[list[Annotated[str, Field(max_length=3)]], Unique(), Field(max_length=2)]
    """A set."""
    by_name: Annotated[dict[str, Annotated[str, Field(max_length=3)]], Field(max_length=2)]
    """A map."""

    @rule(cel="self.above > 3", message="must be above 3", field="above")
    def above_three(self) -> bool:
        return self.above > 3


@pytest.fixture(scope="module")
def properties():
    return structural(Sample)["properties"]


def test_references_are_inlined_and_the_words_at_the_field_win(properties):
    assert properties["inner"] == {
        "description": "Said where it is used.",
        "type": "object",
        "required": ["name"],
        "properties": {"name": {"description": "Its name.", "type": "string", "maxLength": 9}},
    }


def test_a_union_with_null_becomes_a_field_that_may_be_left_out(properties):
    assert properties["maybe"]["type"] == "object"
    assert "maybe" not in structural(Sample)["required"]


def test_const_becomes_an_enum_of_one(properties):
    assert properties["fixed"]["enum"] == ["only"]


def test_exclusive_bounds_become_a_bound_and_a_flag(properties):
    above = properties["above"]

    assert (above["minimum"], above["exclusiveMinimum"]) == (3, True)
    assert (above["maximum"], above["exclusiveMaximum"]) == (9, True)


def test_an_integer_that_may_pass_32_bits_says_so(properties):
    assert properties["large"]["format"] == "int64"
    assert "format" not in properties["above"]


def test_a_default_is_stored_and_described_and_an_empty_one_only_described(properties):
    assert properties["above"]["default"] == 4
    assert properties["above"]["description"] == "Between two others. Default: 4."
    assert "default" not in properties["off"]
    assert properties["off"]["description"] == "Off unless set. Default: false."


def test_a_duration_is_text_with_its_bounds_as_a_rule(properties):
    pause = properties["pause"]

    assert (pause["type"], pause["default"]) == ("string", "90s")
    assert pause["x-kubernetes-validations"][0]["rule"] == (
        "duration(self) >= duration('1s') && duration(self) <= duration('1h')"
    )


def test_lists_carry_their_merge_type(properties):
    assert properties["keyed"]["x-kubernetes-list-type"] == "map"
    assert properties["keyed"]["x-kubernetes-list-map-keys"] == ["name"]
    assert properties["names"]["x-kubernetes-list-type"] == "set"


def test_a_map_keeps_the_schema_of_its_values(properties):
    assert properties["byName"]["additionalProperties"] == {"type": "string", "maxLength": 3}


def test_rules_become_validations_with_the_field_to_point_at():
    assert structural(Sample)["x-kubernetes-validations"] == [
        {"rule": "self.above > 3", "message": "must be above 3", "fieldPath": ".above"}
    ]


def test_no_titles_references_or_definitions_are_left():
    def keys(value):
        if isinstance(value, dict):
            yield from value
            for inner in value.values():
                yield from keys(inner)

    assert not {"title", "$ref", "$defs", "anyOf", "const"} & set(keys(structural(Sample)))


def test_an_open_part_keeps_unknown_fields():
    class Open(OpenPart):
        stream: bool = False
        """Streams."""

    assert structural(Open)["x-kubernetes-preserve-unknown-fields"] is True


class Endless(Documented):
    inner: "Endless | None" = None
    """Itself."""


class Union(Documented):
    value: int | Annotated[str, Field(max_length=3)]
    """Two types."""


class UnboundedText(Documented):
    text: str
    """No bound."""


class UnboundedList(Documented):
    entries: Annotated[list[int], Ordered()]
    """No bound."""


class ListWithoutMergeType(Documented):
    entries: Annotated[list[int], Field(max_length=3)]
    """No merge type."""


class UnboundedMap(Documented):
    entries: dict[str, int]
    """No bound."""


class NamedKeys(Documented):
    entries: Annotated[dict[Literal["a", "b"], int], Field(max_length=3)]
    """Keys of an enum."""


class Undescribed(Documented):
    value: int


@pytest.mark.parametrize(
    ("model", "problem"),
    [
        (Endless, r"\.inner: Endless contains itself"),
        (Union, r"\.value: a union of 2 types"),
        (UnboundedText, r"\.text: a string needs max_length"),
        (UnboundedList, r"\.entries: a list needs max_length"),
        (ListWithoutMergeType, r"\.entries: a list needs Keyed, Unique or Ordered"),
        (UnboundedMap, r"\.entries: a map needs max_length"),
        (NamedKeys, r"\.entries: propertyNames does not exist"),
        (Undescribed, r"\.value: a field needs a description"),
    ],
)
def test_what_cannot_be_said_is_refused_with_its_path(model, problem):
    with pytest.raises(NotStructural, match=problem):
        structural(model)
