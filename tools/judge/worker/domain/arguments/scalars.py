"""The scalars that a reference takes with other values: all of them together, or those that it takes one by one."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence

from ridgeline.tools.judge.worker.call_form import Scalar
from ridgeline.tools.judge.worker.inputs.parameters import SMALL

_LEAST_SCALAR = 0.5  # of a scalar's own value, or of 1: other values are within the range that it shows
_TOGETHER = "other scalars"

Scalars = tuple[Scalar, ...]
Refuses = Callable[[Scalars, str], bool]
"""Says whether the reference refuses these scalars; the words name the attempt."""


def other_scalar(value: Scalar, rng: random.Random) -> Scalar:
    """Return another value for a floating-point scalar within its own range, or of order one; any other as it is."""
    if not isinstance(value, float) or not math.isfinite(value):
        return value
    factor = rng.uniform(_LEAST_SCALAR, 1 - _LEAST_SCALAR / 4)
    size = abs(value) if abs(value) > SMALL else 1.0
    return math.copysign(factor * size, value)


def taken_scalars(given: Scalars, wanted: Scalars, names: Sequence[str], refuses: Refuses) -> Scalars:
    """Return the wanted values of the scalars that may have them together, and the given ones of the others."""
    if wanted == given or not refuses(wanted, _TOGETHER):
        return wanted
    alone = tuple(
        given[i] if other != given[i] and refuses((*given[:i], other, *given[i + 1 :]), f"other {names[i]}") else other
        for i, other in enumerate(wanted)
    )
    return alone if alone == given or not refuses(alone, _TOGETHER) else given
