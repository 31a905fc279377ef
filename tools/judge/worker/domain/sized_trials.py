"""The trials of other sizes: arguments larger or smaller, by as much as leaves the output as well conditioned as it was.

How many rounds an iteration needs, and how long a recurrence remembers, is set by the size of its weights. Those that a
module begins with are small: a fixed point is reached early, and a state is gone after a few steps. Larger ones lead to
an edge beyond which the last bits decide. So do smaller rates, dampings and slopes, which are of one sign. The trials lie
on this side of it.
"""

from __future__ import annotations

import math
import time

import torch

from ridgeline.tools.errors import BadReferenceError, ProblemError
from ridgeline.tools.judge.worker.call_form import Tensors
from ridgeline.tools.judge.worker.domain.conditioning import (
    LEFT_TO_ROUNDING,
    WORSE,
    are_within,
    errors_by_rounding,
    room_of,
)
from ridgeline.tools.judge.worker.domain.objections import Objection, Tried
from ridgeline.tools.judge.worker.grading.case import Case, EachErrors, are_finite
from ridgeline.tools.judge.worker.grading.cases import CaseBook
from ridgeline.tools.judge.worker.grading.class_errors import moved_in_type
from ridgeline.tools.judge.worker.inputs.source import SecretSource
from ridgeline.tools.judge.worker.inputs.trial_contents import Drawn
from ridgeline.tools.judge.worker.reference import Reference
from ridgeline.tools.records.precision import NOMINAL_GATE
from ridgeline.tools.records.trial_names import (
    LARGE_INPUTS,
    LARGE_MATRICES,
    LARGE_VECTORS,
    NOMINAL,
    SIZED,
    SMALL_PARAMETERS,
)
from ridgeline.tools.records.vocabulary import PrecisionClass

_STEPS_OF_TWO = 8
"""Steps of a trial's size by which it doubles: from an iteration that settles early to chaos it is some ten of them."""
_MOST_STEPS = {LARGE_INPUTS: 24, LARGE_MATRICES: 24, LARGE_VECTORS: 8, SMALL_PARAMETERS: 48}
"""... and the most of them: a factor of 8, an rms of 2, a 64th. Gates of 6 keep a state for 400 steps.

Larger ones would ask an honest kernel for what float32 does not hold: a gate of 1 - 2^-12 is off by 2^-13 of what it lacks."""
_ROWS_WORSE = 16.0
"""Single rows may be so much worse than a nominal trial's: the edge reaches few of them first, and their limits are wide."""
_ROOM = 1 / 4
"""... and its own type may be this part of fp32's gates off: kernels that round otherwise have the rest."""
_LIMIT_S = 3.0
"""Time for one trial's sizes; after it the largest that was taken so far counts."""
_LIMIT_RUNS = 12
"""... or so many runs of the reference, where they take longer: a size takes two."""
_MOST_CASES = 3
"""Sizes of which a whole case is made ..."""
_LESS = 2 / 3
"""... each of so many of the steps of the one that was refused."""
_MERELY = NOMINAL_GATE[PrecisionClass.FP32]
"""An output that differs by no more from one that was scaled shows nothing else: a norm's epsilon, say."""
_TWICE = 2.0
_SCALES = "a larger one scales the output"

BothErrors = tuple[EachErrors | None, EachErrors | None]


