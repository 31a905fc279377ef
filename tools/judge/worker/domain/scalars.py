"""The scalars that a reference takes with other values: all of them together, or those that it takes one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ridgeline.tools.judge.worker.call_form import Scalar

_TOGETHER = "other scalars"

Scalars = tuple[Scalar, ...]
Refuses = Callable[[Scalars, str], bool]
"""Says whether the reference refuses these scalars; the words name the attempt."""


def taken_scalars(given: Scalars, wanted: Scalars, names: Sequence[str], refuses: Refuses) -> Scalars:
    """Return the wanted values of the scalars that may have them together, and the given ones of the others."""
    if wanted == given or not refuses(wanted, _TOGETHER):
        return wanted
    alone = tuple(
        given[i] if other != given[i] and refuses((*given[:i], other, *given[i + 1 :]), f"other {names[i]}") else other
        for i, other in enumerate(wanted)
    )
    return alone if alone == given or not refuses(alone, _TOGETHER) else given
