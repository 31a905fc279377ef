"""References that leave a kernel no work: a constant output, or one that something trivial passes for in every draw."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from ridgeline.tools.errors import BadReferenceError, ProblemError
from ridgeline.tools.judge.worker.grading.cases.case import Case
from ridgeline.tools.judge.worker.grading.cases.case_book import CaseBook
from ridgeline.tools.judge.worker.grading.grades import Grader
from ridgeline.tools.judge.worker.grading.probes import Passed, is_constant, passed, probes
from ridgeline.tools.records.finding import Finding
from ridgeline.tools.records.trial_names import NOMINAL
from ridgeline.tools.records.vocabulary import PrecisionClass, ReasonCode

_FURTHER = ("probe_0", "probe_1", "probe_2")
"""Labels of further nominal draws, made where outputs are trivial in both nominal trials: of a leaky neuron's spikes, whose
threshold is a parameter, two draws in five are the input itself."""


def find_degenerate(book: CaseBook, grader: Grader, dtypes: tuple[torch.dtype, ...]) -> Finding | None:
    """Return why a kernel has no work to do, None where it has; outputs that something trivial passes for are tightened.

    Raises:
        BadReferenceError: nothing tells which output is right.
    """
    return _Search(book, grader, dtypes).find()


class _Search:
    """Looks for trivial outputs that pass."""

    def __init__(self, book: CaseBook, grader: Grader, dtypes: tuple[torch.dtype, ...]) -> None:
        self._book = book
        self._grader = grader
        self._dtypes = dtypes

    def find(self) -> Finding | None:
        case, other = self._book.case(NOMINAL[0]), self._book.case(NOMINAL[1])
        if any(self._book.own_errors(each, PrecisionClass.FP32) is None for each in (case, other)):
            raise BadReferenceError.of_text(
                "forward() gives NaN or infinity where float64 gives a number, on inputs as get_inputs() draws "
                "them: it overflows on the way, so nothing tells which output is right; make the inputs smaller or the "
                "arithmetic stable"
            )
        if is_constant(case) and is_constant(other):
            return Finding(code=ReasonCode.CONSTANT_OUTPUT, reason="the reference's output is one number everywhere")
        passing = self._passing(case, other)
        if passing:
            self._tighten(passing)
            passing = self._passing(case, other)
        if self._tighten([found for found in passing if not found.is_work], only_once=True):
            passing = self._passing(case, other)
        trivial = self._in_other_draws(_trivial(passing), case)
        if trivial:
            reason = f"an output of {', '.join(trivial)} passes the comparison"
            return Finding(code=ReasonCode.TRIVIAL_OUTPUT_PASSES, reason=reason)
        return None

    def _in_other_draws(self, trivial: list[str], other: Case) -> list[str]:
        """Return which trivial outputs pass in every draw: beside one draw of a threshold all numbers may be above it."""
        for label in (NOMINAL[1], *_FURTHER):
            if trivial:
                found = self._trivial_in(label, other)
                trivial = trivial if found is None else [name for name in trivial if name in found]
        self._book.forget(*_FURTHER)
        return trivial

    def _trivial_in(self, label: str, other: Case) -> list[str] | None:
        """Return the trivial outputs that pass in a draw, None where the reference refuses it."""
        try:
            case = self._book.case(label)
        except ProblemError:
            return None
        is_told = self._book.own_errors(case, PrecisionClass.FP32) is not None
        return _trivial(self._passing(case, other)) if is_told else None

    def _passing(self, case: Case, other: Case) -> list[Passed]:
        """Return the probes that pass now."""
        found = (
            passed(p, case, self._grader.grade(p.outputs, case).passed_by) for p in probes(case, other, self._dtypes)
        )
        return [each for each in found if each is not None]

    def _tighten(self, passing: Sequence[Passed], *, only_once: bool = False) -> bool:
        """Judge the outputs more strictly of which something trivial passes, and return whether there are any."""
        chosen = {index for found in passing for index in found.outputs}
        if only_once:
            chosen = {index for index in chosen if not self._grader.is_tightened(index)}
        for index in chosen:
            self._grader.tighten(index)
        return bool(chosen)


def _trivial(passing: Sequence[Passed]) -> list[str]:
    """Return the probes by which no output is any work."""
    return [found.name for found in passing if found.is_everything and not found.is_work]
