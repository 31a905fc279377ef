"""The size of a dtype's element, the strides of a tensor and what they span, for those who must not import torch."""

from __future__ import annotations

import math
from collections.abc import Sequence

_NAMES_OF_SIZE = {
    1: "bool int8 uint8 float8_e4m3fn float8_e5m2",
    2: "float16 bfloat16 int16 uint16",
    4: "float32 int32 uint32",
    8: "float64 int64 uint64 complex64",
    16: "complex128",
}
_SIZES = {name: size for size, names in _NAMES_OF_SIZE.items() for name in names.split()}


def element_bytes(dtype: str) -> int:
    """Return the size of one element: 4 for "float32".

    Raises:
        KeyError: torch has no such dtype, or no kernel is given one.
    """
    return _SIZES[dtype]


def contiguous_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of a row-major tensor."""
    return tuple(math.prod(shape[place + 1 :]) for place in range(len(shape)))


def spanned_elements(shape: Sequence[int], strides: Sequence[int]) -> int:
    """Return how many elements lie between the first and the last one of a strided tensor, both included."""
    if 0 in shape:
        return 0
    return 1 + sum((n - 1) * stride for n, stride in zip(shape, strides, strict=True))


def spanned_bytes(shape: Sequence[int], strides: Sequence[int], dtype: str) -> int:
    """Return how many bytes a strided tensor spans, its first and last element included.

    Raises:
        KeyError: torch has no such dtype, or no kernel is given one.
    """
    return spanned_elements(shape, strides) * element_bytes(dtype)
