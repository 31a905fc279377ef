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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Self, TypeAlias, get_args, get_origin, get_type_hints

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
Decoder: TypeAlias = Callable[[Any], Any]
"""Takes a value of JSON and gives it as a type has it. Raises TypeError or ValueError for one that is none."""


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
        decoders = _decoders(cls)  # type: ignore[arg-type]  # mypy asks whether its instances are hashable
        return cls(**{k: _decoded(k, decoders[k], v) for k, v in _object(data).items() if k in decoders})


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
def _decoders(record: type[Record]) -> dict[str, Decoder]:
    """Return what decodes each field. Resolving the annotations takes ten times as long as decoding five fields."""
    hints = get_type_hints(record)
    return {f.name: _decoder(hints[f.name]) for f in dataclasses.fields(record)}


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


def _decoded(name: str, decoder: Decoder, value: Any) -> Any:
    try:
        return decoder(value)
    except TypeError as error:
        raise TypeError(f"{name}: {error}") from None


def _decoder(hint: Any) -> Decoder:
    """Return what decodes values of a type. The type is looked at once, and not for each of an archive's values."""
    origin, args = get_origin(hint), get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return _union(args)
    if origin is tuple:
        return _tuple(args)
    if origin in (dict, Mapping):
        return _mapping(_decoder(args[1]))
    if isinstance(hint, type) and issubclass(hint, Record | JsonForm):
        return hint.from_json
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return lambda value: hint(_text(value))
    return _SCALARS.get(hint, _as_it_is)


def _as_it_is(value: Any) -> Any:
    return value


def _scalar(kind: type) -> Decoder:
    def decode(value: Any) -> Any:
        if not isinstance(value, kind):
            raise TypeError(f"{str(value)[:40]} is no {kind.__name__}")
        return value

    return decode


_NOT_FINITE = ("inf", "-inf", "nan")


def _float(value: Any) -> Any:
    if value in _NOT_FINITE:
        return float(value)
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise TypeError(f"{str(value)[:40]} is no float")
    if isinstance(value, int) and value.bit_length() > sys.float_info.max_exp:
        raise ValueError("a number is too large for a float")
    return value


def _int(value: Any) -> Any:
    if isinstance(value, bool):  # of Python's whole numbers
        raise TypeError(f"{value} is no int")
    return _whole(value)


_text, _whole = _scalar(str), _scalar(int)
_SCALARS: dict[Any, Decoder] = {str: _text, int: _int, float: _float, bool: _scalar(bool)}


def _union(args: Sequence[Any]) -> Decoder:
    """Return what gives a value as the first of the types that takes it."""
    takes_none = types.NoneType in args
    *others, last = (_decoder(arg) for arg in args if arg is not types.NoneType)

    def decode(value: Any) -> Any:
        if value is None and takes_none:
            return None
        for other in others:
            with contextlib.suppress(TypeError, ValueError):
                return other(value)
        return last(value)

    return decode


def _object(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise TypeError(f"{str(value)[:40]} is no object")
    return value


def _mapping(decoder: Decoder) -> Decoder:
    return lambda value: {k: decoder(v) for k, v in _object(value).items()}


def _tuple(args: tuple[Any, ...]) -> Decoder:
    is_of_one_type = len(args) == 2 and args[1] is Ellipsis
    decoders = [_decoder(arg) for arg in args[: 1 if is_of_one_type else None]]

    def decode(value: Any) -> tuple[Any, ...]:
        # A text's letters, or an object's keys, would pass for a tuple's values.
        if not isinstance(value, list | tuple):
            raise TypeError(f"{str(value)[:40]} is no list")
        if is_of_one_type:
            return tuple(map(decoders[0], value))
        return tuple(decoder(v) for decoder, v in zip(decoders, value, strict=True))

    return decode
