"""Chunks of an output: rows, so many at once that the passes over them stay near the processor."""

from __future__ import annotations

import torch

_CHUNK = 1 << 18  # elements compared at once: 2 MiB in float64, so that the passes over them stay in a core's cache
_CHUNK_ON_GPU = 1 << 24  # 128 MiB in float64: passes over less would end before the next one is asked for


def rows_at_once(values: torch.Tensor) -> int:
    """Return how many rows a chunk has, one at least."""
    return max(chunk_of(values) // width_of(values), 1)


def chunk_of(values: torch.Tensor) -> int:
    """Return how many elements a chunk has."""
    return _CHUNK_ON_GPU if values.is_cuda else _CHUNK


def width_of(values: torch.Tensor) -> int:
    """Return the length of a row."""
    return max(values.shape[-1] if values.dim() else 1, 1)
