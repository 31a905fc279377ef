"""Rows of an input that equal rows of another argument, or are parallel or opposite to them: what angles and distances end in.

Two random rows of many columns are never near to either. A distance that is 0 rounds to less below its root, an angle of 0 or
pi has no sine to divide by, and what is done about that is never met.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence

import torch

from ridgeline.tools.judge.worker.call_form import Tensors
from ridgeline.tools.judge.worker.finite import is_finite
from ridgeline.tools.judge.worker.inputs.arrangements.sources import Parameters, Sources
from ridgeline.tools.judge.worker.inputs.input_form import InputForm
from ridgeline.tools.judge.worker.inputs.values.structure import (
    is_binary,
    is_without_structure,
    range_of_whole,
)

_CHANGED = 1 / 2
"""Share of an input's rows that become other rows, one at least."""
AMOUNTS = ((math.inf, 32), (math.inf, 8), (8, 1), (4, 0))
"""Rows of an input that are others, at most, and those of them that equal the other, the most first. What is made of a distance
of 0, and of an angle of 0 or pi, is often left to rounding: of few rows it is no part of the output that counts."""
ANY_AMOUNT = (math.inf, math.inf)
"""The same where an output has only to be finite: which side of 0, or of 1, rounding falls to is another matter in each row."""
_SIZES = (1.0, 0.75, 0.7)
"""What rows that do not equal the other are multiplied by beside a power of two: norms of such rows round as the other's do."""
_NEXT_TO_IT = 1 + 2.0**-20
"""The same of half of the rows that equal it: where sums are made in one order, no distance of equal rows is below 0."""

Amount = tuple[float, float]
"""One of AMOUNTS."""


def sources_of_rows(
    inputs: Tensors, parameters: Parameters, forms: Sequence[InputForm], free: Collection[int]
) -> dict[int, tuple[int | str, ...]]:
    """Return the inputs whose rows may be those of other arguments, with these: of one type, with rows as long.

    A row lies along the last dimension. An input whose rows another one names by their places is changed first, and of
    others an earlier one; vectors among the parameters are none. Masks, and what is symmetric, in order or has zeros that
    are structure, stay.
    """
    taking = [i for i in free if _may_take(inputs[i], forms[i])]
    named = {i for i in taking if any(_naming(inputs, inputs[i], inputs[other]) for other in taking if other != i)}
    order = sorted(taking, key=lambda i: (i not in named, i))
    matrices = {name: t for name, t in parameters.items() if t.dim() > 1}
    found: dict[int, tuple[int | str, ...]] = {}
    for turn, i in enumerate(order):
        others = dict[int | str, torch.Tensor]([*((j, inputs[j]) for j in order[:turn]), *matrices.items()])
        found[i] = tuple(key for key, other in others.items() if _may_be_rows_of(inputs[i], other))
    return {i: keys for i, keys in found.items() if keys}


def with_parallel_rows(
    inputs: Tensors,
    generator: torch.Generator,
    *,
    sources: Sources,
    chosen: Mapping[int, Amount],
    parameters: Callable[[], Parameters] = dict,
) -> Tensors:
    """Return inputs of which a secret half of the rows of the chosen ones are rows of their sources, times a number.

    Each is of the row at its own place, of a random one, or of one that an input of whole numbers names there, by turns. As
    many are about twice or half as large as they were, and opposite where numbers have either sign, as equal the other row,
    half of them but for last bits: of either no more than `chosen` has for the input. `parameters` returns those of the same
    trial, and is asked only where one is a source.
    """
    changed = list(inputs)
    is_any_named = any(isinstance(source, str) for i in chosen for source in sources[i])
    given = parameters() if is_any_named else {}
    for i in filter(chosen.__contains__, sources):
        others = [changed[key] if isinstance(key, int) else given[key] for key in sources[i]]
        changed[i] = _with_rows_of(inputs, i, others, generator, amount=chosen[i])
    return tuple(changed)


