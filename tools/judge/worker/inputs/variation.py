"""Other values for the inputs that `get_inputs` always gives alike, tables, masks, lengths, zeros, and for drawn masks.

A kernel has to compute from these inputs too. Other values stay within what such an input may hold: between its
smallest and its largest value, in its order, with its zeros and its symmetry, and, but for chains, no index above the one in
its place.
Running the reference shows whether it takes them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch

from ridgeline.tools.judge.worker.finite import is_finite
from ridgeline.tools.judge.worker.inputs.values.orders import ways_in_order
from ridgeline.tools.judge.worker.inputs.values.permutations import exchanged, exchanged_in_rows, mixed_up, uniform
from ridgeline.tools.judge.worker.inputs.values.structure import (
    are_distinct,
    are_permuted_rows,
    has_structural_zeros,
    is_mask,
    is_symmetric,
    mirrored,
    range_without_sentinels,
    row_axis,
    sentinels_of,
)
from ridgeline.tools.judge.worker.inputs.values.symmetry import may_be_definite, scaled_in_pairs, with_secret_pairs
from ridgeline.tools.judge.worker.inputs.values.transforms import few_or_many

Way = Callable[[torch.Tensor, torch.Generator], torch.Tensor]
_MaskWay = Callable[..., torch.Tensor]  # also with `share`

_FLIPPED = 0.125  # of a mask's elements: enough to show in every row, and rarely a whole row
_FEW_FLIPPED = 1 / 64
FACTORS = ((0.5, 1.0), (0.91, 1.0), (0.99, 1.0), (1.0, 1.1))
"""Ranges of the factors of what is scaled. A reference that asserts a lower bound takes a narrower one, or larger values."""
_PAIRED = ((0.5, FACTORS[0]), (0.1, FACTORS[1]))
"""Shares of a definite matrix off its diagonal that are replaced, by secret pairs above all, with the factors of its rows."""
_LARGEST_OF_ZEROS = (1.0, 0.01)


def ways_to_vary(tensor: torch.Tensor, order: int) -> tuple[Way, ...]:
    """Return the ways in which such an input may be changed, the likeliest first; none where no other value is safe."""
    if tensor.numel() == 0:
        return ()
    if is_mask(tensor):
        return ways_of_masks(tensor)
    if tensor.is_floating_point() and not is_finite(tensor):
        return ()  # a mask of infinities
    if order:
        return ways_in_order(tensor, order)
    return _ways_of_floats(tensor) if tensor.is_floating_point() else _ways_of_integers(tensor)


def ways_of_masks(mask: torch.Tensor) -> tuple[Way, ...]:
    """Return the ways in which a mask may be changed: elements flipped, only set, only cleared; then fewer of them.

    One of the type bool loses its symmetry by that, one of numbers keeps it: it may be a matrix.
    """
    ways: list[_MaskWay] = [_with_more] if not bool(mask.all()) else []
    ways += [_with_fewer] if bool(mask.any()) else []
    wide = ways if len(ways) == 1 else [_flipped, *ways]
    shares = ((_FLIPPED, wide), (_FEW_FLIPPED, ways))
    found = tuple(functools.partial(way, share=share) for share, each in shares for way in each)
    return found if mask.dtype == torch.bool else tuple(functools.partial(_as_numbers, way=way) for way in found)


def _ways_of_floats(tensor: torch.Tensor) -> tuple[Way, ...]:
    low, high = float(tensor.min()), float(tensor.max())
    if low == high == 0:
        return uniform_ways()
    scalings = tuple(functools.partial(scaled, factors=factors) for factors in FACTORS)
    if low == high == 1 and tensor.dim() > 1:
        return (functools.partial(_with_zeros, share=_FLIPPED), *scalings)  # a mask, or else weights
    if is_symmetric(tensor):
        return _ways_of_symmetric(tensor)
    return scalings if low == high or has_structural_zeros(tensor) else (mixed_elements, mixed_rows, *scalings[1:])


def _ways_of_symmetric(tensor: torch.Tensor) -> tuple[Way, ...]:
    both = tuple(functools.partial(scaled_on_both_sides, factors=factors) for factors in FACTORS)
    if may_be_definite(tensor):
        return (*(functools.partial(_paired, share=share, factors=factors) for share, factors in _PAIRED), *both)
    return (*(functools.partial(scaled_in_pairs, factors=factors) for factors in FACTORS), *both)


def uniform_ways() -> tuple[Way, ...]:
    """Return the ways to vary zeros: nothing is known of such an input, and zeros alone are no structure."""
    return tuple(functools.partial(_uniform, largest=largest) for largest in _LARGEST_OF_ZEROS)


def _ways_of_integers(tensor: torch.Tensor) -> tuple[Way, ...]:
    low, high = range_without_sentinels(tensor) or (0, 0)
    if low == high:
        return ways_below(low, least=0 if tensor.numel() > 1 else 1)  # 0 of a count may leave nothing to compute
    if are_distinct(tensor):
        return (exchanged, exchanged_in_rows, mixed_up)
    if are_permuted_rows(tensor):
        return (exchanged_in_rows,)
    return functools.partial(lowered, low=low), _lowered_by_one


def ways_below(value: int, *, least: int) -> tuple[Way, ...]:
    """Return the ways to lower numbers that are this value or more, ever less: a reference may assert a lower bound."""
    bounds = (least, 1, -(-value // 2), value - value // 8, value - 1)
    return tuple(
        functools.partial(lowered, low=low) for low in sorted({each for each in bounds if least <= each < value})
    )


def _with_one(
    tensor: torch.Tensor, value: float, generator: torch.Generator, *, kept: torch.Tensor | None = None
) -> torch.Tensor:
    """Write a value into one secret place of several but those kept: a reference that refuses it shows that in every draw."""
    if tensor.numel() < 2:
        return tensor
    flat = tensor.reshape(-1)
    places = None if kept is None else (~kept).flatten().nonzero().flatten()
    count = flat.numel() if places is None else places.numel()
    chosen = torch.randint(count, (1,), generator=generator, device=generator.device)
    flat[chosen if places is None else places[chosen]] = value
    return flat.view(tensor.shape)


def with_its_rows(changed: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Return a changed mask whose rows are all set, or all clear, only where they were so before.

    A softmax over nothing is NaN, by chance: a reference takes some draws then, and refuses others.
    """
    if mask.dim() == 0:
        return changed
    axis = row_axis(mask)
    is_lost = (changed.all(axis, keepdim=True) & ~mask.all(axis, keepdim=True)) | (
        mask.any(axis, keepdim=True) & ~changed.any(axis, keepdim=True)
    )
    return torch.where(is_lost, mask, changed)


