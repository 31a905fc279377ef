"""The middle between usual arguments and changed ones: whether a change does more to an output than scale or move it.

What sorts numbers, or compares them with each other, depends on more than their mean and their spread once they clip, or meet.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch

from ridgeline.tools.errors import ProblemError
from ridgeline.tools.judge.worker.call_form import Tensors
from ridgeline.tools.judge.worker.domain.alike import MERELY, difference
from ridgeline.tools.judge.worker.domain.sizes.usual_trial import Arguments
from ridgeline.tools.judge.worker.inputs.trial_contents import Drawn

UNCHANGED = "no argument is changed"
_IN_A_LINE = "its output is moved as far as its arguments are"


def why_change_shows_nothing(usual: Arguments, changed: Drawn, outputs: Callable[[Arguments], Tensors]) -> str:
    """Return why a change shows nothing, "" where it does of one argument alone.

    It shows nothing where the output of what is in the middle lies in the middle of those at both ends.
    """
    inputs, parameters = changed
    moved = [
        *(_of_input(usual, i, t) for i, t in enumerate(inputs) if not torch.equal(t, usual.inputs[i])),
        *(_of_parameter(usual, n, t) for n, t in parameters.items() if not torch.equal(t, usual.parameters[n])),
    ]
    if not moved:
        return UNCHANGED
    one = outputs(usual)
    for half, whole in moved:
        try:
            between, other = outputs(half), outputs(whole)
        except ProblemError:
            return ""  # a smaller size may be taken
        if not all(map(_is_in_the_middle, between, one, other)):
            return ""
    return _IN_A_LINE


def _of_input(usual: Arguments, index: int, changed: torch.Tensor) -> tuple[Arguments, Arguments]:
    """Return arguments of which an input is in the middle of what it is and what it is changed to, and those of the latter."""
    before, after, was = usual.inputs[:index], usual.inputs[index + 1 :], usual.inputs[index]
    half, whole = (replace(usual, inputs=(*before, t, *after)) for t in (torch.lerp(was, changed, 0.5), changed))
    return half, whole


def _of_parameter(usual: Arguments, name: str, changed: torch.Tensor) -> tuple[Arguments, Arguments]:
    values = torch.lerp(usual.parameters[name], changed, 0.5), changed
    half, whole = (replace(usual, parameters={**usual.parameters, name: t}) for t in values)
    return half, whole


def _is_in_the_middle(output: torch.Tensor, one: torch.Tensor, other: torch.Tensor) -> bool:
    if not output.is_floating_point():
        return torch.equal(one, other)
    return difference(torch.lerp(one, other, 0.5), output) <= MERELY
