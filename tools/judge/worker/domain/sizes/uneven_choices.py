"""The arguments that the trials of UNEVEN change alone, beside which all others stay as they are.

What sets the pace of a filter or of a normalised update is the ratio of its arguments: of the process's noise to the
measurements', say. That stays where all of them grow together. One argument that grows alone moves its ratio to each of
the others, and is not held back by what bears no other size, as a state's transition does.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Mapping
from dataclasses import replace

import torch

from ridgeline.tools.errors import ProblemError
from ridgeline.tools.judge.worker.call_form import Tensors
from ridgeline.tools.judge.worker.domain.alike import MERELY, difference, is_power_of_two_times
from ridgeline.tools.judge.worker.grading.cases.case import are_finite
from ridgeline.tools.judge.worker.grading.cases.case_book import CaseBook
from ridgeline.tools.judge.worker.inputs.source import SecretSource
from ridgeline.tools.judge.worker.inputs.trial_changes import Share
from ridgeline.tools.judge.worker.inputs.trial_contents import scaled
from ridgeline.tools.judge.worker.own_time import OwnTime
from ridgeline.tools.judge.worker.reference import Reference
from ridgeline.tools.records.trial_names import NOMINAL, UNEVEN

_MOST_SHARES = 6
"""More arguments than that share so many choices."""
_ENOUGH_STEPS = 8
"""Choices of which fewer steps hold, so that they are not even doubled, are left out where others hold more."""
_ENOUGH_CHOICES = 2
"""Choices of which as many steps hold, after which no other is looked at: a draw takes one, and each judge has its own."""
_LIMIT_S = 2.0
"""Time for one trial's choices; after it those count that were looked at so far, two at least."""
_LARGEST_FIRST = (64.0, 8.0)
"""A further size that is looked at, the first that gives numbers: a limit may lie anywhere below the trials' largest."""
_NOTHING = "other sizes of it alone add to the output, or scale it"


class UnevenChoices:
    """Finds the arguments, or shares of many, of which a secret one is larger alone in one trial, and smaller in the other."""

    def __init__(self, book: CaseBook, source: SecretSource, reference: Reference) -> None:
        """Look at nothing yet."""
        self._book = book
        self._source = source
        self._reference = reference
        self._nothing: dict[Share, str] = {}

    @functools.cached_property
    def shares(self) -> tuple[Share, ...]:
        """The choices in a secret order: of parameters and buffers, of inputs where there are not two of these."""
        weights, inputs = self._source.weights.free, self._source.may_be_larger
        arguments = self._source.shuffled(weights if len(weights) > 1 else inputs, UNEVEN[0])
        return tuple(tuple(arguments[i::_MOST_SHARES]) for i in range(min(_MOST_SHARES, len(arguments))))

    def settle(
        self, trial: str, *, seen: Callable[[str, Callable[[], str]], str], steps_of: Callable[[str], int]
    ) -> int:
        """Note what a trial may change, each to the size that holds for it, and return the most steps; 0 where none holds.

        Args:
            trial: one of UNEVEN.
            seen: tries a look at the reference, which returns why a choice shows nothing, by its name.
            steps_of: finds the most steps of a trial that hold with what is noted.
        """
        spent, found = OwnTime(), dict[Share, int]()
        for n, share in enumerate(self.shares):
            if share not in self._nothing:
                look = functools.partial(self._shows_nothing, share)
                self._nothing[share] = seen(f"{UNEVEN[0]}, choice {n}", look)
            if not self._nothing[share]:
                self._note(trial, {share: 1})
                found[share] = steps_of(trial)
            n_enough = sum(n >= _ENOUGH_STEPS for n in found.values())
            if n_enough == _ENOUGH_CHOICES or (len(found) > 1 and spent.is_beyond(_LIMIT_S)):
                break
        most = max(found.values(), default=0)
        self._note(trial, {share: n for share, n in found.items() if n and n >= min(most, _ENOUGH_STEPS)})
        return most

    def _note(self, trial: str, steps: Mapping[Share, int]) -> None:
        """Let a trial change one of these, by as many of its steps; no trial where there are none."""
        most = max(steps.values(), default=0)
        noted = {trial: tuple((share, n / most) for share, n in steps.items())} if steps else {}
        others = {name: chosen for name, chosen in self._book.changes.uneven.items() if name != trial}
        self._book.use(replace(self._book.changes, uneven=others | noted))

    def _shows_nothing(self, share: Share) -> str:
        """Return why other sizes of some arguments show nothing, "" where they do: a bias is added, a gain scales."""
        one, two, three = (self._outputs(share, times) for times in (1.0, 2.0, 3.0))
        if not all(map(_are_in_a_line, one, two, three)):
            return ""
        for times in _LARGEST_FIRST:
            with contextlib.suppress(ProblemError):  # nothing is told by what the reference refuses
                if are_finite(other := self._outputs(share, times)):
                    goes_on = functools.partial(_goes_on, times=times)
                    return _NOTHING if all(map(goes_on, one, two, other)) else ""
        return _NOTHING

    def _outputs(self, share: Share, times: float) -> Tensors:
        contents = self._book.contents
        inputs, parameters = scaled(contents.at_hand(NOMINAL[0]), share, times)
        self._book.place_parameters(parameters)
        return tuple(output.clone() for output in self._reference.run(inputs))


def _are_in_a_line(one: torch.Tensor, two: torch.Tensor, three: torch.Tensor) -> bool:
    """Return whether outputs at one, two and three times a size are equally far apart, or the second is the first, scaled."""
    if is_power_of_two_times(two, one):
        return torch.equal(two, three) if not one.is_floating_point() else True
    return one.is_floating_point() and difference(three, two + (two - one)) <= MERELY


def _goes_on(one: torch.Tensor, two: torch.Tensor, other: torch.Tensor, *, times: float) -> bool:
    """Return whether an output at so many times a size lies on the line of the first two, or is the first, scaled.

    The second is compared with what the line from the first to the furthest has there: so its last bits stay last bits.
    """
    if not one.is_floating_point() or is_power_of_two_times(other, one):
        return is_power_of_two_times(other, one)
    return difference(two, one + (other - one) / (times - 1)) <= MERELY