def _chosen(tensor: torch.Tensor, generator: torch.Generator, share: float) -> torch.Tensor:
    """Return a secret share of a tensor's elements: one at least of as many as the share is of."""
    chosen = (uniform(tensor.shape, generator) < share).flatten()
    if chosen.numel() * share >= 1:
        chosen[torch.randint(chosen.numel(), (1,), generator=generator, device=generator.device)] = True
    return chosen.view(tensor.shape)


def _flipped(tensor: torch.Tensor, generator: torch.Generator, *, share: float) -> torch.Tensor:
    return with_its_rows(tensor ^ _chosen(tensor, generator, share), tensor)


def _with_more(tensor: torch.Tensor, generator: torch.Generator, *, share: float) -> torch.Tensor:
    return with_its_rows(tensor | _chosen(tensor, generator, share), tensor)


def _with_fewer(tensor: torch.Tensor, generator: torch.Generator, *, share: float) -> torch.Tensor:
    return with_its_rows(tensor & ~_chosen(tensor, generator, share), tensor)


def _as_numbers(tensor: torch.Tensor, generator: torch.Generator, *, way: Way) -> torch.Tensor:
    """Return a mask of numbers changed as one of the type bool is, and as symmetric as it was."""
    changed = way(tensor != 0, generator).to(tensor.dtype)
    return mirrored(changed) if is_symmetric(tensor) else changed


def _with_zeros(tensor: torch.Tensor, generator: torch.Generator, *, share: float) -> torch.Tensor:
    return torch.where(_chosen(tensor, generator, share), torch.zeros_like(tensor), tensor)


def _uniform(tensor: torch.Tensor, generator: torch.Generator, *, largest: float) -> torch.Tensor:
    return (largest * uniform(tensor.shape, generator)).to(tensor.dtype)


