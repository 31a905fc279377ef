"""Frozen records that convert to JSON and back."""

from __future__ import annotations

import dataclasses
import functools
import math
import types
import typing
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Self, get_args, get_origin, get_type_hints


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A frozen record; `to_json` and `from_json` round-trip through plain dicts, lists and scalars."""

    def to_json(self) -> dict[str, Any]:
        """Return the record as JSON-ready values (enumerations and infinities become strings, tuples lists)."""
        return {f.name: _encode(getattr(self, f.name)) for f in dataclasses.fields(self)}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """Rebuild a record from `to_json`'s values; keys that the record does not have are ignored."""
        hints = _field_types(cls)  # type: ignore[arg-type]  # mypy asks whether its instances are hashable
        return cls(**{k: _decode(hints[k], v) for k, v in data.items() if k in hints})


@functools.cache
def _field_types(record: type[Record]) -> dict[str, Any]:
    """Return each field's type. Resolving the annotations takes ten times as long as decoding a record of five fields."""
    hints = get_type_hints(record)
    return {f.name: hints[f.name] for f in dataclasses.fields(record)}


def _encode(value: Any) -> Any:
    if isinstance(value, Record):
        return value.to_json()
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, tuple | list):
        return [_encode(v) for v in value]
    if isinstance(value, dict):
        return {str(k): _encode(v) for k, v in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)  # JSON has no infinity; a reference may take one as a scalar
    return value


def _decode(hint: Any, value: Any) -> Any:
    if value is None:
        return None
    origin = get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        return _decode(next(a for a in get_args(hint) if a is not type(None)), value)
    if origin is tuple:
        args = get_args(hint)
        if len(args) == 2 and args[1] is Ellipsis:
            return tuple(_decode(args[0], v) for v in value)
        return tuple(_decode(a, v) for a, v in zip(args, value, strict=True))
    if origin is dict:
        return {k: _decode(get_args(hint)[1], v) for k, v in value.items()}
    if isinstance(hint, type) and issubclass(hint, Record):
        return hint.from_json(value)
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return hint(value)
    if hint is float and isinstance(value, str):
        return float(value)
    return value