class SizedTrials:
    """Finds the size of each trial of SIZED, and notes it in the secret source."""

    def __init__(
        self, book: CaseBook, source: SecretSource, reference: Reference, *, objection: Objection, tried: Tried
    ) -> None:
        """Look at nothing yet."""
        self._book = book
        self._source = source
        self._reference = reference
        self._objection = objection
        self._tried = tried
        self._usual: BothErrors = (None, None)
        self._usual_moves: tuple[float, ...] = ()
        self._run_s = 0.0
        self._nothing: dict[bool, str] = {}  # why larger inputs, and larger parameters, show nothing

    def settle(self) -> tuple[str, ...]:
        """Return the trials that there are: of arguments whose size does more than scale the output."""
        return tuple(trial for trial in SIZED if self._settle_trial(trial))

    def objection_to(self, case: Case) -> str:
        """Return why a case of such arguments is refused: what is worse conditioned than a nominal one; "" when it is not."""
        (by_tf32, by_type), (usual_by_tf32, usual_by_type) = self._errors_of(case), self._usual
        room = (room_of(PrecisionClass.FP32, _ROOM),) * len(case.expected)
        is_as_good = are_within(by_tf32, usual_by_tf32, WORSE, of_rows=_ROWS_WORSE) and (
            are_within(by_type, room, 1.0) or are_within(by_type, usual_by_type, WORSE, of_rows=_ROWS_WORSE)
        )
        return "" if is_as_good else LEFT_TO_ROUNDING

    def _errors_of(self, case: Case) -> BothErrors:
        try:
            return errors_by_rounding(self._reference, case)
        except BadReferenceError:  # it refuses rounded operands, weights of sum 1 say
            return None, None

    def _settle_trial(self, trial: str) -> bool:
        if not self._source.may_be_sized(trial):
            return False
        of_inputs = trial == LARGE_INPUTS
        if of_inputs not in self._nothing:  # all parameters are doubled at once, for each of their trials alike
            self._nothing[of_inputs] = self._tried(f"{trial}, twice as large", lambda: self._shows_nothing(trial))
        if self._nothing[of_inputs]:
            return False
        steps = self._largest(trial)
        for _ in range(_MOST_CASES):
            if steps <= 0:
                break
            if not self._objection(trial, self._note(trial, steps)):
                return True
            steps = int(steps * _LESS)
        return False

    def _largest(self, trial: str) -> int:
        """Return the most steps at which operands with other last bits move the output about as little as they usually do."""
        until_s = time.perf_counter() + max(_LIMIT_S, _LIMIT_RUNS * self._run_s)
        taken, refused = 0, _MOST_STEPS[trial] + 1
        steps = _MOST_STEPS[trial]
        while taken + 1 < refused and (refused > _MOST_STEPS[trial] or time.perf_counter() < until_s):
            if self._tried(self._note(trial, steps), lambda: self._looked_at(trial)):
                refused = steps
            else:
                taken = steps
            steps = (taken + refused) // 2
        return taken

    def _note(self, trial: str, steps: int) -> str:
        """Give a trial this size, and return the words that name it."""
        self._book.forget(trial)
        self._source.sizes[trial] = 2.0 ** (steps / _STEPS_OF_TWO)
        return f"{trial}, size {self._source.sizes[trial]:g}"

    def _looked_at(self, trial: str) -> str:
        """Return why a trial of the size that is noted is refused at first sight, "" where it is not."""
        with self._book.parameters_kept():
            try:
                moves = self._moves(self._book.contents.of(trial))
            except ProblemError:
                return LEFT_TO_ROUNDING
        pairs = zip(moves, self._usual_moves, strict=True)
        return "" if all(found <= WORSE * usual for found, usual in pairs) else LEFT_TO_ROUNDING

    def _moves(self, contents: Drawn) -> tuple[float, ...]:
        """Return by what part of itself each output moves where about half of the operands move by some last bits."""
        inputs, parameters = contents
        first = self._outputs(inputs, parameters)
        second = self._outputs(*moved_in_type(inputs, parameters))
        return tuple(map(_difference, first, second))

    def _outputs(self, inputs: Tensors, parameters: dict[str, torch.Tensor]) -> Tensors:
        self._book.place_parameters(parameters)
        return tuple(output.clone() for output in self._reference.run(inputs))

    def _shows_nothing(self, trial: str) -> str:
        """Return why a trial would show nothing: arguments of twice the size give the same output times a power of two.

        A product does so, an iteration does not. All parameters are doubled at once: the bias of a product grows with its
        weight.
        """
        case, weights = self._book.case(NOMINAL[0]), self._source.weights
        inputs, parameters = case.inputs, case.parameters
        if self._usual == (None, None):
            self._usual = self._errors_of(case)  # before there is another case beside it
        del case
        with self._book.parameters_kept():
            try:
                began_s = time.perf_counter()
                usual = self._outputs(inputs, parameters)
                self._run_s = time.perf_counter() - began_s
                if trial == LARGE_INPUTS:
                    doubled = self._outputs(self._source.times(inputs, _TWICE), parameters)
                else:
                    others = {n: parameters[n] * _TWICE for n in weights.free}
                    doubled = self._outputs(inputs, parameters | others)
                if all(map(_is_power_of_two_times, doubled, usual)):
                    return _SCALES
                self._usual_moves = self._usual_moves or self._moves((inputs, parameters))
            except ProblemError as error:
                return str(error) if not self._usual_moves else ""
        return ""


def _is_power_of_two_times(output: torch.Tensor, usual: torch.Tensor) -> bool:
    """Return whether an output is the usual one times a power of two, but for what no limit sees."""
    if not output.is_floating_point() or not output.numel():
        return torch.equal(output, usual)
    place = int(usual.abs().argmax())
    size, usual_size = float(output.flatten()[place]), float(usual.flatten()[place])
    if not usual_size or not size or not math.isfinite(ratio := size / usual_size) or ratio < 0:
        return torch.equal(output, usual)
    return _difference(usual * 2.0 ** round(math.log2(ratio)), output) <= _MERELY


def _difference(output: torch.Tensor, other: torch.Tensor) -> float:
    """Return by what part of itself an output differs from another one; infinity where either is not finite."""
    if not output.is_floating_point():
        return 0.0
    if not are_finite((output, other)):
        return math.inf
    size = float(torch.linalg.vector_norm(output, dtype=torch.float64))
    return float(torch.linalg.vector_norm(output - other, dtype=torch.float64)) / size if size else 0.0
