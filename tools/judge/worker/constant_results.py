"""Parts of a reference's result beside its tensors: whole numbers, booleans and None, the same in every call.

A kernel gives tensors alone. Who calls it gets the rest as the reference gave it once, so nothing of it may depend on
values.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from ridgeline.problems.result_parts import TO_TENSOR, is_constant, refused_part
from ridgeline.tools.errors import BadReferenceError


def placed_parts(result: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """Give each part of a result that is no list, tuple or dict, in the order of its tensors, with its place: `[1]['y']`."""
    if isinstance(result, dict):
        entries = [(f"[{key!r}]", part) for key, part in result.items()]
    elif isinstance(result, list | tuple):
        entries = [(f"[{i}]", part) for i, part in enumerate(result)]
    else:
        yield place, result
        return
    for step, part in entries:
        yield from placed_parts(part, place + step)


class ConstantResults:
    """The parts without tensors of each kind of call's result, and the first of them that another call gave otherwise."""

    def __init__(self) -> None:
        self._first: dict[str, list[tuple[str, Any]]] = {}
        self._varying = ""

    def meet(self, kind: str, result: Any) -> None:
        """Take note of a call's result; only calls of one kind are compared.

        Raises:
            BadReferenceError: a part is something else, which a kernel can neither give nor leave out.
        """
        parts = [(place, part) for place, part in placed_parts(result) if not isinstance(part, torch.Tensor)]
        for place, part in parts:
            if place and not is_constant(part):  # without a place `flat_outputs` refuses it
                raise BadReferenceError.of_text(f"forward() returns {refused_part(part, place)}")
        first = self._first.setdefault(kind, parts)
        if not self._varying and first != parts:
            self._varying = _difference(first, parts)

    def refuse_varying(self) -> None:
        """Refuse a reference of which some call gave another number than the first.

        Raises:
            BadReferenceError: it did; the line says where, and what it gave.
        """
        if self._varying:
            raise BadReferenceError.of_text(self._varying)


def _difference(first: list[tuple[str, Any]], parts: list[tuple[str, Any]]) -> str:
    for (place, was), (other, now) in zip(first, parts, strict=False):
        if place == other and was != now:
            return f"forward() returns {was!r} as result{place} and then {now!r}: no kernel gives a number; {TO_TENSOR}"
    return "forward() returns a number or None for some values only: a kernel takes one form"
