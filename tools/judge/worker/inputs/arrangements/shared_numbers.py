"""Whole numbers of one input that come in another one too: identities that are looked up, counted or matched there.

Numbers of a wide range, drawn twice, hardly ever meet.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import torch

from ridgeline.tools.judge.worker.call_form import Tensors
from ridgeline.tools.judge.worker.inputs.input_form import InputForm
from ridgeline.tools.judge.worker.inputs.values.structure import range_of_whole

_SHARED = (1 / 4, 1 / 2)
"""Share of a row's places that hold numbers of other inputs."""
_IN_RUNS = 1 / 2
"""Share of the rows in which such numbers come as runs, as they follow each other there."""
_LONGEST = 8
"""Places of such a run, at most."""

Sources = Mapping[int, Sequence[int]]
"""The inputs of which each one may hold numbers."""


def sources_of_numbers(
    inputs: Tensors, forms: Sequence[InputForm], free: Collection[int]
) -> dict[int, tuple[int, ...]]:
    """Return the inputs that may hold numbers of earlier ones, with these: of one type, in no order, with a common range."""
    ranges = {i: ends for i in free if _may_share(inputs[i], forms[i]) and (ends := range_of_whole(inputs[i]))}
    found = {i: tuple(other for other in ranges if other < i and _do_meet(i, other, inputs, ranges)) for i in ranges}
    return {i: others for i, others in found.items() if others}


def _may_share(tensor: torch.Tensor, form: InputForm) -> bool:
    is_signed = tensor.dtype.is_signed or tensor.dtype == torch.uint8
    return is_signed and tensor.numel() > 1 and form.may_be_lifted


def _do_meet(first: int, second: int, inputs: Tensors, ranges: Mapping[int, tuple[int, int]]) -> bool:
    (low, high), (other_low, other_high) = ranges[first], ranges[second]
    return inputs[first].dtype == inputs[second].dtype and max(low, other_low) < min(high, other_high)


def with_shared_numbers(
    inputs: Tensors, generator: torch.Generator, *, sources: Sources, chosen: Collection[int]
) -> Tensors:
    """Return inputs of which the chosen ones hold numbers of their sources, in a share of their places.

    Those of the same row, where the leading dimensions agree; none beyond an input's own range.
    """
    changed = list(inputs)
    for i in sorted(chosen):
        for source in sources[i]:
            changed[i] = _with_numbers_of(changed[i], inputs[source], generator, part=len(sources[i]))
    return tuple(changed)


def _with_numbers_of(
    tensor: torch.Tensor, source: torch.Tensor, generator: torch.Generator, *, part: int
) -> torch.Tensor:
    n_rows = tensor.shape[: _common(tensor.shape, source.shape)].numel()
    own, other = tensor.reshape(n_rows, -1), source.reshape(n_rows, -1)
    numbers, is_shared = _drawn(own.shape, other, generator, part)
    low, high = tensor.amin(), tensor.amax()
    is_shared &= (numbers >= low) & (numbers <= high)
    return torch.where(is_shared, numbers, own).view(tensor.shape)


def _drawn(
    shape: torch.Size, source: torch.Tensor, generator: torch.Generator, part: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return numbers of each row of a source for all places of a row, and which of them are taken."""
    n_rows, width = shape
    share, is_in_runs, length = torch.rand(3, n_rows, 1, generator=generator, device=generator.device)
    run = torch.where(is_in_runs < _IN_RUNS, 2 + (length * (_LONGEST - 1)).long(), 1)
    places = torch.arange(width, device=generator.device)
    number_of_run, within = torch.div(places, run, rounding_mode="floor"), places % run
    begins, taken = (
        torch.rand(shape, generator=generator, device=generator.device).gather(1, number_of_run) for _ in range(2)
    )
    at = ((begins * source.shape[1]).long() + within) % source.shape[1]
    least, most = _SHARED
    return source.gather(1, at), taken < (least + (most - least) * share) / part


def _common(first: torch.Size, second: torch.Size) -> int:
    """Return how many leading dimensions two inputs share: never all of both."""
    most = min(len(first), len(second), max(len(first), len(second)) - 1)
    return next((n for n in range(most) if first[n] != second[n]), most)
