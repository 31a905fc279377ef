"""Frozen records that convert to JSON and back."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
import sys
import types
import typing
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Self, TypeAlias, get_args, get_origin, get_type_hints

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A frozen record; `to_json` and `from_json` round-trip through plain dicts, lists and scalars."""

    def to_json(self) -> dict[str, Any]:
        """Return the record as JSON-ready values (enumerations and infinities become strings, tuples lists)."""
        return {f.name: _encode(getattr(self, f.name)) for f in dataclasses.fields(self)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild a record from `to_json`'s values; keys that the record does not have are ignored.

        Raises:
            AttributeError, KeyError, TypeError, ValueError: a value is not what `to_json` wrote.
        """
        hints = _field_types(cls)  # type: ignore[arg-type]  # mypy asks whether its instances are hashable
        return cls(**{k: _decode_field(k, hints[k], v) for k, v in _object(data).items() if k in hints})


class JsonForm(ABC):
    """A frozen value whose JSON is something else than an object of its fields: a field of a record."""

    __slots__ = ()

    @abstractmethod
    def to_json(self) -> Json:
        """Return the value as JSON."""

    @classmethod
    @abstractmethod
    def from_json(cls, data: Json) -> Self:
        """Rebuild a value from `to_json`'s; a base class returns one of its subclasses.

        Raises:
            ValueError: `data` is none.
        """


@functools.cache
def _field_types(record: type[Record]) -> dict[str, Any]:
    """Return each field's type. Resolving the annotations takes ten times as long as decoding a record of five fields."""
    hints = get_type_hints(record)
    return {f.name: hints[f.name] for f in dataclasses.fields(record)}


def _encode(value: Any) -> Any:
    if isinstance(value, Record | JsonForm):
        return value.to_json()
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, tuple | list):
        return [_encode(v) for v in value]
    if isinstance(value, Mapping):
        return {str(k): _encode(v) for k, v in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)  # JSON has no infinity; a reference may take one as a scalar
    return value


_NOT_FINITE = ("inf", "-inf", "nan")
_SCALARS: dict[type, Any] = {str: str, int: int, float: int | float, bool: bool}


def _decode_field(name: str, hint: Any, value: Any) -> Any:
    try:
        return _decode(hint, value)
    except TypeError as error:
        raise TypeError(f"{name}: {error}") from None


def _decode(hint: Any, value: Any) -> Any:
    origin = get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        args = get_args(hint)
        if value is None and types.NoneType in args:
            return None
        return _decode_union([a for a in args if a is not types.NoneType], value)
    if hint is Any:
        return value
    if origin is tuple:
        return _decode_tuple(get_args(hint), value)
    if origin in (dict, Mapping):
        return {k: _decode(get_args(hint)[1], v) for k, v in _object(value).items()}
    if isinstance(hint, type) and issubclass(hint, Record | JsonForm):
        return hint.from_json(value)
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return hint(_decode(str, value))
    return _decode_scalar(hint, value)


def _decode_scalar(hint: Any, value: Any) -> Any:
    if hint is float and value in _NOT_FINITE:
        return float(value)
    if hint in _SCALARS and not isinstance(value, _SCALARS[hint]):
        raise TypeError(f"{str(value)[:40]} is no {hint.__name__}")
    if hint is float and isinstance(value, int) and value.bit_length() > sys.float_info.max_exp:
        raise ValueError("a number is too large for a float")
    return value


def _decode_union(hints: Sequence[Any], value: Any) -> Any:
    """Return the value as the first of the types that takes it."""
    for hint in hints[:-1]:
        with contextlib.suppress(TypeError, ValueError):
            return _decode(hint, value)
    return _decode(hints[-1], value)


def _object(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise TypeError(f"{str(value)[:40]} is no object")
    return value


def _decode_tuple(hints: tuple[Any, ...], value: Any) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):  # a text's letters, or an object's keys, would pass for a tuple's values
        raise TypeError(f"{str(value)[:40]} is no list")
    if len(hints) == 2 and hints[1] is Ellipsis:
        return tuple(_decode(hints[0], v) for v in value)
    return tuple(_decode(hint, v) for hint, v in zip(hints, value, strict=True))
