"""Rows that are near each other: whether an output shows more of two than of each by itself.

Rows that are only added up, or mapped one by one, do not meet. Those whose distances count do, once they are near.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import torch

from ridgeline.tools.judge.worker.call_form import Tensors
from ridgeline.tools.judge.worker.domain.sizes.usual_trial import Arguments
from ridgeline.tools.judge.worker.grading.outputs.chunks import chunk_of
from ridgeline.tools.judge.worker.inputs.arrangements.near_rows import form_of_rows, may_have_near_rows
from ridgeline.tools.judge.worker.inputs.source import SecretSource
from ridgeline.tools.records.trial_names import NEAR_ROWS, NOMINAL

_NEAR = 2.0**-10
"""Part of their difference by which two rows are apart: as near as the trial brings them."""
_ROUNDING = 32
"""An output's last bits, at a place of its size, that are not taken for rows that meet: sums in another order move a few."""
_NO_ROWS = "it has no rows that could be near each other"
_APART = "its rows do not meet"


def why_near_rows_show_nothing(source: SecretSource, usual: Arguments, outputs: Callable[[Arguments], Tensors]) -> str:
    """Return why near rows would show nothing, "" where two of them do together what neither does alone.

    Args:
        source: says which inputs may be changed, and draws others.
        usual: the arguments of a usual trial.
        outputs: calls the reference.
    """
    free = [i for i in source.may_be_larger if may_have_near_rows(usual.inputs[i])]
    if not free:
        return _NO_ROWS
    others = source.nominal(NOMINAL[1])
    firsts = {form: i for i in reversed(free) if (form := form_of_rows(usual.inputs[i]))}
    across = {i: firsts[form_of_rows(usual.inputs[i])] for i in free}
    ways = [across] if len(firsts) == len(free) else [across, {i: i for i in free}]
    rows = min(usual.inputs[i].shape[-2] for i in free)
    one, other = source.rng(f"{NEAR_ROWS}:meet").sample(range(rows), 2)  # of all inputs: those may be mapped row by row
    for first_of in ways:
        base = list(usual.inputs)
        for i, first in first_of.items():
            near = usual.inputs[first][..., one, :]
            base[i] = usual.inputs[i].clone()
            base[i][..., other, :] = near + (usual.inputs[i][..., other, :] - near) * _NEAR
        of_firsts, of_all = dict.fromkeys(first_of.values(), one), dict.fromkeys(free, other)
        changes = ((), (of_firsts,), (of_all,), (of_firsts, of_all))
        called = [outputs(replace(usual, inputs=_with_rows(base, others, changed))) for changed in changes]
        if any(map(_meet, *called)):
            return ""
    return _APART


def _with_rows(base: Sequence[torch.Tensor], others: Tensors, changed: Sequence[Mapping[int, int]]) -> Tensors:
    """Return inputs with other contents' rows at these places."""
    inputs = list(base)
    for places in changed:
        for i, row in places.items():
            inputs[i] = inputs[i].clone()
            inputs[i][..., row, :] = others[i][..., row, :]
    return tuple(inputs)


def _meet(usual: torch.Tensor, one: torch.Tensor, other: torch.Tensor, both: torch.Tensor) -> bool:
    """Return whether two changes together move any place of an output otherwise than by the sum of what each moves it by.

    Chunks of an output are looked at one by one: four copies of the whole in float64 need not fit a GPU.
    """
    room = _ROUNDING * torch.finfo(usual.dtype).eps if usual.is_floating_point() else 0.0
    chunks = (torch.split(o.reshape(-1), chunk_of(o)) for o in (usual, one, other, both))
    return any(_is_more_than_a_sum(torch.stack(four).double(), room) for four in zip(*chunks, strict=True))


def _is_more_than_a_sum(four: torch.Tensor, room: float) -> bool:
    """Return whether any place of the last differs from the two before it less the first, by more than rounding."""
    usual, one, other, both = four
    return bool(((both - one - other + usual).abs() > room * four.abs().amax(0)).any())
