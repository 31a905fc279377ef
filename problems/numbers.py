"""Numbers that somebody states: true and false are none, although Python counts with them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator
from pydantic_core import PydanticCustomError


def _no_bool(value: object) -> object:
    if isinstance(value, bool):
        raise PydanticCustomError("float_type", "must be a number, not true or false")
    return value


NoBool = BeforeValidator(_no_bool)
"""Refuses true and false for a number of a model that converts values, since pydantic takes them for 1 and 0 there."""


def _as_version(value: object) -> object:
    if type(value) is not int:  # true and 1.0 equal 1
        raise PydanticCustomError("int_type", "must be a whole number")
    return value


Version = Annotated[Literal[1], BeforeValidator(_as_version)]
"""The version of a problem file's format."""
