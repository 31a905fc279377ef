"""Outputs much of which vanishes beside the rest of its row: no limit sees what becomes of that."""

from __future__ import annotations

from ridgeline.tools.judge.worker.grading.outputs.expected import Expected

_VANISHING = 2.0**-20
"""Part of the largest number of its row below which a number of the output is next to nothing."""
_MUCH = 1 / 16
"""Share of an output of which that is true."""
_LOOKED_AT = 1 << 22
"""Numbers of an output that are looked at, in rows at even distances: copies of a large output may not fit beside it."""


def vanishes(expected: Expected) -> bool:
    """Return whether much of a floating-point output is next to nothing beside its row, but not 0 as what is masked is."""
    values = expected.values
    if expected.is_exact or not values.numel():
        return False
    rows = values.reshape(-1, values.shape[-1] if values.dim() else 1)
    rows = rows[:: values.numel() // _LOOKED_AT + 1].abs()
    largest = rows.nan_to_num(0.0, 0.0, 0.0).amax(-1, keepdim=True)
    tiny = (rows > 0) & (rows < largest * _VANISHING)
    return int(tiny.sum()) > _MUCH * rows.numel()
