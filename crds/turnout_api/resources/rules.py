"""Rules that one object can check about itself, each written once and held in two places.

Problem: the API server judges in CEL, everything else (`turnout validate`, `turnout up`, the operator with its webhook
off) judges in Python, and two texts of one rule drift apart. Idea: a rule is a method of the type that it speaks of; the
decorator carries the CEL text and the message, the method's body is the same thing in Python, the method's name is the
rule's name. `Part` runs all rules of a type after its fields are valid, and puts them into the generated schema. One
table of cases in the tests runs against both.

Invariants: a rule sees only its own part of the object; a broken rule is reported with the message written here, in
pydantic as an error whose `type` is the rule's name, in the API server as the message of the validation.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, GetJsonSchemaHandler, ValidationError, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, InitErrorDetails, PydanticCustomError, core_schema

from turnout_api.durations import DURATION_PATTERN, format_duration, parse_duration

VALIDATIONS = "x-kubernetes-validations"
LIST_TYPE = "x-kubernetes-list-type"
LIST_KEYS = "x-kubernetes-list-map-keys"
UNKNOWN = "x-kubernetes-preserve-unknown-fields"
DOCUMENT_DEFAULTS = "x-turnout-defaults-documented"
"""On a type whose defaults belong in the descriptions but not into stored objects; the converter takes it out again."""

_WHOLE_WORDS = frozenset({"id", "ttl", "url"})


def camel(name: str) -> str:
    """The spelling in YAML: `public_url` → `publicURL`, `min_input_tokens` → `minInputTokens`, `from_` → `from`."""
    first, *rest = name.rstrip("_").split("_")
    return first + "".join(word.upper() if word in _WHOLE_WORDS else word.capitalize() for word in rest)


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: its name, the CEL text, what a person is told, the field to point at, and the same in Python."""

    name: str
    cel: str
    message: str
    field: str
    holds: Callable[[Any], bool]


def rule(*, cel: str, message: str, field: str = "") -> Callable[[Callable[[Any], bool]], Rule]:
    """Makes a method the rule that is named after it. `field` is the YAML name of the field to point at."""

    def make(holds: Callable[[Any], bool]) -> Rule:
        return Rule(name=_pascal(holds.__name__), cel=cel, message=message, field=field, holds=holds)

    return make


class Part(BaseModel):
    """A part of a resource: camelCase in YAML, snake_case in Python, unknown fields refused, rules held."""

    model_config = ConfigDict(
        alias_generator=camel,
        populate_by_name=True,
        extra="forbid",
        frozen=True,
        use_attribute_docstrings=True,
        ignored_types=(Rule,),
    )
    checks: ClassVar[tuple[Rule, ...]] = ()

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: object) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        cls.checks = tuple(
            value for base in reversed(cls.__mro__) for value in vars(base).values() if isinstance(value, Rule)
        )

    @model_validator(mode="after")
    def _hold_rules(self) -> Self:
        broken = [_broken(rule, self) for rule in self.checks if not rule.holds(self)]
        if broken:
            raise ValidationError.from_exception_data(type(self).__name__, broken)
        return self

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        json_schema = handler(schema)
        if cls.checks:
            handler.resolve_ref_schema(json_schema)[VALIDATIONS] = [_validation(rule) for rule in cls.checks]
        return json_schema


class OpenPart(Part):
    """A part under `when`: unknown fields are kept, so that `resolve` can refuse them by name.

    A condition that is lost silently makes its rule match more than it should: pruning would do just that.
    """

    model_config = ConfigDict(extra="allow")

    @property
    def unknown_fields(self) -> tuple[str, ...]:
        """Names that no condition has, as they were written."""
        return tuple(self.model_extra or ())


class StatusPart(BaseModel):
    """A part of a status: written by the operator, and read back by older and newer ones, so unknown fields are ignored."""

    model_config = ConfigDict(
        alias_generator=camel, populate_by_name=True, extra="ignore", frozen=True, use_attribute_docstrings=True
    )


@dataclass(frozen=True, slots=True)
class Span:
    """For `Annotated[float, Span("1s", "1h")]`: a duration between two others. Text in YAML, seconds in Python."""

    low: str
    high: str

    @property
    def message(self) -> str:
        """What a person is told when a duration is outside."""
        return f"must be a duration from {self.low} to {self.high}, such as {self.low}"

    def seconds(self, text: str) -> float:
        """Seconds of `text`. Raises ValueError when it is no duration or outside."""
        value = parse_duration(text)
        if not parse_duration(self.low) <= value <= parse_duration(self.high):
            raise PydanticCustomError("duration_range", self.message)
        return value

    def __get_pydantic_core_schema__(self, source: type, handler: GetCoreSchemaHandler) -> CoreSchema:
        del source, handler
        return core_schema.no_info_after_validator_function(
            self.seconds,
            core_schema.str_schema(max_length=32),
            serialization=core_schema.plain_serializer_function_ser_schema(format_duration, when_used="json"),
        )

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        del schema, handler
        cel = f"duration(self) >= duration('{self.low}') && duration(self) <= duration('{self.high}')"
        return {
            "type": "string",
            "pattern": DURATION_PATTERN,
            "maxLength": 32,
            VALIDATIONS: [{"rule": cel, "message": self.message}],
        }


@dataclass(frozen=True, slots=True)
class Keyed:
    """A list whose entries are told apart by fields: no two have the same. Server-side apply merges such a list by entry."""

    keys: tuple[str, ...]

    def __get_pydantic_core_schema__(self, source: type, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._unique, handler(source))

    def _unique(self, entries: list[BaseModel]) -> list[BaseModel]:
        seen: set[tuple[object, ...]] = set()
        for entry in entries:
            key = tuple(getattr(entry, name) for name in self.keys)
            if key in seen:
                shown = ", ".join(f"{camel(name)} {value}" for name, value in zip(self.keys, key, strict=True))
                raise PydanticCustomError("duplicate", "Duplicate value: {shown} is there twice", {"shown": shown})
            seen.add(key)
        return entries

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return handler(schema) | {LIST_TYPE: "map", LIST_KEYS: [camel(key) for key in self.keys]}


@dataclass(frozen=True, slots=True)
class Unique:
    """A list used as a set: no entry twice."""

    def __get_pydantic_core_schema__(self, source: type, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._unique, handler(source))

    @staticmethod
    def _unique(entries: list[object]) -> list[object]:
        for index, entry in enumerate(entries):
            if entry in entries[:index]:
                raise PydanticCustomError("duplicate", "Duplicate value: {shown} is there twice", {"shown": str(entry)})
        return entries

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return handler(schema) | {LIST_TYPE: "set"}


@dataclass(frozen=True, slots=True)
class Ordered:
    """A list whose order means something: whoever applies it owns it whole."""

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return handler(schema) | {LIST_TYPE: "atomic"}


def _broken(rule: Rule, part: Part) -> InitErrorDetails:
    error = PydanticCustomError(rule.name, rule.message.replace("{", "{{").replace("}", "}}"))
    return InitErrorDetails(type=error, loc=(rule.field,) if rule.field else (), input=part)


def _validation(rule: Rule) -> dict[str, str]:
    validation = {"rule": rule.cel, "message": rule.message}
    return validation | ({"fieldPath": f".{rule.field}"} if rule.field else {})


def _pascal(name: str) -> str:
    return re.sub(r"_?([a-z0-9]+)", lambda word: word[1].capitalize(), name)
