"""Symmetric matrices with other pairs of elements: some secret pairs change far, and a definite matrix stays as definite.

A definite matrix allows each pair by itself no more than some 1 / sqrt(size), which is below the gate of a loose class.
So secret pairs get a part of the largest value that they may have, sqrt(a_ii * a_jj), at the cost of all others.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

from ridgeline.tools.judge.worker.finite import is_finite
from ridgeline.tools.judge.worker.inputs.values.structure import (
    has_structural_zeros,
    is_binary,
    is_symmetric,
    is_without_structure,
    mirrored,
)

_OF_SECRET_PAIRS = 0.9
"""Of what all pairs give up: what secret ones get of their largest value. The rest lets each pair vary by itself."""
_GROUPS = 256
"""Secret groups whose members are all pairs, of two members at least: more than two keep pairs seen beside long rows."""
_LEAST_CORRELATED = 0.8
_LESS = 0.5  # of the share, in half of the draws
_LINE = (8.0, 32.0)
"""Range of a line's length, over which the links of two rows lose a factor e at each unit."""
_UNEVEN = 4  # gaps are powers of uniform numbers: few are most of the line
_LEAST_ROWS = 8
"""The fewest rows of a matrix that is made nearly singular."""
_BLOCK = 64
"""Rows that share secret directions in which a matrix is made small: of more a basis takes long to draw."""
_SMALL = 1 / 4, 1 / 2
"""Part of these directions that are small."""
_ROUNDING = 8  # last bits by which an element may be beyond what its diagonal allows


def may_be_definite(tensor: torch.Tensor) -> bool:
    """Return whether no two rows show that a symmetric matrix is neither definite nor semidefinite."""
    diagonal = tensor.diagonal(dim1=-2, dim2=-1)
    if not (bool((diagonal >= 0).all()) or bool((diagonal <= 0).all())):
        return False
    most = _largest(tensor) * (1 + _ROUNDING * torch.finfo(tensor.dtype).eps)
    return bool((tensor.abs() <= most).all())


def with_secret_pairs(tensor: torch.Tensor, generator: torch.Generator, *, share: float) -> torch.Tensor:
    """Return a symmetric matrix A off whose diagonal this share, or half, is replaced: as definite as A, with its diagonal.

    It is (1 - s) A + s / 10 A * (1 + E / (2 sqrt(n))) + 9/10 s R * C by elements, R the largest values sqrt(a_ii * a_jj). E is
    symmetric and uniform in -1 to 1: its largest eigenvalue is some 1.2 sqrt(n). C holds correlations: 1 on the diagonal, and
    for secret pairs, few or many, 0.64 to 1, of either sign where A has both. By Schur's theorem none is less definite than A.
    """
    size, wide = tensor.shape[-1], torch.promote_types(tensor.dtype, torch.float32)
    uniform = mirrored(torch.rand(tensor.shape, generator=generator, device=generator.device))
    share *= _LESS if bool(torch.rand((), generator=generator, device=generator.device) < 1 / 2) else 1
    varied = (1 - share) + share * (1 - _OF_SECRET_PAIRS) / (2 * math.sqrt(size)) * (2 * uniform - 1)
    changed = tensor.to(wide) * varied
    together = _linked(tensor, uniform) if has_structural_zeros(tensor) else _grouped(tensor, generator)
    together &= _shared(tensor, together, generator)
    sign = -1 if bool((tensor.diagonal(dim1=-2, dim2=-1) < 0).any()) else 1
    sizes = _LEAST_CORRELATED + (1 - _LEAST_CORRELATED) * _of_rows(tensor, generator)
    if bool((sign * tensor < 0).any()):
        sizes = torch.where(_of_rows(tensor, generator) < 1 / 2, -sizes, sizes)
    given = share * _OF_SECRET_PAIRS * sign * (sizes.unsqueeze(-1) * sizes.unsqueeze(-2))
    changed += torch.where(together, given * _largest(tensor), 0)
    changed.diagonal(dim1=-2, dim2=-1).copy_(tensor.diagonal(dim1=-2, dim2=-1))
    return changed.to(tensor.dtype)


