"""The exponential of a matrix by scaling and squaring, its products added as plain sums are.

PyTorch sums a polynomial of few products before it squares. Who sums term by term, or divides two polynomials, loses other
last bits, and each squaring doubles what was lost before it.
"""

from __future__ import annotations

from typing import Any, TypeGuard

import torch

from ridgeline.tools.judge.worker.grading.limits.lanes import Lanes
from ridgeline.tools.records.precision import PLAIN_LANES

_TAYLOR_DEGREE = 12
_TAYLOR_NORM = 0.5
_PADE = (17297280.0, 8648640.0, 1995840.0, 277200.0, 25200.0, 1512.0, 56.0, 1.0)
"""The coefficients of degree 7 (Higham, 2005, table 2.3)."""
_PADE_NORM = 3.925724783138660
"""The largest norm at which that degree is exact in float32 (as Eigen and JAX have it)."""
_MOST_SQUARINGS = 64


def plain_exponential(name: str, given: dict[str, Any], lanes: Lanes) -> torch.Tensor | None:
    """Return what the exponential of matrices gives so; None for another operation, or where it would take too long.

    By the fewest lanes it is a Taylor sum, by more a quotient.
    """
    operand = given.get("self")
    if name != "linalg_matrix_exp" or not _is_real(operand):
        return None
    is_taylor = lanes.count == min(PLAIN_LANES)
    matrices = operand.reshape(-1, *operand.shape[-2:]).float()
    if lanes.product(matrices, matrices) is None:
        return None
    norms = matrices.abs().sum(1).amax(-1).nan_to_num()
    squarings = (
        (norms / (_TAYLOR_NORM if is_taylor else _PADE_NORM)).clamp(min=1).log2().ceil().clamp(max=_MOST_SQUARINGS)
    )
    scaled = matrices * (-squarings).exp2()[:, None, None]
    made = _taylor(scaled, lanes) if is_taylor else _quotient(scaled, lanes)
    for count in range(int(squarings.max())):
        made = _product(made, made, lanes).where((squarings > count)[:, None, None], made)
    return made.to(operand.dtype).reshape(operand.shape)


def _taylor(scaled: torch.Tensor, lanes: Lanes) -> torch.Tensor:
    identity = torch.eye(scaled.shape[-1])
    made = identity.expand_as(scaled)
    for degree in range(_TAYLOR_DEGREE, 0, -1):
        made = _product(scaled, made, lanes) / degree + identity
    return made


def _quotient(scaled: torch.Tensor, lanes: Lanes) -> torch.Tensor:
    square = _product(scaled, scaled, lanes)
    powers = [torch.eye(scaled.shape[-1]).expand_as(scaled), square, _product(square, square, lanes)]
    powers.append(_product(powers[2], square, lanes))
    even = sum((c * p for c, p in zip(_PADE[::2], powers, strict=True)), torch.zeros_like(scaled))
    odd = sum((c * p for c, p in zip(_PADE[1::2], powers, strict=True)), torch.zeros_like(scaled))
    odd = _product(scaled, odd, lanes)
    result: torch.Tensor = torch.linalg.solve_ex(even - odd, even + odd).result
    return result


def _product(first: torch.Tensor, second: torch.Tensor, lanes: Lanes) -> torch.Tensor:
    made = lanes.product(first, second)
    assert made is not None  # products of this form were asked for
    return made


def _is_real(operand: Any) -> TypeGuard[torch.Tensor]:
    return isinstance(operand, torch.Tensor) and operand.is_floating_point() and operand.is_cpu and operand.numel() > 0
