"""Arguments of larger sizes: whether these do more to an output than scale it.

A product is scaled, an iteration is not. All parameters are doubled at once: the bias of a product grows with its weight.
A limit (a norm that is clipped, a gate that saturates) may lie beyond twice the usual size, and within the trials' reach.
"""

from __future__ import annotations

from collections.abc import Callable

from ridgeline.tools.errors import ProblemError
from ridgeline.tools.judge.worker.call_form import Tensors
from ridgeline.tools.judge.worker.domain.alike import likeness
from ridgeline.tools.judge.worker.domain.sizes.sized_arguments import TWICE
from ridgeline.tools.judge.worker.domain.sizes.usual_trial import Arguments
from ridgeline.tools.judge.worker.grading.cases.case import are_finite

_FURTHEST = 8.0
"""A further size for every output: the largest that a trial of larger arguments has, which a limit shows in."""
_MUCH_LARGER = (_FURTHEST, 64.0)
"""Further sizes where an output jumps: of sixteen choices none need change where all arguments are doubled."""


def why_larger_shows_nothing(
    usual: Arguments, larger: Callable[[float], Arguments], outputs: Callable[[Arguments], Tensors], *, is_jumping: bool
) -> str:
    """Return why larger arguments would show nothing, "" where they do: they give the same output times a power of two.

    Args:
        usual: the arguments of a usual trial.
        larger: returns them so many times as large.
        outputs: calls the reference.
        is_jumping: something on the way to the output does.
    """
    usual_outputs = outputs(usual)
    try:
        found = {likeness(outputs(larger(TWICE)), usual_outputs)}
    except ProblemError:
        return ""  # a smaller size may be taken
    for times in _MUCH_LARGER if is_jumping else (_FURTHEST,):
        if None in found:
            break
        try:
            others = outputs(larger(times))
        except ProblemError:
            continue  # nothing is told by what the reference refuses
        if are_finite(others):
            found.add(likeness(others, usual_outputs))
    return (found.pop() or "") if len(found) == 1 else ""
