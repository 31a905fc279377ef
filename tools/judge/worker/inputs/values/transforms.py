"""Other values for an input, made from its own: transforms of the whole input, and one row that differs.

Order is the caller's affair; symmetry and structural zeros stay.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from ridgeline.tools.judge.worker.finite import is_finite
from ridgeline.tools.judge.worker.inputs.values.structure import has_structural_zeros, is_binary, is_symmetric, mirrored
from ridgeline.tools.judge.worker.inputs.values.symmetry import with_one_pair

_ROW_SCALE_BITS = 5.0  # row scales are 2^U(-5, 5)
_INTEGER_RANGE = 4  # small integers are exact in every class down to fp8
_FAINT = 2.0**-20
"""Size of what is faint beside its own: a product of two such numbers is 2^-40 of what it was."""
_FAINT_IN_HALF = 2.0**-6
"""The same where the type ends at 2^-24."""
_OUTLIERS = (190.0, 250.0)  # times max(1, rms): no constant brings exp of it and of usual values into fp32
_OUTLIER_ROWS = 0.25
_OUTLIER_ROOM = 64  # an outlier is at most the type's largest number over this
_LIFTS = (95.0, 125.0)
"""Added to all numbers of a row: exp of each is beyond fp32, and their differences keep 17 bits behind the point."""
_LIFTED_ROWS = 1 / 8
"""Part of the rows that are lifted, one at least."""
_LEAST_BITS = 20
"""Bits of a type whose lifted numbers keep their differences."""
_SEGMENTS = 16  # a tweaked input of one dimension differs in this part of it
_RUNS = 64  # a run is this part of a row
_SCATTERED = 1 / 8  # of a row's elements
_HANDFUL = 16  # places of a whole tensor, from one on
_LEAST_KEPT = 8  # numbers of a row, or along another dimension, of which two stay as they are


def shifted(tensor: torch.Tensor, _generator: torch.Generator) -> torch.Tensor:
    """Return 3x + 2; zeros stay zero where they are structure (a triangular matrix)."""
    moved = tensor * 3 + 2
    return torch.where(tensor == 0, tensor, moved) if has_structural_zeros(tensor) else moved


def row_scaled(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return every row (the last dimension) times its own power of two."""
    scale = row_scales(tensor, generator)
    return tensor * (scale * scale.mT) if is_symmetric(tensor) else tensor * scale


