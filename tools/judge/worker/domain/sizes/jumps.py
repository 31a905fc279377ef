"""Jumps of an output: rows that another choice, another rounding or another comparison gives as a whole.

One row of sixteen that jumps at tf32's last bits moves an output by a quarter of itself. It does so thousands of times less
often at fp32's, so that a few such rows say nothing of how well conditioned the others are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ridgeline.tools.judge.worker.dispatch_modes import TorchDispatchMode, noticed
from ridgeline.tools.judge.worker.grading.excuses.random_rounding import may_jump

_MOST_ROWS = 1 / 8
"""Part of an output's rows that may jump."""


def jumps(run: Callable[[], object]) -> bool:
    """Return whether anything in a run jumps where last bits decide: a choice, a rounding, a comparison."""
    return noticed(run, _Jumps()).is_any


class _Jumps(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch has no types there
    """Notes whether an operation jumps."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch has no types there
        self.is_any = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self.is_any = self.is_any or may_jump(func, (args, kwargs), result)
        return result


def without_jumps(output: torch.Tensor, expected: torch.Tensor) -> torch.Tensor:
    """Return an output, as it is expected in the few rows that are furthest off; whole numbers and bools as they are."""
    if not output.is_floating_point() or not output.numel():
        return output
    width = output.shape[-1] if output.dim() > 1 else 1
    rows, wanted = output.reshape(-1, width), expected.reshape(-1, width)
    count = int(_MOST_ROWS * len(rows))
    off = torch.linalg.vector_norm(rows - wanted, dim=1)
    if not count or not bool(torch.isfinite(off).all()):
        return output
    changed = rows.clone()
    furthest = off.topk(count).indices
    changed[furthest] = wanted[furthest].to(changed.dtype)
    return changed.view(output.shape)
