"""Other values for the inputs that `get_inputs` always gives alike: tables, masks, lengths, zeros.

A kernel has to compute from these inputs too. Other values stay within what such an input may hold: between its
smallest and its largest value, in its order, with its zeros and its symmetry, and no index above the one in its place.
Running the reference shows whether it takes them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch

from ridgeline.tools.judge.worker.inputs.structure import are_distinct, has_structural_zeros, is_binary, is_symmetric

Way = Callable[[torch.Tensor, torch.Generator], torch.Tensor]

_FLIPPED = 0.125  # of a mask's elements: enough to show in every row, and rarely a whole row
_LEAST_FACTOR = 0.5


def ways_to_vary(tensor: torch.Tensor, order: int) -> tuple[Way, ...]:
    """Return the ways in which such an input may be changed, the likeliest first; none where no other value is safe."""
    if tensor.numel() == 0:
        return ()
    if tensor.dtype == torch.bool:
        return (_flipped, _with_more, _with_fewer)
    if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
        return ()  # a mask of infinities
    if tensor.is_floating_point() and is_binary(tensor):
        return ()
    if order:
        return (functools.partial(_moved, order=order),) if _has_room(tensor, order) else ()
    return _ways_of_floats(tensor) if tensor.is_floating_point() else _ways_of_integers(tensor)


def _ways_of_floats(tensor: torch.Tensor) -> tuple[Way, ...]:
    low, high = float(tensor.min()), float(tensor.max())
    if low == high == 0:
        return (_uniform,)  # nothing is known of such an input; zeros alone are no structure
    if low == high == 1 and tensor.dim() > 1:
        return (_with_zeros, _scaled)  # a mask, or else weights
    if is_symmetric(tensor):
        return (_scaled_on_both_sides,)
    return (_scaled,) if low == high or has_structural_zeros(tensor) else (_mixed_rows,)


def _ways_of_integers(tensor: torch.Tensor) -> tuple[Way, ...]:
    low, high = int(tensor.min()), int(tensor.max())
    if low == high:
        return tuple(functools.partial(lowered, low=least) for least in (0, 1) if least < low)
    return (_mixed_up,) if are_distinct(tensor) else (functools.partial(lowered, low=low),)


def _random(shape: torch.Size | tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    return torch.rand(shape, generator=generator, device=generator.device)


def _flipped(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    return tensor ^ (_random(tensor.shape, generator) < _FLIPPED)


def _with_more(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    return tensor | (_random(tensor.shape, generator) < _FLIPPED)


def _with_fewer(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    return tensor & (_random(tensor.shape, generator) >= _FLIPPED)


def _with_zeros(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    return torch.where(_random(tensor.shape, generator) < _FLIPPED, torch.zeros_like(tensor), tensor)


def _uniform(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    return _random(tensor.shape, generator).to(tensor.dtype)


def _factors(shape: torch.Size | tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    return _LEAST_FACTOR + (1 - _LEAST_FACTOR) * _random(shape, generator)


def _scaled(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    return tensor * _factors(tensor.shape, generator).to(tensor.dtype)


def _scaled_on_both_sides(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return D A D: symmetric as it was, and as definite."""
    factors = _factors((tensor.shape[-1],), generator)
    return tensor * torch.outer(factors, factors).to(tensor.dtype)


def _mixed_rows(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return each row mixed with another one, each element with another one where all rows are the same."""
    rows = tensor.reshape(-1, tensor.shape[-1]) if tensor.dim() > 1 else tensor.reshape(1, -1)
    by_rows = not torch.equal(rows, rows[:1].expand_as(rows))
    count = rows.shape[0] if by_rows else rows.shape[1]
    places = torch.randperm(count, generator=generator, device=generator.device)
    weights = _random((count, 1) if by_rows else (1, count), generator).to(tensor.dtype)
    other = rows[places] if by_rows else rows[:, places]
    return torch.lerp(rows, other, weights.expand_as(rows)).reshape(tensor.shape)


def _mixed_up(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    rows = tensor if tensor.shape[0] > 1 else tensor.reshape(-1)
    return rows[torch.randperm(rows.shape[0], generator=generator, device=generator.device)].view(tensor.shape)


def lowered(tensor: torch.Tensor, generator: torch.Generator, *, low: int) -> torch.Tensor:
    """Return whole numbers between `low` and the tensor's: a smaller index or length is still valid."""
    room = tensor.long() - low
    drawn = torch.rand(tensor.shape, generator=generator, device=generator.device, dtype=torch.float64)
    return (low + (drawn * (room + 1)).long().clamp_max(room)).to(tensor.dtype)


def _gaps(tensor: torch.Tensor, order: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the rows rising, and how far every element but the first and the last may go down in its order."""
    rising = tensor if order > 0 else tensor.flip(-1)
    gaps = rising.diff(dim=-1)
    if not tensor.is_floating_point() and bool((gaps > 0).all()):
        gaps = gaps - 1  # no value twice
    return rising, gaps[..., :-1]


def _has_room(tensor: torch.Tensor, order: int) -> bool:
    """Return whether another value fits anywhere; 0, 1, 2, … are dense."""
    return bool((_gaps(tensor, order)[1] > 0).any())


def _moved(tensor: torch.Tensor, generator: torch.Generator, *, order: int) -> torch.Tensor:
    """Return every element but the ends moved towards its neighbour, so that the order stays."""
    rising, gaps = _gaps(tensor, order)
    steps = _random(gaps.shape, generator).to(torch.float64 if not tensor.is_floating_point() else tensor.dtype)
    moved = rising.clone()
    if tensor.is_floating_point():
        moved[..., 1:-1] = torch.maximum(rising[..., 1:-1] - steps * gaps, rising[..., :-2])
    else:
        moved[..., 1:-1] -= (steps * (gaps + 1)).long().clamp_max(gaps).to(tensor.dtype)
    return moved if order > 0 else moved.flip(-1)
