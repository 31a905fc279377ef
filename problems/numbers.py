"""Numbers that somebody states: true and false are none, although Python counts with them."""

from __future__ import annotations

from pydantic import BeforeValidator
from pydantic_core import PydanticCustomError


def _no_bool(value: object) -> object:
    if isinstance(value, bool):
        raise PydanticCustomError("float_type", "must be a number, not true or false")
    return value


NoBool = BeforeValidator(_no_bool)
"""Refuses true and false for a number of a model that converts values, since pydantic takes them for 1 and 0 there."""
