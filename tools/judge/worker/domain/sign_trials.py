"""The arguments of one sign that a reference takes with other signs, found by running it.

Variances, probabilities and what a logarithm is taken of give NaN, and stay as they are. So does what would leave the
output to rounding: a sum of positive numbers in a denominator may become next to nothing once their signs are mixed, and
honest kernels would differ there by the order of their sums.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import torch

from ridgeline.tools.errors import BadReferenceError
from ridgeline.tools.judge.worker.call_form import Tensors
from ridgeline.tools.judge.worker.domain.conditioning import (
    LEFT_TO_ROUNDING,
    WORSE,
    are_within,
    errors_by_rounding,
    room_of,
)
from ridgeline.tools.judge.worker.domain.halving import settle_by_halves
from ridgeline.tools.judge.worker.domain.objections import Known
from ridgeline.tools.judge.worker.domain.relaxations import objection_to_relaxation
from ridgeline.tools.judge.worker.grading.cases.case import Case, EachErrors, non_finite_of
from ridgeline.tools.judge.worker.grading.cases.case_book import CaseBook
from ridgeline.tools.judge.worker.grading.cases.class_errors import floating_errors, worst_of
from ridgeline.tools.judge.worker.grading.limits.plain_sums import PLAIN_WAYS, plain_outputs
from ridgeline.tools.judge.worker.grading.outputs.expected import Expected
from ridgeline.tools.judge.worker.inputs.source import ArgumentKey, SecretSource
from ridgeline.tools.judge.worker.own_time import OwnTime
from ridgeline.tools.judge.worker.reference import Reference
from ridgeline.tools.records.precision import PLAIN_LANES, Errors
from ridgeline.tools.records.trial_names import FINITE_ALONE, NOMINAL, PARALLEL_ROWS, SIGNED, TINY_NUMBERS, part_of
from ridgeline.tools.records.vocabulary import PrecisionClass, Role

_LIMIT_S = 3.0
"""Time for one trial's arguments; what is refused together after it is not looked at one by one."""
_ROOM = 10.0
"""Operands rounded to tf32 may move a trial's output by this x tf32's nominal gates: more is rounding made large."""
_ROOM_OF_SIGNS = 4.0
"""The same of other signs, which bring sums of many terms near zero, and of tiny numbers, whose quotients are huge."""
_ROOM_OF_TYPE = 1.0
"""Part of fp32's gates by which the reference's own type may be off."""
_ROOM_OF_TYPE_OF_SIGNS = 1 / 4
"""The same of these: kernels that round otherwise have the rest."""
_ROOM_OF_TYPE_OF_PARALLEL_ROWS = 4.0
"""The same of parallel rows: what is made of a distance of 0 errs more than any other number, and few are."""

_GROWN = 2.0**10
"""Beyond this x the largest number of a nominal output what is asked to be finite only is the inverse of a rounding error."""
NEARLY_INFINITE = "its output would be nearly infinite"

SignObjection = Callable[[str], str]
"""Returns why the reference gives nothing for a trial of the signs that are noted, "" when it does."""


class SignTrials:
    """Finds the arguments of each trial of signs, and notes them in the case book."""

    def __init__(
        self, book: CaseBook, source: SecretSource, objection: SignObjection, *, limit_s: float = _LIMIT_S
    ) -> None:
        """Look at nothing yet."""
        self._book = book
        self._objection = objection
        self._limit_s = limit_s
        self._candidates = source.of_one_sign
        self.refused: dict[str, dict[ArgumentKey, str]] = {}
        """The arguments that stay as they are, by trial, with the reason."""

    def settle(self) -> tuple[str, ...]:
        """Return the trials in which some argument has other signs."""
        if not self._candidates:
            return ()
        return tuple(trial for trial in SIGNED if self._settle_trial(trial))

    def _settle_trial(self, trial: str) -> bool:
        lost = {c: why for each in self.refused.values() for c, why in each.items() if why is Known.LOST}
        candidates = tuple(c for c in self._candidates if c not in lost)  # another judge for each of the lost is enough
        refused = self._settle_arguments(trial, candidates)
        self.refused[trial] = lost | refused
        taken = frozenset(candidates).difference(refused)
        for role, part in _parts(taken).items():
            name = part_of(trial, role)
            self._note(name, part)
            if part != taken and part and self._objection(name):
                self._note(name, frozenset())
            self._book.forget(name)  # only timed sets have it
        return bool(taken)

    def _settle_arguments(self, trial: str, candidates: Sequence[ArgumentKey]) -> dict[ArgumentKey, str]:
        """Note those of the candidates that the reference takes together, and return the others with the reason."""
        spent = OwnTime()
        return settle_by_halves(
            candidates,
            note=lambda chosen: self._note(trial, chosen),
            objection_to=lambda _asked, _taken: self._objection(trial),
            is_over=lambda: spent.is_beyond(self._limit_s),
        )

    def _note(self, name: str, chosen: frozenset[ArgumentKey]) -> None:
        changes = self._book.changes
        others = {n: each for n, each in changes.signed.items() if n != name}
        self._book.use(replace(changes, signed=others | ({name: chosen} if chosen else {})))


