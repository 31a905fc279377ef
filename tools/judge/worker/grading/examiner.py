"""Grade outputs: what is missing, how far off the rest is, which precision class that fits."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ridgeline.tools.judge.replies import Different, Graded, Missing, Same, Touched
from ridgeline.tools.judge.worker.call_form import Tensors
from ridgeline.tools.judge.worker.grading.case import (
    NOMINAL,
    Case,
    errors_of,
    exact_of,
    expected_of,
    fits_type,
)
from ridgeline.tools.judge.worker.grading.cases import CaseBook
from ridgeline.tools.judge.worker.grading.compare import Difference, Expected, compare, expect
from ridgeline.tools.judge.worker.grading.error_map import map_errors
from ridgeline.tools.judge.worker.grading.poison import (
    fill_words,
    holds_only,
    poison_word,
    unwritten,
)
from ridgeline.tools.judge.worker.grading.probes import is_constant, probes
from ridgeline.tools.judge.worker.memory import ArenaMemory
from ridgeline.tools.judge.worker.reference import Reference
from ridgeline.tools.judge.worker.regions import torch_dtype
from ridgeline.tools.modelnew.tensor_bits import copied_bits, equal_bits
from ridgeline.tools.records.error_map import LimitUse, Measure, nearest_limit
from ridgeline.tools.records.finding import Finding
from ridgeline.tools.records.precision import (
    CRFM_TOLERANCE,
    NOMINAL_GATE,
    Errors,
    Gate,
    accepted_classes,
    gate_for,
    strictness,
)
from ridgeline.tools.records.results import Trial
from ridgeline.tools.records.vocabulary import STRICTEST_FIRST, PrecisionClass, ReasonCode, Role

_HOPELESS = 10 * NOMINAL_GATE[PrecisionClass.BF16]  # beyond this no class is worth computing for the message
_STALE = 1e-2  # so close to another trial's expected output is no coincidence
_CRFM_GATE = Gate(overall=CRFM_TOLERANCE, row=CRFM_TOLERANCE, element=CRFM_TOLERANCE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grade:
    """The grade of one set of outputs."""

    errors: Errors
    measured: PrecisionClass | None  # the strictest class whose gates it meets; None when it meets none
    gate: Gate
    passed: bool
    differences: tuple[Difference, ...]
    nearest: LimitUse | None  # of the measured class's limits, or of the loosest that is accepted; None: it is exact


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
        self._tolerance = tolerance
        specs = reference.signature.with_role(Role.OUTPUT)
        self._names = tuple(s.name for s in specs)
        self._dtypes = tuple(torch_dtype(s.dtype) for s in specs)
        self._accepted = accepted_classes(tolerance, tuple(s.dtype for s in specs))
        self._is_crfm = tolerance is PrecisionClass.CRFM
        self._tightened = False
        self._words: dict[int, tuple[int, ...]] = {}
        self._over_nan: set[int] = set()  # the sets whose poison is NaN
        self._snapshot: Tensors = ()
        self.degenerate = self._probe()

    # --------------------------------------------------------------------------------------------------------- probes

    def _probe(self) -> Finding | None:
        case, other = self._book.case(NOMINAL[0]), self._book.case(NOMINAL[1])
        if is_constant(case):
            return Finding(code=ReasonCode.CONSTANT_OUTPUT, reason="the reference's output is one number everywhere")
        passing = self._passing(case, other)
        if passing:
            self._is_crfm, self._tightened = False, not self._is_crfm
            passing = self._passing(case, other)
        if any(not is_work for is_work in passing.values()) and not self._tightened:
            self._tightened = True
            passing = self._passing(case, other)
        trivial = [name for name, is_work in passing.items() if not is_work]
        if trivial:
            reason = f"an output of {', '.join(trivial)} passes the comparison"
            return Finding(code=ReasonCode.TRIVIAL_OUTPUT_PASSES, reason=reason)
        return None

    def _passing(self, case: Case, other: Case) -> dict[str, bool]:
        """Return the probes that pass now, and whether each is work."""
        found = probes(case, other, self._dtypes)
        return {p.name: p.is_work for p in found if self._grade(p.outputs, case).passed}

    # --------------------------------------------------------------------------------------------------------- poison

    def poison(self, set_index: int, *, nan: bool) -> None:
        """Overwrite a set's outputs with fresh secret bits."""
        words = tuple(poison_word(d, nan=nan) for d in self._dtypes)
        for view, word in zip(self._memory.outputs[set_index], words, strict=True):
            fill_words(view, word)
        self._words[set_index] = words
        (self._over_nan.add if nan else self._over_nan.discard)(set_index)

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
        for name, view, word, want, found in zip(self._names, outputs, words, expected, known, strict=True):
            if is_nan and found is not None and _has_no_nan(found, want):
                continue
            missing = unwritten(view, word, want)
            if missing is not None:
                width = view.shape[-1] if view.dim() else 1
                return Missing(output=name, count=missing.count, total=view.numel(), first=missing.first, width=width)
        return None

    def _touched(self, set_index: int, case: Case) -> str:
        """Return the name of the input that no longer holds what it was given, "" for none."""
        if self._memory.device.seals_inputs:
            return ""
        views = self._memory.inputs[set_index]
        pairs = zip(self._reference.input_names, views, case.inputs, strict=True)
        return next((n for n, view, given in pairs if not equal_bits(view, given.to(view.dtype))), "")

    # ---------------------------------------------------------------------------------------------------------- trials

    def prepare(self, name: str, set_index: int, *, nan: bool) -> None:
        """Put a trial's inputs and parameters in place and poison the set's outputs."""
        case = self._book.case(name)
        for view, value in zip(self._memory.inputs[set_index], case.inputs, strict=True):
            view.copy_(value)
        self._book.place_parameters(case.parameters)
        self.poison(set_index, nan=nan)

    def examine(self, name: str, set_index: int) -> Touched | Missing | Graded:
        """Grade a set's outputs against a trial and keep a copy of them for `examine_repeat` and `changed`."""
        outputs = self._memory.outputs[set_index]
        self._snapshot = tuple(map(copied_bits, outputs))
        case = self._book.case(name)
        touched = self._touched(set_index, case)
        if touched:
            return Touched(name=touched)
        differences = self._differences(outputs, case.expected)
        return self._missing(set_index, case.expected, differences) or self._graded(case, outputs, differences)

    def examine_repeat(self, name: str, set_index: int) -> Missing | Same | Different:
        """Compare a second run on the same inputs, over other poison, with the copy kept by `examine`, which passed."""
        if not self.changed(set_index):
            return Same()  # what would be missing held other poison in the first run
        outputs = self._memory.outputs[set_index]
        case = self._book.case(name)
        missing = self._missing(set_index, case.expected)
        if missing is not None:
            self._snapshot = tuple(map(copied_bits, outputs))
            return missing
        differences = [compare(o, expect(s.clone())) for o, s in zip(outputs, self._snapshot, strict=True)]
        worst = max(d.errors.overall for d in differences)
        return Different(difference=min(worst, 1e300), graded=self._graded(case, outputs))

    def changed(self, set_index: int) -> bool:
        """Return whether a set's outputs differ from the copy kept by `examine`, in any bit."""
        outputs = self._memory.outputs[set_index]
        return not all(equal_bits(o, s) for o, s in zip(outputs, self._snapshot, strict=True))

    def check(self, set_index: int) -> Trial:
        """Grade a set's outputs of now against what the reference gives for the set's inputs of now."""
        # nominal mixtures: the classes' own errors are those of the nominal trial
        own = self._book.own_of(NOMINAL[0], self._accepted)
        inputs, parameters = self._memory.inputs[set_index], self._memory.parameters
        outputs = self._memory.outputs[set_index]
        are_floating = all(output.is_floating_point() for output in outputs)  # nothing is exact: no native run for it
        exact = exact_of(outputs if are_floating else self._reference.run(inputs))
        expected = expected_of(self._reference, inputs, parameters, exact)
        name, differences = f"set_{set_index}", self._differences(outputs, expected)
        if set_index in self._words and self._missing(set_index, expected, differences) is not None:
            return Trial(name=name, rel_error=_finite(math.inf), gate=0.0, passed=False)
        grade = self._grade(outputs, Case(name, inputs, parameters, expected, dict(own)), differences)
        if not grade.passed:  # by what the classes err on these very contents: a mean of signed numbers may cancel
            outputs_of_torch = self._reference.run(inputs)
            if not fits_type(outputs_of_torch, expected):  # the contents are beyond the type: they say nothing
                return Trial(name=name, rel_error=0.0, gate=0.0, passed=True)
            native = errors_of(outputs_of_torch, expected)
            by_these = Case(name, inputs, parameters, expected, {PrecisionClass.FP32: native})
            grade = self._grade(outputs, by_these, differences)
        return _trial(name, grade)

    # ---------------------------------------------------------------------------------------------------------- grades

    def grade_reference(self, outputs: Tensors) -> Grade:
        """Grade outputs of the reference itself for the first nominal trial: a baseline's error and class."""
        return self._grade(outputs, self._book.case(NOMINAL[0]))

    def passes(self, outputs: Tensors, case: Case) -> bool:
        """Return whether outputs would pass for a case's."""
        return self._grade(outputs, case).passed

    def _differences(self, outputs: Tensors, expected: tuple[Expected, ...]) -> tuple[Difference, ...]:
        return tuple(compare(o, e, with_crfm=self._is_crfm) for o, e in zip(outputs, expected, strict=True))

    def _grade(self, outputs: Tensors, case: Case, differences: tuple[Difference, ...] = ()) -> Grade:
        """Return the grade of a case's outputs; `differences` are theirs, where they are known."""
        differences = differences or self._differences(outputs, case.expected)
        errors = Errors(overall=0.0)
        for difference in differences:
            errors = errors.merged(difference.errors)
        gate_of = functools.cache(functools.partial(self._gate, case, errors))
        measured = self._classify(errors, gate_of)
        in_class = gate_of(measured).uses(errors) if measured in STRICTEST_FIRST else ()
        if self._is_crfm:
            found = LimitUse(measure=Measure.CRFM, figure=max(d.crfm for d in differences), limit=CRFM_TOLERANCE)
            return Grade(
                errors=errors,
                measured=measured or (PrecisionClass.CRFM if found.is_within else None),
                gate=_CRFM_GATE,
                passed=found.is_within,
                differences=differences,
                nearest=nearest_limit(found, *in_class),
            )
        gate, loosest = gate_of(self._accepted[-1]), strictness(self._accepted[-1])
        is_exact = measured is PrecisionClass.EXACT
        passed = is_exact or (measured is not None and strictness(measured) <= loosest)
        return Grade(
            errors=errors,
            measured=measured,
            gate=gate,
            passed=passed,
            differences=differences,
            nearest=None if is_exact else nearest_limit(*(in_class if passed else gate.uses(errors))),
        )

    def _classify(self, errors: Errors, gate_of: Callable[[PrecisionClass], Gate]) -> PrecisionClass | None:
        if errors.overall == 0.0 and errors.worst_element == 0.0:
            return PrecisionClass.EXACT
        last = max(strictness(self._accepted[-1]), strictness(PrecisionClass.BF16))
        for precision in STRICTEST_FIRST[strictness(self._accepted[0]) : last + 1]:
            if errors.overall > _HOPELESS and strictness(precision) > strictness(self._accepted[-1]):
                return None
            if gate_of(precision).admits(errors):
                return precision
        return None

    def _gate(self, case: Case, errors: Errors, precision: PrecisionClass) -> Gate:
        """Return the limits of a class; all 0 where it cannot hold these numbers.

        They know what sums lose only where these errors are near a limit that does not: few ever are.
        """
        own = self._book.own_errors(case, precision)
        if own is None:
            return Gate(overall=0.0, row=0.0, element=0.0)
        gate = gate_for(precision, own, tightened=self._tightened)
        if not gate.is_nearly_used_up(errors):
            return gate
        sums = self._book.sum_errors(case, precision)
        return gate_for(precision, own, sums=sums, tightened=self._tightened)

    def _graded(self, case: Case, outputs: Tensors, differences: tuple[Difference, ...] = ()) -> Graded:
        grade = self._grade(outputs, case, differences)
        graded = Graded(trial=_trial(case.name, grade), measured=grade.measured)
        return graded if grade.passed else self._explained(graded, case, grade, outputs)

    def _explained(self, graded: Graded, case: Case, grade: Grade, outputs: Tensors) -> Graded:
        index = max(range(len(grade.differences)), key=lambda i: grade.differences[i].errors.overall)
        difference = grade.differences[index]
        worst = difference.worst or compare(outputs[index], case.expected[index], with_worst=True).worst
        return replace(
            graded,
            output=self._names[index],
            stale=self._is_stale(case),
            non_finite=difference.non_finite,
            worst=worst,
            wrong_integers=difference.wrong_integers,
            invalid_bools=difference.invalid_bools,
            error_map=map_errors(outputs[index], case.expected[index], grade.gate.element),
        )

    def _is_stale(self, case: Case) -> str:
        """Return the earlier trial whose output this is, "" for none."""
        for name in self._trials:
            if name == case.name:
                break
            earlier = self._book.case(name)
            found = [compare(o, e).errors.overall for o, e in zip(self._snapshot, earlier.expected, strict=True)]
            if self._snapshot and max(found) < _STALE:
                return name
        return ""


def _has_no_nan(found: Difference, want: Expected) -> bool:
    """Return whether an output that was compared has numbers alone: what is expected has, and it matches."""
    return want.all_finite and not want.is_exact and found.non_finite is None


def _trial(name: str, grade: Grade) -> Trial:
    use = grade.nearest
    return Trial(
        name=name,
        rel_error=_finite(grade.errors.overall),
        gate=grade.gate.overall,
        passed=grade.passed,
        nearest=use and replace(use, figure=_finite(use.figure), limit=_finite(use.limit)),
    )


def _finite(value: float) -> float:
    """JSON has no infinity."""
    return min(value, 1e300) if not math.isnan(value) else 1e300
