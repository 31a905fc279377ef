"""The contract between the two ends of a runner's socket: what both the parent and the untrusted process import.

docs/runner-protocol.md describes the protocol; `native/host_wire.h` is its other implementation.
"""

from __future__ import annotations

from dataclasses import dataclass

TRITON_READY = "module_warmer: the GPU is open"
"""Printed by the process that compiles a module's Triton kernels, before anything of the candidate runs."""
TRITON_KERNELS = "triton.zip"
"""File beside a candidate's library that holds its Triton kernels, when they were compiled ahead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopTime:
    """How long one loop took: by the parent's clock around the request, and by the side's own clock."""

    parent_s: float
    own_s: float
