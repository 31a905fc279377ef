"""The settings of one device kind that a problem runs on."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from ridgeline.problems.model_calls import Section
from ridgeline.problems.syntax import DTYPE_NAMES, is_finite

# The words of tools/records/vocabulary.py, which this room may not import.
TargetKind = Literal["cpu", "cuda"]


def _as_size(value: object) -> int | float | str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        if is_finite(value):
            return value
        raise PydanticCustomError("size_range", "must be a number that a float can hold")
    if isinstance(value, str) and value in DTYPE_NAMES:
        return value
    raise PydanticCustomError("size_type", "must be a number or a type's name")


# One type instead of a union of two, whose messages would name both members.
Size = Annotated[
    int | float | str,
    PlainValidator(_as_size),
    WithJsonSchema({"anyOf": [{"type": "number"}, {"enum": list(DTYPE_NAMES)}]}),
]


class TargetSettings(Section):
    """One device kind that the problem runs on."""

    sizes: dict[str, Size] = Field(
        default_factory=dict, description="New values of the reference's top-level constants on this device."
    )


def both_targets() -> dict[TargetKind, TargetSettings]:
    """Return the targets of a problem that names none: both, with the reference's own sizes."""
    return {"cpu": TargetSettings(), "cuda": TargetSettings()}