def scaled_in_pairs(tensor: torch.Tensor, generator: torch.Generator, *, factors: tuple[float, float]) -> torch.Tensor:
    """Return a symmetric matrix each pair of whose elements has a factor of its own; one pair has the lowest."""
    least, most = factors
    drawn = mirrored(torch.rand(tensor.shape, generator=generator, device=generator.device)) * (most - least) + least
    row, column = torch.randint(tensor.shape[-1], (2,), generator=generator, device=generator.device)
    drawn[..., row, column] = drawn[..., column, row] = least
    return tensor * drawn.to(tensor.dtype)


def along_a_line(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return A * K by elements, K_ij = exp(-|p_i - p_j|) for secret places p on a line, in their order.

    Only neighbours are linked then, and where two places are far from each other two blocks are: a matrix made of it mixes
    slowly. K is positive definite with a diagonal of ones, so by Schur's theorem the product is as definite as A.
    """
    shortest, longest = _LINE
    length = shortest + (longest - shortest) * torch.rand((), generator=generator, device=generator.device)
    gaps = torch.rand(tensor.shape[-1], generator=generator, device=generator.device, dtype=torch.float64) ** _UNEVEN
    places = gaps.cumsum(0) * (length / gaps.sum())
    return tensor * torch.exp(-(places.unsqueeze(-1) - places).abs()).to(tensor.dtype)


def near_singular(
    tensor: torch.Tensor, generator: torch.Generator, *, size: float, is_made: bool = False
) -> torch.Tensor:
    """Return D S A S D for a symmetric matrix A that may be definite, as definite as it is and with its diagonal.

    S = I - Q (I - E) Q^T, Q secret orthonormal columns for a quarter to half of the rows, E numbers of which each is as much
    smaller than the one before, from 1 to 1 / size: no few steps of a solver see all of them. D is diagonal.

    Where the reference has `is_made` symmetric matrices of others, those others become so too: D S X, or X S D along the
    shorter dimension, whose products with themselves are nearly singular; of a square one its symmetric part, where that may
    be definite. They are sqrt(size) times as large then, so that a multiple of the identity that is added hides less.
    """
    more = math.sqrt(size) if is_made else 1.0
    if may_be_singular(tensor):
        return _symmetric_near_singular(tensor, generator, size) * more
    if not is_made or not _may_be_dependent(tensor):
        return tensor
    if tensor.shape[-1] == tensor.shape[-2]:
        half = mirrored((tensor + tensor.mT) / 2)
        if may_be_singular(half):
            return _symmetric_near_singular(half, generator, size) * more + (tensor - half)
    wide = tensor if tensor.shape[-2] <= tensor.shape[-1] else tensor.mT
    matrix = _shrinking(wide.shape[-2], generator, size)(wide.double().clone())
    was, now = (torch.linalg.vector_norm(t.double(), dim=-1, keepdim=True) for t in (wide, matrix))
    changed = (matrix * torch.where(now == 0, 1, more * was / now)).to(tensor.dtype)
    return (changed if wide is tensor else changed.mT).contiguous()


def _symmetric_near_singular(tensor: torch.Tensor, generator: torch.Generator, size: float) -> torch.Tensor:
    matrix = tensor.double()
    shrink = _shrinking(tensor.shape[-1], generator, size)
    for _ in range(2):  # the rows of A, then those of (S A)^T
        matrix = shrink(matrix.mT.contiguous())
    was, now = (t.double().diagonal(dim1=-2, dim2=-1) for t in (tensor, matrix))
    back = torch.where(now == 0, 1, was / now).abs().sqrt()
    return mirrored((matrix * back.unsqueeze(-1) * back.unsqueeze(-2)).to(tensor.dtype))


def _shrinking(rows: int, generator: torch.Generator, size: float) -> Callable[[torch.Tensor], torch.Tensor]:
    """Return what multiplies a matrix of so many rows, in float64, by a secret S from the left; it is written."""
    count = -(-rows // _BLOCK)
    each = rows // count
    device = generator.device
    order = torch.randperm(rows, generator=generator, device=device)[: count * each].view(count, each)
    least, most = _SMALL
    columns = max(1, int(each * (least + (most - least) * float(torch.rand((), generator=generator, device=device)))))
    drawn = torch.randn((count, each, columns), generator=generator, device=device, dtype=torch.float64)
    basis = torch.linalg.qr(drawn)[0]
    less = size ** -torch.linspace(0, 1, count * columns, dtype=torch.float64, device=device).view(columns, count).T
    blocks = torch.eye(each, dtype=torch.float64, device=device) - (basis * (1 - less).unsqueeze(-2)) @ basis.mT

    def shrink(matrix: torch.Tensor) -> torch.Tensor:
        matrix[..., order, :] = blocks @ matrix[..., order, :]
        return matrix

    return shrink


def _may_be_dependent(tensor: torch.Tensor) -> bool:
    """Return whether a tensor holds matrices whose rows, or columns, may nearly depend on each other."""
    if tensor.dim() < 2 or min(tensor.shape[-2:]) < _LEAST_ROWS or not tensor.numel():
        return False
    return is_without_structure(tensor)


def may_be_singular(tensor: torch.Tensor) -> bool:
    """Return whether a tensor holds symmetric matrices of which none is shown not to be definite: no mask, no zeros to keep."""
    if tensor.dim() < 2 or not tensor.is_floating_point() or tensor.shape[-1] < _LEAST_ROWS or not tensor.numel():
        return False
    if not (is_symmetric(tensor) and is_finite(tensor)) or is_binary(tensor) or has_structural_zeros(tensor):
        return False
    return bool((tensor.diagonal(dim1=-2, dim2=-1) != 0).any()) and may_be_definite(tensor)


def with_one_pair(tensor: torch.Tensor, index: tuple[int, ...], generator: torch.Generator) -> torch.Tensor | None:
    """Return a symmetric matrix in one row of which a secret pair is changed far; None where the row has no pair.

    Where it may be definite, the rows and columns of both lose half of their size first, all but the diagonal: as much of
    each other they may have then.
    """
    *batch, row = index
    matrix = tensor[tuple(batch)]
    others = matrix[row] != 0
    others[row] = False
    places = others.nonzero().flatten()
    if not places.numel():
        return None
    column = int(places[torch.randint(places.numel(), (), generator=generator, device=generator.device)])
    changed = tensor.clone()
    one = changed[tuple(batch)]
    if not may_be_definite(matrix):
        one[row, column] *= 1 / 2
        one[column, row] = one[row, column]
        return changed
    most = torch.sqrt(matrix[row, row].abs()) * torch.sqrt(matrix[column, column].abs())
    pair = matrix[row, column]
    for place in (row, column):
        one[place] *= math.sqrt(1 / 2)
        one[:, place] = one[place]
        one[place, place] = matrix[place, place]
    more = 0 if bool(2 * pair.abs() > most) else torch.copysign(most, pair)
    one[row, column] = one[column, row] = (pair + more) / 2
    return changed


def _largest(tensor: torch.Tensor) -> torch.Tensor:
    """Return the largest size that a definite matrix with this diagonal may have in each place."""
    roots = torch.sqrt(tensor.diagonal(dim1=-2, dim2=-1).abs().to(torch.promote_types(tensor.dtype, torch.float32)))
    return roots.unsqueeze(-1) * roots.unsqueeze(-2)


def _of_rows(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    return torch.rand(tensor.shape[:-1], generator=generator, device=generator.device)


def _grouped(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return the pairs of rows that are in one secret group."""
    groups = _of_rows(tensor, generator).argsort(-1) % max(1, min(tensor.shape[-1] // 2, _GROUPS))
    return groups.unsqueeze(-1) == groups.unsqueeze(-2)


def _shared(tensor: torch.Tensor, together: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return a secret share of pairs: from that of one row to all, every order of magnitude as often.

    Few pairs are not seen by who samples a matrix to learn whether it is a usual one.
    """
    share = tensor.shape[-1] ** -torch.rand((), generator=generator, device=generator.device)
    alone = torch.eye(tensor.shape[-1], dtype=torch.bool, device=tensor.device)
    coins = torch.where(together | alone, _of_rows(tensor, generator).unsqueeze(-2), 2.0).amin(-1)  # alike in a group
    least = torch.where((together & ~alone).any(-1), coins, 2.0).amin(-1, keepdim=True)
    chosen = coins <= torch.maximum(share, least)
    return chosen.unsqueeze(-1) & chosen.unsqueeze(-2)


def _linked(tensor: torch.Tensor, uniform: torch.Tensor) -> torch.Tensor:
    """Return secret pairs of rows that have an element in common beside zeros, each row in one at most."""
    away = torch.eye(tensor.shape[-1], dtype=torch.bool, device=tensor.device) | (tensor == 0)
    first = torch.where(away, 2.0, uniform).argmin(-1, keepdim=True)
    chosen = torch.zeros_like(away).scatter_(-1, first, value=True)
    return chosen & chosen.mT & ~away
