"""Views of tensors as shape, strides and offset, without data, and the view operations of an exported graph."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ridgeline.graph.offline.program.ir import NotCovered
from ridgeline.tools.records.dtypes import contiguous_strides


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeView:
    """A node seen through views. A computed node counts as contiguous in its own shape."""

    base: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0

    def broadcast(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return this view's strides over a larger shape: 0 where it repeats."""
        padded = len(shape) - len(self.shape)
        strides = [0] * padded
        for size, stride, wanted in zip(self.shape, self.strides, shape[padded:], strict=True):
            if size not in (1, wanted):
                raise NotCovered(f"broadcast of {self.shape} to {shape}")
            strides.append(0 if size == 1 else stride)
        return tuple(strides)


def is_contiguous(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Tell whether elements lie in order without gaps; a dimension of size 1 may have any stride."""
    return all(n == 1 or s == c for n, s, c in zip(shape, strides, contiguous_strides(shape), strict=True))


def collapse(shape: tuple[int, ...], strides: tuple[int, ...]) -> list[tuple[int, int]]:
    """Return (size, stride) of the fewest dimensions that walk the same elements in the same order, outermost first."""
    merged: list[tuple[int, int]] = []
    for size, stride in zip(shape, strides, strict=True):
        if size == 1:
            continue
        if merged and merged[-1][1] == stride * size:
            merged[-1] = (merged[-1][0] * size, stride)
        else:
            merged.append((size, stride))
    return merged


def apply_view(operation: str, view: NodeView, args: list[Any], shape: tuple[int, ...]) -> NodeView | None:
    """Return the view that a view operation makes of another, or None when `operation` is none.

    `args` are the operation's arguments after the tensor, `shape` is its result's.
    """
    if operation in ("view", "reshape", "_unsafe_view"):
        return _reshape(view, shape)
    if operation in ("unsqueeze", "squeeze"):
        return _reshape_ones(view, shape)
    if operation == "expand":
        return replace(view, shape=shape, strides=view.broadcast(shape))
    if operation in ("permute", "transpose", "t"):
        return _permute(operation, view, args)
    if operation in ("slice", "select"):
        return _cut(operation, view, args, shape)
    return None


def _reshape(view: NodeView, shape: tuple[int, ...]) -> NodeView:
    if is_contiguous(view.shape, view.strides):
        return replace(view, shape=shape, strides=contiguous_strides(shape))
    return _reshape_ones(view, shape)


def _reshape_ones(view: NodeView, shape: tuple[int, ...]) -> NodeView:
    """Insert or drop dimensions of size 1, or split and merge dimensions as far as strides allow."""
    kept = collapse(view.shape, view.strides)
    strides: list[int] = []
    for size in reversed(shape):
        if size == 1:
            strides.append(0)
            continue
        if not kept or kept[-1][0] % size:
            raise NotCovered(f"view of {view.shape} as {shape}")
        total, stride = kept.pop()
        strides.append(stride)
        if total > size:
            kept.append((total // size, stride * size))
    return replace(view, shape=shape, strides=tuple(reversed(strides)))


def _permute(operation: str, view: NodeView, args: list[Any]) -> NodeView:
    rank = len(view.shape)
    order = list(range(rank))
    if operation == "permute":
        order = [d % rank for d in args[0]]
    else:
        first, second = (args[0] % rank, args[1] % rank) if operation == "transpose" else (0, rank - 1)
        order[first], order[second] = order[second], order[first]
    return replace(view, shape=tuple(view.shape[d] for d in order), strides=tuple(view.strides[d] for d in order))


def _cut(operation: str, view: NodeView, args: list[Any], shape: tuple[int, ...]) -> NodeView:
    rank = len(view.shape)
    dim = (args[0] if args else 0) % rank
    start = int((args[1] if len(args) > 1 else 0) or 0)
    start = max(start + view.shape[dim], 0) if start < 0 else min(start, view.shape[dim])
    offset = view.offset + start * view.strides[dim]
    if operation == "select":
        strides = view.strides[:dim] + view.strides[dim + 1 :]
    else:
        step = int(args[3]) if len(args) > 3 else 1
        strides = (*view.strides[:dim], view.strides[dim] * step, *view.strides[dim + 1 :])
    return replace(view, shape=shape, strides=strides, offset=offset)


def dimension_map(source: tuple[int, ...], shape: tuple[int, ...], strides: tuple[int, ...]) -> list[int | None]:
    """Return, for each dimension of `shape`, the dimension of `source` that it walks."""
    own = contiguous_strides(source)
    if shape == source and is_contiguous(shape, strides):
        return list(range(len(shape)))
    found: list[int | None] = []
    for size, stride in zip(shape, strides, strict=True):
        matches = [d for d, n in enumerate(source) if n == size and own[d] == stride and n > 1]
        if stride and size > 1 and not matches:
            raise NotCovered(f"a computed tensor of shape {source} seen as {shape}")
        found.append(matches[0] if stride and matches else None)
    return found
