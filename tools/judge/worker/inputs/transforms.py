"""Other values for an input, made from its own: transforms of the whole input, and one row that differs.

Order is the caller's affair; symmetry and structural zeros stay.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

import torch

from ridgeline.tools.judge.worker.finite import is_finite
from ridgeline.tools.judge.worker.inputs.structure import has_structural_zeros, is_binary, is_symmetric, mirrored
from ridgeline.tools.judge.worker.inputs.symmetry import along_a_line, near_links, with_one_pair

_ROW_SCALE_BITS = 5.0  # row scales are 2^U(-5, 5)
_INTEGER_RANGE = 4  # small integers are exact in every class down to fp8
_OUTLIERS = (190.0, 250.0)  # times max(1, rms): no constant brings exp of it and of usual values into fp32
_OUTLIER_ROWS = 0.25
_OUTLIER_ROOM = 64  # an outlier is at most the type's largest number over this
_SEGMENTS = 16  # a tweaked input of one dimension differs in this part of it
_RUNS = 64  # a run is this part of a row
_SCATTERED = 1 / 8  # of a row's elements
_HANDFUL = 16  # places of a whole tensor, from one on
_ROW_RUNS = (8, 16)  # where there are as many rows
_COLUMN_RUNS = (2, 4)
_COMBS = 1 / 2  # of the runs of columns: with a stride
_AT_HOME = 1 / 2  # of the sets, of square matrices
_TEETH = 8  # places of a comb, at least
_LEAST_STRIDE = 1 / 3  # as a power of the longest
_OF_POWERS = 3 / 4  # of the strides: a power of two, as lanes, threads and channels are
_LIFTS = (3.0, 9.0)  # times the rms: of a favoured run of columns, and of one column beside that
_LEAST_KEPT = 8  # numbers of a row, or along another dimension, of which two stay as they are
_NEAR = 1024  # whole numbers are lifted to within this part of their distance from the end
_OWN_SPIKES = 1 / 4  # of the runs of rows


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
    lowest = 0 if low >= 0 else -_INTEGER_RANGE
    return lowest, 1 if lowest == 0 and high <= 1 else _INTEGER_RANGE


def blocked(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return the tensor lifted in blocks: see `lift_blocks`. A symmetric matrix keeps neighbours alone, other masks stay."""
    if tensor.dim() == 0 or tensor.numel() == 0:
        return tensor
    if is_binary(tensor):
        return near_links(tensor, generator) if is_symmetric(tensor) else tensor
    if is_symmetric(tensor):
        return along_a_line(tensor, generator)
    changed = tensor.clone()
    has_zeros = has_structural_zeros(tensor)
    lift_blocks(changed, generator, rms=_rms(tensor), has_negative=bool((tensor < 0).any()), has_zeros=has_zeros)
    return changed


def lift_blocks(
    view: torch.Tensor, generator: torch.Generator, *, rms: float, has_negative: bool, has_zeros: bool
) -> None:
    """Add numbers of their own to runs of rows and to runs of columns (the last dimension), in place.

    In every run of rows a further run of columns, up to half of them, is far above the others, and one column of it as far
    above that: the same column in most. Others are as far below, or nearer to zero where no number is negative. Half of
    these runs are combs, whose columns lie a stride apart over the whole row, and so do some rows that are above the
    others. The rows that the one column is the place of favour another one, so that a square matrix mixes slowly. In half
    of the sets each run of its rows favours its own columns instead, none above the others: it mixes slowly without a peak.

    Draws, and all other transforms, are alike at each place: no column is the largest in most rows, large numbers never lie
    together or in one lane, and a matrix mixes at once. Where no number is negative, none becomes so. Zeros that are
    structure stay.
    """
    count, width = view.shape[:-1].numel(), view.shape[-1]
    flat = view.view(count, width) if view.is_contiguous() else view.reshape(count, width).clone()
    was_zero = flat == 0 if has_zeros else None
    rows, columns = (_runs(size, within, generator) for size, within in ((count, _ROW_RUNS), (width, _COLUMN_RUNS)))
    # one transfer from a GPU for all of them
    draws = torch.rand(
        6 + len(columns) + 20 * len(rows), generator=generator, device=generator.device, dtype=torch.float64
    ).tolist()
    draw = iter(draws).__next__
    commons = {sign: int(width * draw()) for sign in (-1, 1)}
    low = -1.0 if has_negative else 0.0
    for first, end in columns:
        flat[:, first:end] += rms * (low + (1 - low) * draw())
    least, most = _LIFTS
    flat[_comb(count, int(count * draw()), draw)] += rms * least
    is_at_home = draw() < _AT_HOME and view.dim() > 1 and view.shape[-2] == width
    for first, end in rows:
        flat[first:end] += rms * (low + (1 - low) * draw())
        if is_at_home:
            flat[first:end, first % width : first % width + end - first] += rms * (least + (most - least) * draw())
            continue
        for sign, common in commons.items():
            is_own, own = draw() < _OWN_SPIKES or first <= common < end, int(width * draw())
            spike = own if is_own else common
            for places in (_run_or_comb(width, spike, draw), slice(spike, spike + 1)):
                times = least + (most - least) * draw()
                if sign > 0 or has_negative:
                    flat[first:end, places] += sign * rms * times
                else:
                    flat[first:end, places] *= 2**-times
    if was_zero is not None:
        flat[was_zero] = 0
    if flat.data_ptr() != view.data_ptr():
        view.copy_(flat.view(view.shape))


