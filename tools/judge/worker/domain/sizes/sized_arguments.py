"""The tensors that a trial of SIZED changes, and whether a problem has any."""

from __future__ import annotations

from dataclasses import replace

from ridgeline.tools.judge.worker.call_form import Scalar
from ridgeline.tools.judge.worker.domain.sizes.trial_sizes import OF_INPUTS
from ridgeline.tools.judge.worker.domain.sizes.usual_trial import Arguments
from ridgeline.tools.judge.worker.inputs.source import SecretSource
from ridgeline.tools.records.trial_names import (
    HELD,
    LARGE_BLOCKED,
    LARGE_MATRICES,
    LARGE_SCALARS,
    LARGE_VECTORS,
    MOVED,
    MOVED_VECTORS,
    NARROW,
    NEAR_ROWS,
    NEAR_SINGULAR,
    OF_SQUARES,
    RAISED,
    SILENT,
    SMALL_APART,
    SMALL_PARAMETERS,
    SMALL_SCALARS,
    UNEVEN,
)

TWICE = 2.0
"""What arguments are multiplied by to see whether their size does more than scale the output."""


def changes_any_tensor(trial: str, source: SecretSource, *, n_shares: int, makes_symmetric: bool) -> bool:
    """Return whether a trial changes an input, parameter or buffer.

    Args:
        trial: one of SIZED.
        source: says what may be changed.
        n_shares: the shares of arguments of which one alone changes.
        makes_symmetric: the reference makes symmetric matrices of others.
    """
    weights = source.weights
    if trial in UNEVEN:
        return n_shares > 1
    if trial in HELD:
        return trial in source.held
    if trial in OF_SQUARES:
        return bool(weights.square or source.square(trial))
    if trial == NEAR_SINGULAR:
        return bool(source.may_be_larger or weights.square or (makes_symmetric and weights.free))
    if trial in (*OF_INPUTS, *SILENT, NEAR_ROWS, NARROW):
        return bool(source.may_be_larger)
    if trial in (SMALL_PARAMETERS, SMALL_APART):
        return bool(weights.free_of_one_sign)
    if trial in MOVED:
        return bool(weights.free_to_move(vectors=trial in MOVED_VECTORS))
    is_of_matrices = trial in (LARGE_MATRICES, LARGE_BLOCKED)
    return (is_of_matrices or trial == LARGE_VECTORS) and weights.has_free(vectors=not is_of_matrices)


def of_other_size(
    trial: str, usual: Arguments, source: SecretSource, *, times: float, scalars: tuple[Scalar, ...]
) -> Arguments:
    """Return arguments of which those are larger, or moved, that a trial changes, or one of the same arguments."""
    if trial in OF_INPUTS:
        return replace(usual, inputs=source.times(usual.inputs, times))
    weights = source.weights
    if trial in MOVED:
        by = times if trial in RAISED else -times
        others = {n: usual.parameters[n] + by for n in weights.free_to_move(vectors=trial in MOVED_VECTORS)}
    else:
        names = () if trial in (LARGE_SCALARS, SMALL_SCALARS) else weights.free
        others = {n: usual.parameters[n] * times for n in names}
    return replace(usual, parameters={**usual.parameters, **others}, scalars=scalars)
