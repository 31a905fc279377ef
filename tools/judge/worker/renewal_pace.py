"""The pace at which the judge writes new contents on a GPU: it is slower where somebody else has the GPU too.

Many small sets are written at the speed of a processor, which may become slower without any candidate's doing: by other
programs, or by a clock that falls. So the pace is taken again, with no candidate there, before a slow renewal counts against
one.
"""

from __future__ import annotations

import math
from collections.abc import Callable

_RENEWALS_ALONE = 5
"""Renewals of all contents that are timed while no candidate is there; the first ones load kernels."""

_SCATTER_S = 1e-3
_SET_SCATTER_S = 20e-6
"""Taken off a renewal, and for each of its sets: a processor asks for it, which has other work at times. Beside the reference
itself, of 26 us on 256 by 256 numbers, two of ten timings had renewals 1.6 times as long."""


class RenewalPace:
    """The time that a renewal takes with no candidate there, and that of later ones beside it."""

    def __init__(self, renew: Callable[[], float], *, n_sets: int, is_needed: bool = True) -> None:
        """Time `renew`, which writes contents of `n_sets` sets and returns the seconds that took, where that `is_needed`."""
        self._scatter_s = _SCATTER_S + n_sets * _SET_SCATTER_S
        self._usual_s = max(min(renew() for _ in range(_RENEWALS_ALONE)), 1e-6) if is_needed else math.inf

    def slowdown_of(self, seconds: float) -> float:
        """Return (seconds - scatter) / usual seconds; 0 where nobody needs it."""
        return max(seconds - self._scatter_s, 0.0) / self._usual_s

    def slowdown_since(self, before: RenewalPace) -> float:
        """Return usual seconds / those of the pace before; 1 where nobody needed that."""
        return self._usual_s / before._usual_s if math.isfinite(before._usual_s) else 1.0
