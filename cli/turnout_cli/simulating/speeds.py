"""The speeds file of `turnout simulate`: how fast each node runs each of its models."""

from math import inf
from pathlib import Path
from typing import Annotated

import yaml
from pydantic import AliasGenerator, BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from turnout_cli.simulating.machine import ModelSpeed
from turnout_cli.sources import text_of, why_unread

_Rate = Annotated[float, Field(gt=0)]
_Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class SpeedsError(Exception):
    """A file that is no speeds file; the message names what is wrong."""


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", alias_generator=AliasGenerator(validation_alias=to_camel))


class _Speed(_Section):
    fixed_seconds: _Seconds = 0.0
    input_tokens_per_second: _Rate = inf
    output_tokens_per_second: _Rate = inf
    pixel_steps_per_second: _Rate = inf
    load_seconds: _Seconds = 0.0
    unload_seconds: _Seconds = 0.0
    noise: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Standard deviation of a request's time, as a share of it."""


class _Speeds(_Section):
    nodes: dict[str, dict[str, _Speed]]


def read_speeds(path: Path) -> dict[str, dict[str, ModelSpeed]]:
    """Node → local ID → speed. Raises SpeedsError."""
    try:
        read = _Speeds.model_validate(yaml.safe_load(text_of(path)))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise SpeedsError(f"{path} cannot be read: {why_unread(error)}") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise SpeedsError(f"{path}: {where or 'the file'}: {first['msg']}") from error
    return {node: {model: _speed(speed) for model, speed in models.items()} for node, models in read.nodes.items()}


def _speed(given: _Speed) -> ModelSpeed:
    return ModelSpeed(
        fixed_s=given.fixed_seconds,
        input_tokens_per_s=given.input_tokens_per_second,
        output_tokens_per_s=given.output_tokens_per_second,
        pixel_steps_per_s=given.pixel_steps_per_second,
        load_s=given.load_seconds,
        unload_s=given.unload_seconds,
        noise=given.noise,
    )