def factors_of(
    shape: torch.Size | tuple[int, ...], generator: torch.Generator, within: tuple[float, float]
) -> torch.Tensor:
    """Return factors within a range; of several, one is its lowest."""
    least, most = within
    return _with_one(least + (most - least) * uniform(shape, generator), least, generator)


def scaled(tensor: torch.Tensor, generator: torch.Generator, *, factors: tuple[float, float]) -> torch.Tensor:
    """Return each element times its own factor."""
    return tensor * factors_of(tensor.shape, generator, factors).to(tensor.dtype)


def scaled_on_both_sides(
    tensor: torch.Tensor, generator: torch.Generator, *, factors: tuple[float, float]
) -> torch.Tensor:
    """Return D A D: symmetric as it was, and as definite."""
    diagonal = factors_of((tensor.shape[-1],), generator, factors)
    return tensor * torch.outer(diagonal, diagonal).to(tensor.dtype)


def _paired(
    tensor: torch.Tensor, generator: torch.Generator, *, share: float, factors: tuple[float, float]
) -> torch.Tensor:
    """Return D B D, B with other pairs of elements: symmetric, and as definite as the tensor.

    Without other pairs a few rows of D A D told a kernel that knows A all others.
    """
    return scaled_on_both_sides(with_secret_pairs(tensor, generator, share=share), generator, factors=factors)


def mixed_elements(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return each row mixed with another one, with weights of their own for few elements or many."""
    return _mixed(tensor, generator, by_element=True)


def mixed_rows(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return each row mixed with another one, each element with another one where all rows are the same."""
    return _mixed(tensor, generator, by_element=False)


def _mixed(tensor: torch.Tensor, generator: torch.Generator, *, by_element: bool) -> torch.Tensor:
    rows = tensor.reshape(-1, tensor.shape[-1]) if tensor.dim() > 1 else tensor.reshape(1, -1)
    by_rows = not torch.equal(rows, rows[:1].expand_as(rows))
    count = rows.shape[0] if by_rows else rows.shape[1]
    places = torch.randperm(count, generator=generator, device=generator.device)
    weights = uniform((count, 1) if by_rows else (1, count), generator)
    if by_element:
        is_own = few_or_many(rows.shape, generator)
        weights = torch.where(is_own, uniform(rows.shape, generator), weights)
    weights = weights.to(tensor.dtype)
    other = rows[places] if by_rows else rows[:, places]
    return torch.lerp(rows, other, weights.expand_as(rows)).reshape(tensor.shape)


def lowered(tensor: torch.Tensor, generator: torch.Generator, *, low: int) -> torch.Tensor:
    """Return whole numbers between `low` and the tensor's: a smaller index or length is still valid. Sentinels stay."""
    sentinels = sentinels_of(tensor)
    changed = _between(low, tensor, generator)
    changed = changed if sentinels is None else torch.where(sentinels, tensor, changed)
    return _with_one(changed, low, generator, kept=sentinels)


def some_lowered(tensor: torch.Tensor, generator: torch.Generator, *, low: int) -> torch.Tensor:
    """Return whole numbers a share of which is lowered, one at least to `low`, below all that is drawn. Sentinels stay."""
    sentinels = sentinels_of(tensor)
    is_chosen = _chosen(tensor, generator, _FLIPPED)
    is_lowered = is_chosen if sentinels is None else is_chosen & ~sentinels
    places = is_lowered.flatten().nonzero().flatten()
    changed = tensor.flatten().clone()
    changed[places] = _between(low, changed[places], generator)
    return _with_one(changed.view(tensor.shape), low, generator, kept=sentinels)


def _between(low: int, tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return whole numbers from `low` to the tensor's own, where these are as large."""
    whole = tensor.long()
    room = whole - low
    room[(room < 0) & (whole > low)] = 1 << 62  # beyond what 64 bits hold
    room = room.clamp_max(1 << 62)
    drawn = torch.rand(tensor.shape, generator=generator, device=generator.device, dtype=torch.float64)
    return (low + (drawn * (room + 1)).long().clamp_max(room)).to(tensor.dtype)


def _lowered_by_one(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return whole numbers about half of which are one less, none below the smallest. Sentinels stay."""
    low, high = range_without_sentinels(tensor) or (0, 0)
    is_less = (uniform(tensor.shape, generator) < 1 / 2) & (tensor > low) & (tensor <= high)
    return tensor - is_less.to(tensor.dtype)
