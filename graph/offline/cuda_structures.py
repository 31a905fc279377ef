"""The structures a row-wise kernel for a GPU can be composed of."""

from __future__ import annotations

from enum import StrEnum


class CudaStructure(StrEnum):
    """One way to organise the work; the value is how a source's header names it."""

    VECTOR = "vector-loads"
    WARP = "warp-per-row"
    CLUSTER = "cluster-per-row"
    SPLIT = "split-rows"
    GRID = "grid-per-row"
    REGISTERS = "register-row"
    SHARED = "shared-row"
    ASYNC = "async-copies"
    ONLINE = "online-softmax"
    MOMENTS = "single-pass-variance"
    STREAM = "streaming-accesses"
    PERSIST = "persistent-blocks"
    FAST = "fast-math"


S = CudaStructure

CONFLICTS: tuple[frozenset[str], ...] = (
    # who shares a row
    *(frozenset({a, b}) for a, b in ((S.WARP, S.CLUSTER), (S.WARP, S.SPLIT), (S.WARP, S.GRID))),
    *(frozenset({a, b}) for a, b in ((S.CLUSTER, S.SPLIT), (S.CLUSTER, S.GRID), (S.SPLIT, S.GRID))),
    # nothing of a row outlives a kernel
    *(frozenset({S.SPLIT, s}) for s in (S.REGISTERS, S.SHARED, S.ASYNC, S.PERSIST)),
    # one place for the row
    frozenset({S.REGISTERS, S.SHARED}),
    frozenset({S.SHARED, S.ASYNC}),
    # a bulk copy serves a whole block; a grid that waits for itself is persistent already
    frozenset({S.WARP, S.ASYNC}),
    frozenset({S.GRID, S.PERSIST}),
)
