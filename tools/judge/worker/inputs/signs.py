"""Other signs for an argument whose values all have one: a kernel may rely on that only where the reference does.

Sizes stay, and so do zeros, symmetry and definiteness. Order is the caller's affair.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from ridgeline.tools.judge.worker.finite import is_finite
from ridgeline.tools.judge.worker.inputs.values.structure import is_binary, is_symmetric
from ridgeline.tools.judge.worker.inputs.values.transforms import random_index
from ridgeline.tools.judge.worker.inputs.variation import Way
from ridgeline.tools.records.trial_names import FEW_SIGNS, MIXED_SIGNS, OPPOSITE_SIGNS

_WHOLE_ROWS = 0.25
"""Share of the rows that are negative throughout, and of those that stay: a maximum of a mixed row is positive."""


def is_of_one_sign(tensor: torch.Tensor) -> bool:
    """Return whether no two values of a tensor differ in sign; not of zeros alone, a mask, infinities or integers."""
    if not tensor.is_floating_point() or not tensor.numel() or not is_finite(tensor):
        return False
    low, high = float(tensor.min()), float(tensor.max())
    return (low >= 0 or high <= 0) and (low, high) != (0, 0) and not is_binary(tensor)


def have_one_sign(draws: Sequence[torch.Tensor]) -> bool:
    """Return whether all draws of an argument are of one and the same sign."""
    return all(is_of_one_sign(t) for t in draws) and len({bool((t > 0).any()) for t in draws}) == 1


def with_mixed_signs(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return a tensor about half of whose values are negated: some in whole rows, others one by one."""
    return torch.where(_is_negated(tensor, generator), -tensor, tensor)


def with_few_signs(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return a tensor with one secret row negated and one more value: a sample of the signs rarely meets them."""
    return torch.where(_is_one_of_few(tensor, generator), -tensor, tensor)


def with_opposite_signs(tensor: torch.Tensor, _generator: torch.Generator) -> torch.Tensor:
    """Return the negated tensor; a symmetric one as it is, since it may be definite."""
    return tensor if is_symmetric(tensor) else -tensor


def _is_negated(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    if is_symmetric(tensor):
        negated = _coins(tensor.shape[-1:], generator)
        return negated.unsqueeze(-1) ^ negated
    chosen = _coins(tensor.shape, generator)
    if tensor.dim() > 1:
        row = torch.rand((*tensor.shape[:-1], 1), generator=generator, device=generator.device)
        chosen = (chosen & (row < 1 - _WHOLE_ROWS)) | (row < _WHOLE_ROWS)
    return _with_both(chosen, generator)


def _is_one_of_few(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    if is_symmetric(tensor):
        negated = torch.zeros(tensor.shape[-1:], dtype=torch.bool, device=tensor.device)
        negated[random_index(negated.shape, generator)] = True
        return negated.unsqueeze(-1) ^ negated
    chosen = torch.zeros(tensor.shape, dtype=torch.bool, device=tensor.device)
    if tensor.shape[:-1].numel() > 1:
        chosen[random_index(tensor.shape[:-1], generator)] = True
    chosen[random_index(tensor.shape, generator)] = True
    return chosen


def _coins(shape: torch.Size, generator: torch.Generator) -> torch.Tensor:
    return _with_both(torch.rand(shape, generator=generator, device=generator.device) < 1 / 2, generator)


def _with_both(chosen: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return a choice with one place more that is chosen and, where there are two, one that is not."""
    flat = chosen.flatten()
    place = int(torch.randint(flat.numel(), (), generator=generator, device=generator.device))
    flat[place - 1] = False
    flat[place] = True
    return flat.view(chosen.shape)


SIGNS: Mapping[str, Way] = {
    MIXED_SIGNS: with_mixed_signs,
    FEW_SIGNS: with_few_signs,
    OPPOSITE_SIGNS: with_opposite_signs,
}
"""The trials in which arguments of one sign get other signs."""