def row_scales(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return a random power of two for every row, for every element where there are no rows."""
    shape = (*tensor.shape[:-1], 1) if tensor.dim() > 1 else tensor.shape
    bits = torch.rand(shape, generator=generator, device=generator.device) * 2 * _ROW_SCALE_BITS - _ROW_SCALE_BITS
    return torch.exp2(bits).to(tensor.dtype)


def near_one(tensor: torch.Tensor, _generator: torch.Generator, *, power: float) -> torch.Tensor:
    """Return sign(x) |x|^power: with a small power every number but 0 is near one in size, and keeps order and symmetry."""
    return torch.copysign(tensor.abs().pow(power), tensor)


def narrowed(tensor: torch.Tensor, generator: torch.Generator, *, size: float) -> torch.Tensor:
    """Return the mean + e x each number's difference from it; masks and zeros that are structure stay.

    `size`, a power of two, says how small e is at least: 1/2, 1/4 and so on to 1 / size for as many rows each, in a secret
    order; the last of a matrix that is symmetric, of few rows for one at least, and where there are no rows.
    """
    if not tensor.numel() or not is_finite(tensor) or is_binary(tensor):
        return tensor
    zeros = (tensor == 0) if has_structural_zeros(tensor) else None
    mean = (tensor if zeros is None else tensor[~zeros]).mean(dtype=torch.float64)
    parts = torch.tensor(1 / size, dtype=torch.float64, device=tensor.device)
    if tensor.dim() > 1 and not is_symmetric(tensor):
        most, rows = max(1, round(math.log2(size))), tensor.shape[:-1].numel()
        places = torch.randperm(rows, generator=generator, device=generator.device)
        parts = torch.exp2((places * most // rows - most).double()).view(*tensor.shape[:-1], 1)
    moved = (mean + (tensor.double() - mean) * parts).to(tensor.dtype)
    return moved if zeros is None else torch.where(zeros, tensor, moved)


def silent(
    tensor: torch.Tensor, share: float, *, at_end: bool, number: float = 0.0, is_faint: bool = False
) -> torch.Tensor:
    """Return a tensor that is zero, or another number, but for a share of every dimension: at its beginning, or at its end.

    `is_faint`: beyond that share it is itself times a small power of two instead. What it multiplies there is scaled, not gone.
    """
    counts = [max(1, math.ceil(share * size)) for size in tensor.shape]
    kept = tuple(slice(-count, None) if at_end else slice(count) for count in counts)
    faint = _FAINT if torch.finfo(tensor.dtype).tiny < _FAINT**2 else _FAINT_IN_HALF
    quiet = tensor * faint if is_faint else torch.full_like(tensor, number)
    quiet[kept] = tensor[kept]
    return quiet


def whole_numbers(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return small whole numbers of the same sign and range as the tensor's."""
    finite = None if is_finite(tensor) else torch.isfinite(tensor)
    known = tensor if finite is None else tensor[finite]
    if not known.numel():
        return tensor
    lowest, highest = whole_range(*map(float, torch.aminmax(known)))
    drawn = torch.randint(
        lowest, highest + 1, tensor.shape, generator=generator, dtype=tensor.dtype, device=generator.device
    )
    whole = drawn if finite is None else torch.where(finite, drawn, tensor)
    if is_symmetric(tensor):
        whole = mirrored(whole)
    return torch.where(tensor == 0, tensor, whole) if has_structural_zeros(tensor) else whole


def whole_range(low: float, high: float) -> tuple[int, int]:
    """Return the smallest and the largest whole number in place of values between `low` and `high`."""
    largest = 1 if low >= -1 and high <= 1 else _INTEGER_RANGE  # a cosine of 4 is none
    return 0 if low >= 0 else -largest, largest


def two_places(tensor: torch.Tensor, generator: torch.Generator, dim: int = -1) -> torch.Tensor:
    """Return two secret places of each row (the last dimension), or along another one; none of less than eight."""
    size = tensor.shape[dim]
    lines = list(tensor.shape)
    lines[dim] = 1
    first = torch.randint(size, lines, generator=generator, device=generator.device)
    if size < _LEAST_KEPT:
        return first.narrow(dim, 0, 0)
    away = torch.randint(1, size, lines, generator=generator, device=generator.device)
    return torch.cat((first, (first + away) % size), dim)


def with_outliers(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return the tensor with one large element at a random place of some rows."""
    if tensor.dim() == 0 or tensor.numel() == 0 or is_binary(tensor):
        return tensor
    rows = tensor.reshape(-1, tensor.shape[-1])
    columns = _outlier_columns(rows, generator, on_diagonal=is_symmetric(tensor))
    there = rows.gather(1, columns)
    values = _outlier_values(tensor, there.shape, generator)
    is_chosen = torch.rand(there.shape, generator=generator, device=generator.device) < _OUTLIER_ROWS
    is_chosen[random_index((len(rows),), generator)] = True
    is_fixed = ~torch.isfinite(there) | ((there == 0) if has_structural_zeros(tensor) else torch.zeros_like(is_chosen))
    return rows.scatter(1, columns, torch.where(is_chosen & ~is_fixed, values, there)).view(tensor.shape)


def has_rows_to_lift(tensor: torch.Tensor) -> bool:
    """Return whether whole rows may be lifted: not of a symmetric matrix, nor where the type keeps little of differences."""
    if tensor.dim() == 0 or tensor.numel() == 0 or not holds_lifted(tensor.dtype):
        return False
    return not is_binary(tensor) and not is_symmetric(tensor)


def holds_lifted(dtype: torch.dtype) -> bool:
    """Return whether a type keeps the differences of numbers that are lifted."""
    return dtype.is_floating_point and torch.finfo(dtype).eps <= 2.0**-_LEAST_BITS


def with_lifted_rows(tensor: torch.Tensor, generator: torch.Generator, *, dims: int) -> torch.Tensor:
    """Return the tensor with a number of its own added to all of some rows; a row has the last `dims` dimensions."""
    if not has_rows_to_lift(tensor):
        return tensor
    count = tensor.shape[:-dims].numel()
    is_chosen = torch.rand(count, generator=generator, device=generator.device) < _LIFTED_ROWS
    is_chosen[random_index((count,), generator)] = True
    lifted = tensor.clone()
    lift_rows(lifted, is_chosen.nonzero(), generator, dims=dims, has_zeros=has_structural_zeros(tensor))
    return lifted


def lift_rows(
    view: torch.Tensor, chosen: torch.Tensor, generator: torch.Generator, *, dims: int, has_zeros: bool
) -> None:
    """Add a number of its own to all of each chosen row; zeros that are structure stay."""
    low, high = _LIFTS
    of_rows = view.shape[:-dims]
    lifts = torch.zeros(of_rows.numel(), dtype=view.dtype, device=view.device)
    drawn = torch.rand(chosen.shape, generator=generator, device=generator.device) * (high - low) + low
    lifts[chosen] = drawn.to(view.dtype)
    lifts = lifts.view(*of_rows, *[1] * min(dims, view.dim()))
    view.add_(lifts * (view != 0) if has_zeros else lifts)


def _outlier_columns(rows: torch.Tensor, generator: torch.Generator, *, on_diagonal: bool) -> torch.Tensor:
    count, width = rows.shape
    if on_diagonal:
        return (torch.arange(count, device=rows.device) % width).unsqueeze(1)  # symmetric and definite it stays
    return torch.randint(width, (count, 1), generator=generator, device=generator.device)


def _outlier_values(tensor: torch.Tensor, shape: torch.Size, generator: torch.Generator) -> torch.Tensor:
    """Return values far beyond the tensor's own, negative ones too where it has any."""
    has_negative = bool(((tensor < 0) & torch.isfinite(tensor)).any()) and not is_symmetric(tensor)
    return outlier_values(tensor.dtype, shape, rms_of(tensor), generator, has_negative=has_negative)


def rms_of(tensor: torch.Tensor) -> float:
    """Return the root mean square, with 0 in place of what is not finite."""
    known = torch.nan_to_num(tensor, nan=0.0, posinf=0.0, neginf=0.0)
    summed_in = torch.promote_types(tensor.dtype, torch.float32)
    return float(torch.linalg.vector_norm(known, dtype=summed_in)) / math.sqrt(tensor.numel())


def outlier_values(
    dtype: torch.dtype, shape: torch.Size, rms: float, generator: torch.Generator, *, has_negative: bool
) -> torch.Tensor:
    """Return values far beyond those of a tensor with this rms, of either sign where it has negative ones."""
    low, high = _OUTLIERS
    sizes = torch.rand(shape, generator=generator, device=generator.device) * (high - low) + low
    largest = min(torch.finfo(dtype).max, torch.finfo(sizes.dtype).max)
    sizes = (sizes * max(1.0, rms)).clamp_max(largest / _OUTLIER_ROOM)
    is_negative = torch.rand(shape, generator=generator, device=generator.device) < 0.5
    return (torch.where(is_negative, -sizes, sizes) if has_negative else sizes).to(dtype)


def parts(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return which elements to replace: whole rows, an eighth of others' elements, a run of a 64th in each of the rest.

    Who samples a row to learn whether it changed finds some, and takes others for what they were.
    """
    rows = tensor.reshape(-1, tensor.shape[-1] if tensor.dim() else 1)
    count, width = rows.shape
    kind, start = (torch.rand(count, 1, generator=generator, device=generator.device) for _ in range(2))
    scattered = torch.rand(rows.shape, generator=generator, device=generator.device) < _SCATTERED
    length = max(1, width // _RUNS)
    first = (start * (width - length + 1)).long()
    places = torch.arange(width, device=generator.device)
    run = (places >= first) & (places < first + length)
    chosen = torch.where(kind < 2 / 3, scattered, run) | (kind < 1 / 3)
    return chosen.view(tensor.shape)


def few_or_many(shape: torch.Size, generator: torch.Generator) -> torch.Tensor:
    """Return places of rows: half of the time a handful, else of each row from one to all, each order of magnitude as often.

    Who samples a tensor, or each row, to learn whether it is a usual one takes one with few such places for it.
    """
    is_few, in_all = torch.rand(2, generator=generator, device=generator.device)
    rows, width = shape
    in_row = width ** -torch.rand((rows, 1), generator=generator, device=generator.device)
    share = torch.where(is_few < 1 / 2, _HANDFUL**in_all / (rows * width), in_row)
    return torch.rand(shape, generator=generator, device=generator.device) < share


def with_one_slice(tensor: torch.Tensor, other: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return the tensor with one random row of `other`, one element where there are no rows."""
    if tensor.dim() != 1 or tensor.numel() == 0:
        return with_one_row(tensor, other, generator)
    changed = tensor.clone()
    index = random_index(tensor.shape, generator)
    changed[index] = other[index]
    return changed


def with_one_run(tensor: torch.Tensor, other: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return the tensor with a few elements of `other` that follow each other in one random row.

    A sample of a few elements of every row rarely meets them. A symmetric matrix stays one as in `with_one_row`; of one of
    floating-point values that are no mask a pair changes.
    """
    if tensor.dim() == 0 or tensor.numel() == 0 or is_symmetric(tensor):
        is_paired = tensor.dim() > 1 and tensor.is_floating_point() and not is_binary(tensor)
        index = random_index(tensor.shape[:-1], generator) if is_paired else ()
        paired = with_one_pair(tensor, index, generator) if is_paired else None
        return with_one_row(tensor, other, generator) if paired is None else paired
    changed = tensor.clone()
    row = random_index(tensor.shape[:-1], generator)
    length = -(-tensor.shape[-1] // _RUNS)
    (start,) = random_index((tensor.shape[-1] - length + 1,), generator)
    changed[row][start : start + length] = other[row][start : start + length]
    return changed


def with_one_row(tensor: torch.Tensor, other: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return the tensor with one random row of `other`, a segment of it where there are no rows.

    A symmetric matrix gets the row's column too. One of floating-point values that are no mask has both halved instead: as
    definite as it was.
    """
    if tensor.dim() == 0 or tensor.numel() == 0:
        return other
    changed = tensor.clone()
    if tensor.dim() == 1:
        length = -(-tensor.numel() // _SEGMENTS)
        (start,) = random_index((tensor.numel() - length + 1,), generator)
        changed[start : start + length] = other[start : start + length]
        return changed
    index = random_index(tensor.shape[:-1], generator)
    if is_symmetric(tensor):
        if tensor.is_floating_point() and not is_binary(tensor):
            return scaled_at(tensor, index, 0.5)
        if is_symmetric(other):
            changed.mT[index] = other.mT[index]
    changed[index] = other[index]
    return changed


def scaled_at(tensor: torch.Tensor, index: tuple[int, ...], factor: float) -> torch.Tensor:
    """Return a symmetric matrix with one row and its column times a factor: as definite as it was."""
    changed = tensor.clone()
    changed[index] *= factor
    changed.mT[index] *= factor
    return changed


def random_index(shape: Sequence[int], generator: torch.Generator) -> tuple[int, ...]:
    """Return a random place in a tensor of this shape."""
    return tuple(int(torch.randint(size, (), generator=generator, device=generator.device)) for size in shape)
