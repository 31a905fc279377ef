"""Grade outputs: what is missing, how far off the rest is, which precision class that fits."""

from __future__ import annotations

import functools
import math
import secrets
from collections.abc import Sequence
from dataclasses import replace

import torch

from ridgeline.tools.judge.replies import Beyond, Different, Graded, Missing, Same, Touched
from ridgeline.tools.judge.worker.call_form import Tensors
from ridgeline.tools.judge.worker.grading.cases.case import (
    Case,
    errors_of,
    exact_of,
    expected_of,
    fits_type,
    numbers_of_either,
    with_expected_numbers,
)
from ridgeline.tools.judge.worker.grading.cases.case_book import CaseBook
from ridgeline.tools.judge.worker.grading.cases.vector_signs import as_expected
from ridgeline.tools.judge.worker.grading.degenerate import find_degenerate
from ridgeline.tools.judge.worker.grading.grades import Grade, Grader
from ridgeline.tools.judge.worker.grading.limits.narrowing import computed_dtypes
from ridgeline.tools.judge.worker.grading.limits.unrounded import unrounded_outputs
from ridgeline.tools.judge.worker.grading.outputs.compare import Difference, compare
from ridgeline.tools.judge.worker.grading.outputs.error_map import map_errors
from ridgeline.tools.judge.worker.grading.outputs.expected import Expected
from ridgeline.tools.judge.worker.grading.outputs.poison import (
    fill_words,
    holds_only,
    poison_word,
    unwritten,
)
from ridgeline.tools.judge.worker.grading.outputs.rounding_pattern import is_like_rounding
from ridgeline.tools.judge.worker.grading.outputs.row_sizes import SmallRows
from ridgeline.tools.judge.worker.grading.outputs.small_rows import worst_of_lost
from ridgeline.tools.judge.worker.memory import ArenaMemory
from ridgeline.tools.judge.worker.reference import Reference
from ridgeline.tools.judge.worker.regions import torch_dtype
from ridgeline.tools.modelnew.tensor_bits import copied_bits, equal_bits
from ridgeline.tools.records.error_map import UNBOUNDED
from ridgeline.tools.records.precision import NOMINAL_GATE
from ridgeline.tools.records.results import Trial
from ridgeline.tools.records.trial_names import FINITE_ALONE, NOMINAL
from ridgeline.tools.records.vocabulary import PrecisionClass, Role

_STALE = 1e-2  # so close to another trial's expected output is no coincidence, unless it is as close to its own