def _with_rows_of(
    inputs: Tensors, index: int, others: Sequence[torch.Tensor], generator: torch.Generator, *, amount: Amount
) -> torch.Tensor:
    tensor = inputs[index]
    changed = tensor.reshape(-1, tensor.shape[-1]).clone()
    most_rows, most_equal = amount
    dealt = _dealt(len(changed), most_rows, generator)
    may_oppose = bool((tensor < 0).any()) and bool((tensor > 0).any())
    for number, other in enumerate(others):
        ways = _places(inputs, index, other, generator)
        rows = dealt[number :: len(others)]
        turn = torch.arange(len(rows), device=rows.device)
        near = other.reshape(-1, other.shape[-1])[torch.stack(ways)[turn % len(ways), rows]]
        kind = torch.div(turn, len(ways), rounding_mode="floor") % (3 if may_oppose else 2)
        by = _powers_of_two(changed[rows], near, generator) * _some_of(_SIZES, rows, generator)
        is_equal = kind == 0
        most = most_equal if math.isinf(most_equal) else most_equal // len(others) + (number < most_equal % len(others))
        equal = _some_of((1.0, _NEXT_TO_IT), rows, generator)
        by = torch.where(is_equal & (is_equal.cumsum(0) <= most), equal, torch.where(kind == 2, -by, by))
        is_there = (near != 0).any(-1)  # a row of zeros has no direction
        changed[rows[is_there]] = (near * by.unsqueeze(-1).to(near.dtype))[is_there]
    return changed.view(tensor.shape)


def _dealt(count: int, most: float, generator: torch.Generator) -> torch.Tensor:
    """Return the secret rows that become others, in a secret order."""
    order = torch.rand(count, generator=generator, device=generator.device).argsort()
    return order[: max(1, int(min(count * _CHANGED, most)))]


def _places(inputs: Tensors, index: int, other: torch.Tensor, generator: torch.Generator) -> list[torch.Tensor]:
    """Return for each row of an input places of another argument's rows: its own, a random one, and those that are named."""
    tensor = inputs[index]
    rows = torch.arange(tensor.shape[:-1].numel(), device=generator.device)
    count = other.shape[:-1].numel()
    has_batch = tensor.dim() > 2 and other.shape[:-2] == tensor.shape[:-2]
    own, of_batch = (tensor.shape[-2], other.shape[-2]) if has_batch else (len(rows), count)
    first = torch.div(rows, own, rounding_mode="floor") * of_batch if has_batch else torch.zeros_like(rows)
    drawn = torch.rand(len(rows), generator=generator, device=generator.device)
    return [
        *(inputs[i].flatten().long() for i in _naming(inputs, other, tensor)),
        first + (rows % own) % of_batch,
        first + (drawn * of_batch).long().clamp(max=of_batch - 1),
    ]


def _powers_of_two(own: torch.Tensor, near: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return for each row what makes the other one about twice, or half, as large as it was itself; never 1."""
    sizes = own.double().norm(dim=-1), near.double().norm(dim=-1)
    ratio = (sizes[0] / sizes[1]).log2().nan_to_num(0.0, 0.0, 0.0).round()
    step = 2.0 * torch.randint(2, ratio.shape, generator=generator, device=generator.device) - 1
    return torch.exp2(torch.where(ratio + step == 0, 2 * step, ratio + step))


def _some_of(numbers: Sequence[float], rows: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return a secret one of these numbers for each row."""
    drawn = torch.randint(len(numbers), rows.shape, generator=generator, device=generator.device)
    return torch.tensor(numbers, dtype=torch.float64, device=generator.device)[drawn]


def _naming(inputs: Tensors, other: torch.Tensor, tensor: torch.Tensor) -> list[int]:
    """Return the inputs of whole numbers that name for each row of a tensor a row of another one: labels, assignments."""
    if other.dim() != 2:
        return []
    ends = {i: range_of_whole(t) for i, t in enumerate(inputs) if t.shape == tensor.shape[:-1]}
    return [i for i, found in ends.items() if found and found[0] >= 0 and found[1] < len(other)]


def _may_take(tensor: torch.Tensor, form: InputForm) -> bool:
    if form.is_mask or form.order or not tensor.dim() or not tensor.numel() or tensor.shape[-1] < 2:
        return False
    return is_without_structure(tensor)


def _may_be_rows_of(tensor: torch.Tensor, other: torch.Tensor) -> bool:
    if other.dtype != tensor.dtype or not other.dim() or other.shape[-1] != tensor.shape[-1]:
        return False
    return bool(other.numel()) and is_finite(other) and not is_binary(other) and _signs(tensor) >= _signs(other)


def _signs(tensor: torch.Tensor) -> frozenset[bool]:
    """Return which signs a tensor has, True for negative numbers."""
    return frozenset(sign for sign, has in ((True, (tensor < 0).any()), (False, (tensor > 0).any())) if bool(has))
