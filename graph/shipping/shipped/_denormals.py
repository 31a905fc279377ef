"""A thread's treatment of denormals, which loading a kernel must not change for its caller."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch


@contextlib.contextmanager
def kept_denormals() -> Iterator[None]:
    """Leave this thread's treatment of denormals as it is while a library is loaded.

    g++ before 13 links code into every library of -ffast-math that sets it when the library is loaded.
    """
    flushed = flushes_denormals()
    yield
    if flushes_denormals() and not flushed:
        torch.set_flush_denormal(False)


def flushes_denormals() -> bool:
    """Say whether this thread takes denormals for zero."""
    return bool((torch.tensor([1e-310], dtype=torch.float64) * 1.0 == 0).item())