class Examiner:
    """Compares what lies in the sets' outputs with what the cases expect."""

    def __init__(
        self,
        book: CaseBook,
        trials: tuple[str, ...],
        memory: ArenaMemory,
        reference: Reference,
        tolerance: PrecisionClass,
    ) -> None:
        self._book = book
        self._trials = trials  # in the order in which they are run
        self._memory = memory
        self._reference = reference
        specs = reference.signature.with_role(Role.OUTPUT)
        self.names = tuple(s.name for s in specs)
        self._dtypes = tuple(torch_dtype(s.dtype) for s in specs)
        self._grader = Grader(book, tolerance, computed_dtypes(reference, book, tuple(s.dtype for s in specs)))
        self._words: dict[int, tuple[int, ...]] = {}
        self._behind: dict[int, int] = {}  # what every byte behind a set's outputs holds
        self._over_nan: set[int] = set()  # the sets whose poison is NaN
        self._snapshot: Tensors = ()
        self.degenerate = find_degenerate(book, self._grader, self._dtypes)
        self._unrounded = unrounded_outputs(reference, book, trials, self._dtypes)
        self._grader.expect_no_rounding(self._unrounded)

    # --------------------------------------------------------------------------------------------------------- poison

    def poison(self, set_index: int, *, nan: bool) -> None:
        """Overwrite a set's outputs with fresh secret bits, and the bytes behind each."""
        self._poison_outputs(set_index, nan=nan)
        self._behind[set_index] = 1 + secrets.randbelow(255)  # zeros are what padding is filled with
        for span in self._memory.behind_outputs[set_index]:
            span.fill_(self._behind[set_index])

    def _poison_outputs(self, set_index: int, *, nan: bool) -> None:
        words = tuple(poison_word(d, nan=nan) for d in self._dtypes)
        for view, word in zip(self._memory.outputs[set_index], words, strict=True):
            fill_words(view, word)
        self._words[set_index] = words
        (self._over_nan.add if nan else self._over_nan.discard)(set_index)

    def poison_timed(self, set_index: int) -> None:
        """Overwrite a timed set's outputs; the kind is drawn for each set: one kind for all would tell timed calls."""
        self._poison_outputs(set_index, nan=bool(secrets.randbits(1)))

    def is_unwritten(self, set_index: int) -> bool:
        """Return whether a set's outputs hold nothing but the poison."""
        words = zip(self._memory.outputs[set_index], self._words[set_index], strict=True)
        return all(holds_only(view, word) for view, word in words)

    def _missing(
        self, set_index: int, expected: tuple[Expected, ...], differences: Sequence[Difference] = ()
    ) -> Missing | None:
        """Return the first output that holds poison; `differences` are the outputs', where they are known."""
        outputs, is_nan = self._memory.outputs[set_index], set_index in self._over_nan
        known = differences or (None,) * len(outputs)
        words = self._words[set_index]
        for name, view, word, want, found in zip(self.names, outputs, words, expected, known, strict=True):
            if is_nan and found is not None and _has_no_nan(found, want):
                continue
            missing = unwritten(view, word, want)
            if missing is not None:
                width = view.shape[-1] if view.dim() else 1
                return Missing(output=name, count=missing.count, total=view.numel(), first=missing.first, width=width)
        return None

    def _beyond(self, set_index: int) -> Beyond | None:
        """Return the first output behind which somebody wrote since it was poisoned for a trial."""
        for name, span in zip(self.names, self._memory.behind_outputs[set_index], strict=True):
            changed = span.ne(self._behind[set_index])
            count = int(changed.sum())
            if count:
                return Beyond(output=name, count=count, first=int(changed.to(torch.uint8).argmax()))
        return None

    def _touched(self, set_index: int, case: Case) -> str:
        """Return the name of the input that no longer holds what it was given, "" for none."""
        if self._memory.device.seals_inputs:
            return ""
        views = self._memory.inputs[set_index]
        pairs = zip(self._reference.input_names, views, case.inputs, strict=True)
        return next((n for n, view, given in pairs if not equal_bits(view, given.to(view.dtype))), "")

    # ---------------------------------------------------------------------------------------------------------- trials

    def prepare(self, name: str, set_index: int, *, nan: bool, is_examined: bool = True) -> None:
        """Put a trial's inputs and parameters in place and poison the set's outputs; what is not examined needs no case."""
        if is_examined:
            case = self._book.case(name)
            inputs, parameters = case.inputs, case.parameters
        else:
            inputs, parameters = self._book.contents.at_hand(name)
        for view, value in zip(self._memory.inputs[set_index], inputs, strict=True):
            view.copy_(value)
        self._book.place_parameters(parameters)
        self.poison(set_index, nan=nan)

    def examine(self, name: str, set_index: int) -> Touched | Beyond | Missing | Graded:
        """Grade a set's outputs against a trial and keep a copy of them for `examine_repeat` and `changed`."""
        outputs = self._memory.outputs[set_index]
        self._snapshot = tuple(map(copied_bits, outputs))
        case = self._book.case(name)
        touched = self._touched(set_index, case)
        if touched:
            return Touched(name=touched)
        beyond = self._beyond(set_index)
        if beyond is not None:
            return beyond
        differences = self._grader.differences(outputs, case.expected)
        return self._missing(set_index, case.expected, differences) or self._graded(case, outputs, differences)

    def examine_repeat(self, name: str, set_index: int) -> Beyond | Missing | Same | Different:
        """Compare a second run on the same inputs, over other poison, with the copy kept by `examine`, which passed."""
        beyond = self._beyond(set_index)
        if beyond is not None:
            return beyond
        if not self.changed(set_index):
            return Same()  # what would be missing held other poison in the first run
        outputs = self._memory.outputs[set_index]
        case = self._book.case(name)
        missing = self._missing(set_index, case.expected)
        if missing is not None:
            self._snapshot = tuple(map(copied_bits, outputs))
            return missing
        graded = self._graded(case, outputs)
        is_compared = case.name not in FINITE_ALONE
        difference = self._grader.repeat_difference(outputs, self._snapshot, case) if is_compared else 0.0
        return Different(difference=min(difference, UNBOUNDED), graded=graded)

    def changed(self, set_index: int) -> bool:
        """Return whether a set's outputs differ from the copy kept by `examine`, in any bit."""
        outputs = self._memory.outputs[set_index]
        return not all(equal_bits(o, s) for o, s in zip(outputs, self._snapshot, strict=True))

    def check(self, set_index: int) -> Trial:
        """Grade a set's outputs of now against what the reference gives for the set's inputs of now."""
        # nominal mixtures: the classes' own errors are those of the nominal trial
        own = self._book.own_of(NOMINAL[0], self._grader.accepted)
        inputs, parameters = self._memory.inputs[set_index], self._memory.parameters
        outputs = self._memory.outputs[set_index]
        are_floating = all(output.is_floating_point() for output in outputs)  # nothing is exact: no native run for it
        exact = exact_of(outputs if are_floating else self._reference.run(inputs))
        expected = expected_of(self._reference, inputs, parameters, exact)
        name, differences = f"set_{set_index}", self._grader.differences(outputs, expected)
        if set_index in self._words and self._missing(set_index, expected, differences) is not None:
            return _unwritten(name)
        case_of = functools.partial(Case, name, inputs, parameters, expected, made=self._book.made)
        grade = self._grader.grade(outputs, case_of(dict(own)), differences)
        if not grade.passed:  # by what the classes err on these very contents: a mean of signed numbers may cancel
            outputs_of_torch = self._reference.run(inputs)
            outputs_of_torch = as_expected(
                self._reference, outputs_of_torch, expected, lambda: self._reference.run(inputs)
            )
            if not fits_type(outputs_of_torch, expected):  # the contents are beyond the type: some elements say nothing
                is_strict = not self._book.case(NOMINAL[0]).fits  # every set's contents are
                outputs, outputs_of_torch = (
                    numbers_of_either(each, outputs_of_torch, expected, is_strict=is_strict)
                    for each in (outputs, outputs_of_torch)
                )
                differences = ()
            native = errors_of(outputs_of_torch, expected)
            grade = self._grader.grade(outputs, case_of({PrecisionClass.FP32: native}), differences)
        return _trial(name, grade)

    def check_trial(self, name: str, set_index: int) -> Trial:
        """Grade a set's outputs of now against what the reference gives for a trial, whose contents it has."""
        case, outputs = self._book.case(name), self._memory.outputs[set_index]
        differences = self._grader.differences(outputs, case.expected)
        if self._missing(set_index, case.expected, differences) is not None:
            return _unwritten(name)
        return _trial(name, self._grader.grade(*_as_asked(case, outputs, differences)))

    # ---------------------------------------------------------------------------------------------------------- grades

    def grade_reference(self, outputs: Tensors) -> Grade:
        """Grade outputs of the reference itself for the first nominal trial: a baseline's error and class."""
        return self._grader.grade(outputs, self._book.case(NOMINAL[0]))

    def passed_by(self, outputs: Tensors, case: Case) -> tuple[bool, ...]:
        """Return of each output whether it would pass for a case's."""
        return self._grader.grade(*_as_asked(case, outputs)).passed_by

    def _graded(self, case: Case, outputs: Tensors, differences: tuple[Difference, ...] = ()) -> Graded:
        outputs, case, differences = _as_asked(case, outputs, differences)
        grade = self._grader.grade(outputs, case, differences)
        graded = Graded(trial=_trial(case.name, grade), measured=grade.measured)
        return graded if grade.passed else self._explained(graded, case, grade, outputs)

    def _explained(self, graded: Graded, case: Case, grade: Grade, outputs: Tensors) -> Graded:
        index, difference = grade.output, grade.differences[grade.output]
        want = case.expected[index]
        if grade.lost is not None:
            return self._explained_lost(graded, grade.lost, outputs[index], want, self.names[index])
        worst = difference.worst or compare(outputs[index], want, with_worst=True).worst
        own = self._book.own_errors(case, by) if (by := grade.measured) and by in NOMINAL_GATE else None
        return replace(
            graded,
            output=self.names[index],
            stale=self._earlier_trial_of_output(case, outputs, grade.errors.overall),
            non_finite=difference.non_finite,
            worst=worst,
            wrong_integers=difference.wrong_integers,
            invalid_bools=difference.invalid_bools,
            is_unrounded=index in self._unrounded,
            is_like_rounding=own is not None and is_like_rounding(outputs[index], want, difference.errors, own[index]),
            error_map=map_errors(outputs[index], want, grade.gate.element),
        )

    def _explained_lost(
        self, graded: Graded, lost: SmallRows, output: torch.Tensor, want: Expected, name: str
    ) -> Graded:
        return replace(
            graded,
            output=name,
            lost_rows=len(lost),
            lost_share=float(lost.norms.max()) / (want.rms * math.sqrt(output.shape[-1])),
            worst=worst_of_lost(output, want, lost),
            error_map=map_errors(output, want, 0.0, lost.places),
        )

    def _earlier_trial_of_output(self, case: Case, outputs: Tensors, own_error: float) -> str:
        """Return the earlier trial whose output this is, nearer to that than to its own; "" for none."""
        for name in self._trials:
            if name == case.name:
                break
            earlier = self._book.case(name)
            found = [compare(o, e).errors.overall for o, e in zip(outputs, earlier.expected, strict=True)]
            if max(found) < min(_STALE, own_error):
                return name
        return ""


def _has_no_nan(found: Difference, want: Expected) -> bool:
    """Return whether an output that was compared has numbers alone: what is expected has, and it matches."""
    return want.all_finite and not want.is_exact and found.non_finite is None


def _as_asked(
    case: Case, outputs: Tensors, differences: tuple[Difference, ...] = ()
) -> tuple[Tensors, Case, tuple[Difference, ...]]:
    """Return what is graded of a case: where only finite numbers are asked for, each that is one counts as right."""
    is_graded = case.name not in FINITE_ALONE
    return (outputs, case, differences) if is_graded else (with_expected_numbers(outputs, case.expected), case, ())


def _trial(name: str, grade: Grade) -> Trial:
    use = grade.nearest
    return Trial(
        name=name,
        rel_error=_finite(grade.errors.overall),
        gate=grade.gate.overall,
        passed=grade.passed,
        nearest=use and replace(use, figure=_finite(use.figure), limit=_finite(use.limit)),
    )


def _unwritten(name: str) -> Trial:
    return Trial(name=name, rel_error=_finite(math.inf), gate=0.0, passed=False)


def _finite(value: float) -> float:
    """JSON has no infinity."""
    return min(value, UNBOUNDED) if not math.isnan(value) else UNBOUNDED