def _parts(chosen: frozenset[ArgumentKey]) -> Mapping[Role, frozenset[ArgumentKey]]:
    return {
        Role.INPUT: frozenset(c for c in chosen if isinstance(c, int)),
        Role.PARAMETER: frozenset(c for c in chosen if isinstance(c, str)),
    }


def objection_to_signs(reference: Reference, book: CaseBook, case: Case, non_finite_as_given: Tensors) -> str:
    """Return why a case of other signs is refused: what gives no number, or hardly a digit of one; "" when it is not."""
    pairs = zip(non_finite_of(case), non_finite_as_given, strict=True)
    if any(bool((found & ~given).any()) for found, given in pairs):
        return Known.OUTSIDE
    if case.name in FINITE_ALONE:
        is_near = _is_nearly_infinite(book, case) or _is_infinite_by_plain_sums(reference, book, case)
        return NEARLY_INFINITE if is_near else ""
    if case.name in book.changes.signed and (objection := objection_to_relaxation(reference, book, case)):
        return objection
    try:
        return LEFT_TO_ROUNDING if _is_left_to_rounding(reference, book, case) else ""
    except BadReferenceError:  # it refuses rounded operands, weights of sum 1 say: nothing is told by them
        return ""


def _is_nearly_infinite(book: CaseBook, case: Case) -> bool:
    """Return whether numbers of a case's output are far beyond a nominal one's: another kernel's may divide by zero there."""
    pairs = zip(case.expected, book.case(NOMINAL[0]).expected, strict=True)
    return any(not now.is_exact and _largest_of(now) > _GROWN * _largest_of(was) for now, was in pairs)


def _is_infinite_by_plain_sums(reference: Reference, book: CaseBook, case: Case) -> bool:
    """Return whether a case's output is not finite where a plain kernel makes its sums: PyTorch's lose less."""
    with book.scalars_of(case.name):
        found = [plain_outputs(reference, case, way) for way in PLAIN_WAYS[: len(PLAIN_LANES)]]
    return any(outputs is not None and floating_errors(outputs, case) is None for outputs in found)


def _largest_of(expected: Expected) -> float:
    values = expected.values
    return float(values.abs().nan_to_num_(0.0, 0.0, 0.0).amax()) if values.numel() else 0.0


def _is_left_to_rounding(reference: Reference, book: CaseBook, case: Case) -> bool:
    """Return whether a case's output moves far by what rounds its operands, and much further than a nominal one's."""
    found = errors_by_rounding(reference, case)
    if any(errors is None for errors in found):
        return True
    if case.name == TINY_NUMBERS and (flushed := _flushed_errors(reference, case)) is not None:
        by_tf32, by_type = found
        found = by_tf32, worst_of(flushed, by_type)
    count = len(case.expected)
    is_narrow = case.name in book.changes.signed or case.name == TINY_NUMBERS
    of_arranged = _ROOM_OF_TYPE_OF_PARALLEL_ROWS if case.name == PARALLEL_ROWS else _ROOM_OF_TYPE
    room, of_type = (_ROOM_OF_SIGNS, _ROOM_OF_TYPE_OF_SIGNS) if is_narrow else (_ROOM, of_arranged)
    limits = (count * (room_of(PrecisionClass.TF32, room),), count * (room_of(PrecisionClass.FP32, of_type),))
    if all(are_within(e, limit, 1.0) for e, limit in zip(found, limits, strict=True)):
        return False
    usuals = errors_by_rounding(reference, book.case(NOMINAL[0]))
    return not all(
        are_within(e, limit, 1.0) or are_within(e, nominal, WORSE)
        for e, limit, nominal in zip(found, limits, usuals, strict=True)
    )


def _flushed_errors(reference: Reference, case: Case) -> EachErrors | None:
    """Return what its own type gives where each number below its smallest normal one is 0, as in a kernel of `-ffast-math`.

    Infinite errors where that is no number; None on a GPU, and where the processor has no such mode.
    """
    if any(not each.is_cpu for each in case.inputs):
        return None
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # the mode is a thread's own
    try:
        if not torch.set_flush_denormal(True):
            return None
        found = floating_errors(reference.in_own_type(case.inputs, case.parameters), case)
    finally:
        torch.set_flush_denormal(False)
        torch.set_num_threads(threads)
    return found or tuple(Errors(overall=math.inf) for _ in case.expected)
