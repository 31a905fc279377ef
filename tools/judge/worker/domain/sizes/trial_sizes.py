"""The sizes of the trials of SIZED: how far each goes, what a size does to a scalar, and the usual trial beside it."""

from __future__ import annotations

from collections.abc import Callable, Collection

from ridgeline.tools.judge.worker.call_form import Scalar
from ridgeline.tools.records.trial_names import (
    APART,
    BANDS,
    BLOCKED,
    FAR_CHOICES,
    LARGE_BLOCKED,
    LARGE_DIAGONALS,
    LARGE_INPUTS,
    LARGE_MATRICES,
    LARGE_SCALARS,
    LARGE_VECTORS,
    MOVED,
    MOVED_VECTORS,
    NARROW,
    NEAR_IDENTITY,
    NEAR_ROWS,
    NEAR_SINGULAR,
    NOMINAL,
    QUIET,
    RAISED,
    SMALL_APART,
    SMALL_INPUTS,
    SMALL_NEAR_IDENTITY,
    SMALL_PARAMETERS,
    SMALL_SCALARS,
    UNEVEN,
)

_STEPS_OF_TWO = 8
"""Steps of a trial's size by which it doubles: from an iteration that settles early to chaos it is some ten of them."""
MOST_STEPS = {
    LARGE_INPUTS: 24,  # 8 times as large
    SMALL_INPUTS: 24,  # an 8th
    LARGE_MATRICES: 24,  # 8 times as large
    LARGE_VECTORS: 8,  # twice as large: numbers of up to 6, and a gate of 6 keeps a state for 400 steps
    SMALL_PARAMETERS: 48,  # a 64th
    LARGE_SCALARS: 24,  # 8 times as large
    SMALL_SCALARS: 32,  # a 16th
    SMALL_APART: 32,  # a 16th
    LARGE_BLOCKED: 24,  # 8 times as large
    NEAR_IDENTITY: 8,  # 256: `_NEAR_STEPS_OF_TWO`
    SMALL_NEAR_IDENTITY: 8,
    **dict.fromkeys(BANDS, 8),
    NEAR_ROWS: 10,  # a 1024th
    NARROW: 10,  # a 1024th
    NEAR_SINGULAR: 32,  # eigenvalues of 1/256
    LARGE_DIAGONALS: 24,  # 12, or 4096 times the sum of a row
    **dict.fromkeys(MOVED, 24),  # `FURTHEST` in equal steps
    FAR_CHOICES: 48,  # inputs 64 times as large
    **dict.fromkeys(UNEVEN, 48),  # 64 times as large, or a 64th: two would be 8 times and an 8th
    **dict.fromkeys(QUIET, 4),  # a quarter that is not silent: `_SILENT_STEPS_OF_TWO`
}
"""The most steps of each trial's size.

Larger sizes would ask an honest kernel for what float32 does not hold: a gate of 1 - 2^-12 is off by 2^-13 of what it lacks."""
FURTHEST = 5.0
"""What is added with the most steps of a trial of MOVED: all gates are moved, not single ones."""
_SILENT_STEPS_OF_TWO = 2
_BY_TWOS = (NEAR_IDENTITY, SMALL_NEAR_IDENTITY, *BANDS, NEAR_ROWS, NARROW)
_NEAR_STEPS_OF_TWO = 1  # numbers beside a diagonal over a power of two: the diagonal has few bits
OF_INPUTS = (LARGE_INPUTS, SMALL_INPUTS)
ALIKE = (
    OF_INPUTS,
    (LARGE_MATRICES, LARGE_VECTORS, SMALL_PARAMETERS, LARGE_BLOCKED),
    (LARGE_SCALARS, SMALL_SCALARS),
    (SMALL_APART,),
    *((trial,) for trial in MOVED),
)
"""Trials that change the same arguments."""

SATURATING = (LARGE_INPUTS, LARGE_MATRICES, LARGE_SCALARS, LARGE_DIAGONALS)
"""Trials whose largest size may let a state settle at once, beyond a size at which it does so late."""
_SLOWER = 2.0


def most_taken(most: int, is_taken: Callable[[int], bool]) -> int:
    """Return the most steps that are taken, 0 where none are.

    Seven looks at most halve the steps until one is left, however long they take: a busy machine finds the same size.
    """
    taken, refused, steps = 0, most + 1, most
    while taken + 1 < refused:
        if is_taken(steps):
            taken = steps
        else:
            refused = steps
        steps = (taken + refused) // 2
    return taken


def slowest(steps: int, moved_at: Callable[[int], float]) -> int:
    """Return the most steps, or a quarter, a half or three quarters of them, that move an output half as far as any does.

    What settles late sums up what last bits do to it.
    """
    found = {each: moved_at(each) for each in {steps // 4, steps // 2, 3 * steps // 4, steps}}
    least = max(found.values()) / _SLOWER
    return max(each for each, moved in found.items() if moved >= least)


def size_of(trial: str, steps: int) -> float:
    """Return a trial's factor, what is added in one of MOVED, or the steps of large diagonals."""
    if trial == LARGE_DIAGONALS:
        return float(steps)
    if trial in MOVED:
        return FURTHEST * steps / MOST_STEPS[trial]
    of_two = _SILENT_STEPS_OF_TWO if trial in QUIET else _NEAR_STEPS_OF_TWO if trial in _BY_TWOS else _STEPS_OF_TWO
    return float(2.0 ** (steps / of_two))


def sized(scalar: Scalar, trial: str, size: float) -> Scalar:
    """Return a scalar larger or smaller by a factor, or moved. A positive one, maybe a rate or an epsilon, is not moved."""
    if trial in MOVED:
        return scalar if scalar > 0 else scalar + (size if trial in RAISED else -size)
    return scalar * (size if trial == LARGE_SCALARS else 1 / size)


def base_of(trial: str, taken: Collection[str]) -> str:
    """Return the usual trial whose inputs a trial of SIZED has, and beside which its output is as well conditioned.

    What is moved comes beside groups of rows where the reference takes these: the number of rounds often hangs on both.
    """
    if trial in MOVED_VECTORS:
        return APART if APART in taken else NOMINAL[0]
    return {SMALL_APART: APART, LARGE_BLOCKED: BLOCKED}.get(trial, NOMINAL[0])