def lift_whole(view: torch.Tensor, generator: torch.Generator, *, ends: tuple[int, int]) -> None:
    """Bring whole numbers near their smallest, and others near their largest, in places of every run of rows, in place.

    These are a run of columns or a comb. Numbers stay within their range, so that labels, pixels and indices remain such.
    Two of each row stay as they are: in a row of one number alone the rounding of a mean would decide.
    """
    count, width = view.shape[:-1].numel(), view.shape[-1]
    flat = view.reshape(count, width)
    rows, kept = _runs(count, _ROW_RUNS, generator), two_places(flat, generator)
    numbers = flat.gather(-1, kept)
    draws = torch.rand(12 * len(rows), generator=generator, device=generator.device, dtype=torch.float64).tolist()
    draw = iter(draws).__next__
    for first, end in rows:
        for bound in ends:
            part = flat[first:end, _run_or_comb(width, int(width * draw()), draw)]
            part.copy_((bound - torch.div(bound - part.long(), _NEAR, rounding_mode="trunc")).to(part.dtype))
    flat.scatter_(-1, kept, numbers)
    if flat.data_ptr() != view.data_ptr():
        view.copy_(flat.view(view.shape))


def lifted_whole(tensor: torch.Tensor, generator: torch.Generator, *, ends: tuple[int, int]) -> torch.Tensor:
    """Return whole numbers lifted in blocks: see `lift_whole`."""
    changed = tensor.clone()
    lift_whole(changed, generator, ends=ends)
    return changed


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


def _run_or_comb(width: int, place: int, draw: Callable[[], float]) -> slice:
    """Return a run of places, of half of them at most, or a comb about as often: with a given place among them."""
    length = math.ceil(max(1.0, width / 2) ** draw())
    start = min(max(0, place - int(length * draw())), width - length)
    return _comb(width, place, draw) if draw() < _COMBS else slice(start, start + length)


def _comb(size: int, place: int, draw: Callable[[], float]) -> slice:
    """Return places a secret stride apart, mostly a power of two, among them a given one: eight, where there are as many."""
    stride = max(1.0, size / _TEETH) ** (_LEAST_STRIDE + (1 - _LEAST_STRIDE) * draw())
    step = 2 ** round(math.log2(stride)) if draw() < _OF_POWERS else int(stride)
    return slice(place % step, size, step)


def _runs(size: int, within: tuple[int, int], generator: torch.Generator) -> list[tuple[int, int]]:
    """Return the secret runs of so many places, (first, end): their number lies within a range where there is room."""
    least, most = (min(count, size) for count in within)
    n_runs = int(torch.randint(least, most + 1, (), generator=generator, device=generator.device))
    inner = torch.randperm(size - 1, generator=generator, device=generator.device)[: n_runs - 1] + 1
    return list(pairwise([0, *inner.sort().values.tolist(), size]))


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


def _outlier_columns(rows: torch.Tensor, generator: torch.Generator, *, on_diagonal: bool) -> torch.Tensor:
    count, width = rows.shape
    if on_diagonal:
        return (torch.arange(count, device=rows.device) % width).unsqueeze(1)  # symmetric and definite it stays
    return torch.randint(width, (count, 1), generator=generator, device=generator.device)


def _outlier_values(tensor: torch.Tensor, shape: torch.Size, generator: torch.Generator) -> torch.Tensor:
    """Return values far beyond the tensor's own, negative ones too where it has any."""
    has_negative = bool(((tensor < 0) & torch.isfinite(tensor)).any()) and not is_symmetric(tensor)
    return outlier_values(tensor.dtype, shape, _rms(tensor), generator, has_negative=has_negative)


def _rms(tensor: torch.Tensor) -> float:
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
            return _with_one_scaled(changed, index)
        if is_symmetric(other):
            changed.mT[index] = other.mT[index]
    changed[index] = other[index]
    return changed


def _with_one_scaled(tensor: torch.Tensor, index: tuple[int, ...]) -> torch.Tensor:
    """Return a symmetric matrix with one row and its column halved: as definite as it was."""
    tensor[index] *= 0.5
    tensor.mT[index] *= 0.5
    return tensor


def random_index(shape: Sequence[int], generator: torch.Generator) -> tuple[int, ...]:
    """Return a random place in a tensor of this shape."""
    return tuple(int(torch.randint(size, (), generator=generator, device=generator.device)) for size in shape)
