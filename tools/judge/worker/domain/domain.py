"""The reference's domain: which trials, which other values of each input, and which mixtures it takes.

Only running the reference shows its domain. Each trial is tried; a refused one is recorded with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

import torch

from ridgeline.tools.errors import DeviceLostError, ProblemError, without_name
from ridgeline.tools.judge.worker.call_form import Scalar, Tensors
from ridgeline.tools.judge.worker.domain.arguments.arranged_inputs import ArrangedInputs
from ridgeline.tools.judge.worker.domain.arguments.crowded_inputs import CrowdedInputs
from ridgeline.tools.judge.worker.domain.arguments.effects import is_read
from ridgeline.tools.judge.worker.domain.arguments.lifted_inputs import settle_lifts
from ridgeline.tools.judge.worker.domain.arguments.lifted_rows import settle_lifted_rows
from ridgeline.tools.judge.worker.domain.arguments.moved_copies import settle_copies
from ridgeline.tools.judge.worker.domain.arguments.near_one import settle_power
from ridgeline.tools.judge.worker.domain.arguments.not_finite_inputs import NotFiniteInputs
from ridgeline.tools.judge.worker.domain.arguments.other_inputs import OtherInputs
from ridgeline.tools.judge.worker.domain.arguments.other_parameters import OtherParameters
from ridgeline.tools.judge.worker.domain.arguments.parallel_rows import ParallelRows
from ridgeline.tools.judge.worker.domain.arguments.scalars import other_scalar, taken_scalars
from ridgeline.tools.judge.worker.domain.arguments.special_numbers import gain_meaning
from ridgeline.tools.judge.worker.domain.below_rounding import objection_below_rounding
from ridgeline.tools.judge.worker.domain.objections import CONSTANT, Known
from ridgeline.tools.judge.worker.domain.sign_trials import SignTrials, objection_to_signs
from ridgeline.tools.judge.worker.domain.sizes.sized_trials import SizedTrials
from ridgeline.tools.judge.worker.grading.cases.case import Case, are_finite, non_finite_of
from ridgeline.tools.judge.worker.grading.cases.case_book import CaseBook
from ridgeline.tools.judge.worker.inputs.source import ArgumentKey, SecretSource
from ridgeline.tools.judge.worker.memory import ArenaMemory
from ridgeline.tools.judge.worker.reference import Reference
from ridgeline.tools.records.problem import WholeRange
from ridgeline.tools.records.trial_names import (
    ALONE,
    APART,
    ARRANGED,
    AS_MADE,
    CROWDS,
    GIVEN,
    NOMINAL,
    ORDER_ONE,
    OUTLIERS,
    SCALARS,
    SIZED,
    TRANSFORMED,
    TWEAKED,
)
from ridgeline.tools.records.vocabulary import ArgKind, Role

T = TypeVar("T")

_MIXTURES = "mixtures"
_MOST_ALONE = 6
"""Trials in which an argument alone changes; more arguments than that share them. Blocks change any single one."""
_SCALAR_KEPT = "it is a whole number or a flag, part of a module's form, or the reference takes no other value"


class Domain:
    """The trials that a reference takes, in `names`, and those that it refuses, in `skipped` by name with the reason.

    `not_varied` has the arguments that hold the same values in every trial, by name with the reason, `only_as_drawn` the
    inputs of which no trial holds but what `get_inputs` draws. The case book and the secret source drop the parameters,
    inputs and mixtures that the reference refuses.
    """

    def __init__(
        self,
        book: CaseBook,
        reference: Reference,
        source: SecretSource,
        memory: ArenaMemory,
        *,
        fatal_attempts: frozenset[str] = frozenset(),
        varies_scalars: bool = True,
        has_candidates: bool = True,
    ) -> None:
        """Try everything on the reference.

        Args:
            book: makes the trials.
            reference: the user's, on its device.
            source: what inputs and parameters are drawn from.
            memory: the sets, and the device.
            fatal_attempts: what lost an earlier judge of this reference its GPU, and is not tried again.
            varies_scalars: a candidate can be given other scalars than those that it is made with.
            has_candidates: False where nobody but the reference meets a trial: the nominal ones are all, then.

        Raises:
            DeviceLostError: something new did, which `tried` names.
        """
        self._book = book
        self._reference = reference
        self._source = source
        self._memory = memory
        self._fatal_attempts = fatal_attempts
        self._names = {a.source: a.name for a in reference.signature.with_role(Role.PARAMETER, Role.BUFFER)}
        self._buffers = frozenset(a.source for a in reference.signature.with_role(Role.BUFFER))
        self.skipped: dict[str, str] = {}
        self.not_varied: dict[str, str] = {}
        self.only_as_drawn: dict[str, str] = {}
        self._sized = SizedTrials(book, source, reference, objection=self._objection_to, tried=self._try_unless_lost)
        self._settle_parameters()
        given = book.case(GIVEN)
        self._shapes = tuple(tuple(e.values.shape) for e in given.expected)
        self._is_given_finite, self._fits_as_given = given.is_finite, given.fits
        self._non_finite_as_given = non_finite_of(given)
        del given  # the largest cases are not kept
        book.let_go()
        self._settle_inputs()
        self._settle_mixtures()
        self.names = (*NOMINAL, *self._settled_trials(varies_scalars=varies_scalars)) if has_candidates else NOMINAL

    def _settled_trials(self, *, varies_scalars: bool) -> tuple[str, ...]:
        """Find out which trials beside the nominal ones the reference takes, and return them."""
        source, book, reference = self._source, self._book, self._reference
        self.skipped |= settle_lifts(source, book, reference.input_names, self._objection_to)
        there_are = (*TRANSFORMED, *(APART,) * source.may_be_apart, *(AS_MADE,) * bool(source.weights.varied))
        transformed = [n for n in there_are if self._takes_trial(n)]
        transformed += [trial for trial in CROWDS if self._settle_crowds(trial)]
        self.skipped |= settle_copies(source, book, reference, self._objection_to, self._try_unless_lost)
        self.skipped |= ParallelRows(source, book, reference, self._objection_to, self._try_unless_lost).settle()
        self.skipped |= ArrangedInputs(source, book, reference, self._objection_to, self._try_unless_lost).settle()
        self.skipped |= NotFiniteInputs(source, book, reference, self._objection_to, self._try_unless_lost).settle()
        transformed += [trial for trial in ARRANGED if trial in source.arrangements]
        transformed += settle_power(source, book, self._objection_to)
        scalars = [SCALARS] if self._settle_scalars(varies=varies_scalars) else []
        transformed += self._sized.settle(transformed)
        return (*self._tweaks_first(transformed), *self._settle_signs(), *scalars)

    # ----------------------------------------------------------------------------------------------------- parameters

    def _settle_parameters(self) -> None:
        """Find out in which way each parameter and buffer may vary, and name those that keep the model's own values."""
        parameters = OtherParameters(self._source, self._book, self._reference, self._try_unless_lost)
        refused = parameters.settle()
        self.not_varied |= {self._names[name]: why for name, why in refused.items()}
        for name in self._source.weights.kept:
            if name not in refused and self._is_read(name):
                self.not_varied[self._names[name]] = CONSTANT
        self._book.forget_errors()

    def _try_unless_lost(self, what: str, attempt: Callable[[], str]) -> str:
        return Known.LOST if what in self._fatal_attempts else self._tried(what, attempt)

    def _holds(self, what: str, attempt: Callable[[], bool]) -> bool:
        """Return what an attempt finds, False where it lost an earlier judge its GPU."""
        return what not in self._fatal_attempts and self._tried(what, attempt)

    def _is_read(self, name: str) -> bool:
        """Return whether the output depends on a tensor that keeps its values: a count of batches has no part in it."""
        what = f"is {name} read"
        if what in self._fatal_attempts:
            return True
        with self._book.parameters_kept():
            view = self._memory.parameters[name]
            return self._tried(what, lambda: is_read(view, self._reference, self._source.given(GIVEN)))

    # --------------------------------------------------------------------------------------------------------- inputs

    def _settle_inputs(self) -> None:
        """Find out in which way each input may be changed that `get_inputs` does not change, or not enough."""
        inputs = OtherInputs(
            self._source,
            self._book,
            self._reference.input_names,
            objection=self._objection_to,
            takes=lambda inputs, what: self._holds(what, lambda: self._takes_inputs(inputs)),
            gain_meaning=lambda label, what: self._holds(what, lambda: self._gain_meaning(label)),
        )
        self.not_varied |= inputs.settle()
        self.only_as_drawn |= inputs.left()

    def _gain_meaning(self, label: str) -> bool:
        with self._book.usual_parameters():
            return gain_meaning(self._reference, self._source.given(label), self._source.nominal(label))

    def _objection_to(self, trial: str, what: str) -> str:
        return self._try_unless_lost(what, lambda: self.objection(trial))

    def _settle_crowds(self, trial: str) -> bool:
        """Find out which inputs may be mostly one of their numbers, name the others, and return whether any may."""
        inputs = CrowdedInputs(trial, self._source, self._book, self._reference.input_names, self._objection_to)
        self.skipped |= inputs.settle()
        return bool(self._source.crowds.get(trial))

    # ------------------------------------------------------------------------------------------------------- mixtures

    def _settle_mixtures(self) -> None:
        """Give every timed set a draw of its own where the reference refuses mixtures (of definite matrices, say)."""
        if not self._holds(_MIXTURES, self._takes_mixture):
            self._source.draw_each_set()

    def _takes_mixture(self) -> bool:
        views = tuple(torch.empty_like(view) for view in self._memory.inputs[0])
        self._source.fill("mixture", self._memory.n_sets).write(0, views)
        return self._takes_inputs(views)

    def _takes_inputs(self, inputs: Tensors) -> bool:
        with self._book.usual_parameters():
            try:
                return are_finite(self._reference.run(inputs)) or not self._is_given_finite
            except ProblemError:
                return False

    # --------------------------------------------------------------------------------------------------------- trials

    def _tweaks_first(self, transformed: Sequence[str]) -> tuple[str, ...]:
        """Return the trials after the nominal ones in their order: what differs little comes right after its base."""
        tweaked = [n for n in transformed if n in TWEAKED]
        rest = [n for n in transformed if n not in TWEAKED]
        book = self._book
        first = [ORDER_ONE] if self._source.weights.small and self._takes_trial(ORDER_ONE) else []
        shares = self._shares()
        book.use(replace(book.changes, alone_base=first[0] if first else NOMINAL[1], alone=shares))
        alone = [n for n in shares if self._takes_trial(n)]
        return (*tweaked, *first, *alone, *rest)

    # ---------------------------------------------------------------------------------------------------------- signs

    def _settle_signs(self) -> tuple[str, ...]:
        """Find out which arguments of one sign may have others, name those that may not, and return the trials.

        A buffer outside the reference's domain is a variance and the like, which nobody gives another sign.
        """
        trials = SignTrials(self._book, self._source, self._sign_objection)
        names = trials.settle()
        for trial, refused in trials.refused.items():
            named = {c: why for c, why in refused.items() if c not in self._buffers or why is not Known.OUTSIDE}
            self.skipped |= {f"{trial} {self.name_of(argument)}": why for argument, why in named.items()}
        return names

    def _sign_objection(self, name: str) -> str:
        chosen = map(self.name_of, self._book.changes.signed[name])
        return self._objection_to(name, f"{name} of {', '.join(sorted(chosen))}")

    # -------------------------------------------------------------------------------------------------------- scalars

    def _settle_scalars(self, *, varies: bool) -> bool:
        """Find out which scalars may have other values, name the others, and return whether any may."""
        given, names = tuple(self._reference.scalars), self.scalar_names
        rng = self._source.rng
        wanted = tuple(other_scalar(s, rng(f"scalar:{i}")) if varies else s for i, s in enumerate(given))
        taken = taken_scalars(given, wanted, names, self._refuses_scalars)
        self._note_scalars(taken)
        kept = [n for n, was, now in zip(names, given, taken, strict=True) if repr(was) == repr(now)]
        self.not_varied |= dict.fromkeys(kept, _SCALAR_KEPT)
        return taken != given

    def _refuses_scalars(self, scalars: tuple[Scalar, ...], what: str) -> bool:
        self._note_scalars(scalars)
        return not self._holds(what, lambda: not self.objection(SCALARS))

    def _note_scalars(self, scalars: tuple[Scalar, ...]) -> None:
        """Let the trial of scalars have these, or no others than the given."""
        others = {SCALARS: scalars} if scalars != tuple(self._reference.scalars) else {}
        self._book.use(replace(self._book.changes, scalars=others))

    @property
    def scalar_names(self) -> tuple[str, ...]:
        """Return the names of the scalars in the signature."""
        return tuple(a.name for a in self._reference.signature.args if a.kind is ArgKind.SCALAR)

    def _shares(self) -> dict[str, tuple[ArgumentKey, ...]]:
        """Return which arguments each `alone` trial changes: one, or a share of many; a single argument needs none.

        Arguments of one form are dealt to different shares: those that are copies of one another would stay copies in one.
        """
        changing = self._source.changing
        if len(changing) < 2:
            return {}
        if len(changing) <= _MOST_ALONE:
            return {f"{ALONE}_{self.name_of(c)}": (c,) for c in changing}
        dealt = self._source.shuffled(changing, ALONE)
        forms = list(dict.fromkeys(map(self._form_of, dealt)))
        dealt = sorted(dealt, key=lambda argument: forms.index(self._form_of(argument)))
        return {f"{ALONE}_{i + 1}": tuple(dealt[i::_MOST_ALONE]) for i in range(_MOST_ALONE)}

    def _form_of(self, argument: ArgumentKey) -> tuple[torch.dtype, torch.Size]:
        views = self._memory
        tensor = views.inputs[0][argument] if isinstance(argument, int) else views.parameters[argument]
        return tensor.dtype, tensor.shape

    @property
    def whole_numbers(self) -> tuple[WholeRange, ...]:
        """Return the range of each input of whole numbers over all trials."""
        ranges, names = self._book.whole_ranges(self.names), self._reference.input_names
        return tuple(WholeRange(name=names[i], low=low, high=high) for i, (low, high) in ranges.items())

    def name_of(self, argument: ArgumentKey) -> str:
        """Return an argument's name in the signature."""
        return self._reference.input_names[argument] if isinstance(argument, int) else self._names[argument]

    def _takes_trial(self, name: str) -> bool:
        objection = self._objection_to(name, name)
        if objection in (Known.OUTSIDE, Known.BEYOND) and name == OUTLIERS:
            objection = "" if settle_lifted_rows(self._source, self._book, self._objection_to) else objection
        if objection:
            self.skipped[name] = objection
        return not objection

    def objection(self, name: str) -> str:
        """Return why the reference gives nothing for a trial, as it is drawn now, to be compared with, "" when it does."""
        try:
            case = self._book.case(name)
        except ProblemError as error:
            return without_name(error)
        if tuple(tuple(e.values.shape) for e in case.expected) != self._shapes:
            self._book.forget(name)
            return "its output has another shape"
        if self._fits_as_given and not case.fits:
            self._book.forget(name)
            return Known.BEYOND
        if self._is_given_finite and not case.is_finite:
            self._book.forget(name)
            return Known.OUTSIDE
        if objection := self._objection_to_case(case):
            self._book.forget(name)
        return objection

    def _objection_to_case(self, case: Case) -> str:
        """Return why a case that is finite is refused all the same, "" when it is not."""
        if objection := objection_below_rounding(self._reference, self._book, case):
            return objection
        if case.name in self._book.changes.signed or case.name in (*CROWDS, *ARRANGED):
            return objection_to_signs(self._reference, self._book, case, self._non_finite_as_given)
        return self._sized.objection_to(case) if case.name in SIZED else ""

    def _tried(self, what: str, attempt: Callable[[], T]) -> T:
        """Return what an attempt gives.

        A kernel's failure shows in any later call, and in words of many libraries. So the GPU is asked whether it still
        answers, however the attempt ended.

        Raises:
            DeviceLostError: it does not.
        """
        try:
            with self._reference.patience.trying():
                return attempt()
        finally:
            try:
                self._memory.device.settle()
            except RuntimeError as error:  # torch's own, for all of CUDA's
                raise DeviceLostError(what) from error
