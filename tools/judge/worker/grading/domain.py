"""The reference's domain: which trials, which other values of each input, and which mixtures it takes.

Only running the reference shows its domain. Each trial is tried; a refused one is recorded with the reason.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import torch

from ridgeline.tools.errors import DeviceLostError, ProblemError
from ridgeline.tools.judge.worker.call_form import Tensors
from ridgeline.tools.judge.worker.grading.case import GIVEN, NOMINAL, TRANSFORMED, TWEAKED, are_finite
from ridgeline.tools.judge.worker.grading.cases import CaseBook
from ridgeline.tools.judge.worker.inputs.source import SecretSource
from ridgeline.tools.judge.worker.memory import ArenaMemory
from ridgeline.tools.judge.worker.reference import Reference

T = TypeVar("T")

_FIRST_VARIED = (NOMINAL[0], TWEAKED[0])  # the first trials to change inputs that `get_inputs` gives alike
_RANDOM_PARAMETERS, _MIXTURES = "random parameters", "mixtures"
_TOGETHER, _TOGETHER_AGAIN = "other inputs", "other inputs, each accepted alone"
_LOST = "the reference's kernels fail on the GPU with these values (a device-side assert?)"


class Domain:
    """The trials that a reference takes, in `names`, and those that it refuses, in `skipped` by name with the reason.

    The case book and the secret source drop the parameters, inputs and mixtures that the reference refuses.
    """

    def __init__(
        self,
        book: CaseBook,
        reference: Reference,
        source: SecretSource,
        memory: ArenaMemory,
        *,
        left_out: frozenset[str] = frozenset(),
    ) -> None:
        """Try everything on the reference.

        Args:
            book: makes the trials.
            reference: the user's, on its device.
            source: what inputs and parameters are drawn from.
            memory: the sets, and the device.
            left_out: what lost an earlier judge of this reference its GPU, and is not tried again.

        Raises:
            DeviceLostError: something new did, which `tried` names.
        """
        self._book = book
        self._reference = reference
        self._source = source
        self._memory = memory
        self._left_out = left_out
        self.skipped: dict[str, str] = {}
        self._settle_parameters()
        given = book.case(GIVEN)
        self._is_given_finite, self._fits_as_given = given.is_finite, given.fits
        del given  # the largest cases are not kept
        book.let_go()
        self._settle_inputs()
        self._settle_mixtures()
        self.names = (*NOMINAL, *(n for n in TRANSFORMED if self._takes_trial(n)))

    # ----------------------------------------------------------------------------------------------------- parameters

    def _settle_parameters(self) -> None:
        """Fall back on the model's own parameters when random ones leave the reference's domain."""
        book = self._book
        if _RANDOM_PARAMETERS in self._left_out:
            book.default_parameters = True
            self.skipped[_RANDOM_PARAMETERS] = _LOST
            return
        if self._tried(_RANDOM_PARAMETERS, lambda: book.make(GIVEN).is_finite):
            return
        book.default_parameters = True
        book.forget_errors()
        if book.make(GIVEN).is_finite:
            self.skipped[_RANDOM_PARAMETERS] = "outside the reference's domain"
        else:
            book.default_parameters = False
        book.forget_errors()

    # --------------------------------------------------------------------------------------------------------- inputs

    def _settle_inputs(self) -> None:
        """Find out in which way each input may be changed that `get_inputs` does not change, or not enough."""
        source, names = self._source, self._reference.input_names
        if self._refuses_together(_TOGETHER):
            for index in source.varied:
                self._settle_input(index)
            if self._refuses_together(_TOGETHER_AGAIN):
                for index in source.varied:
                    self._leave(index, "together with others, other values are outside the reference's domain")
        for index in source.kept:
            self.skipped.setdefault(f"other {names[index]}", "its values are a mask or indices, and are always these")

    def _refuses_together(self, what: str) -> bool:
        """Return whether the reference refuses the inputs as they are changed now, all at once."""
        if not self._source.varied:
            return False
        return what in self._left_out or any(self._tried(what, self._objections))

    def _settle_input(self, index: int) -> None:
        ways = 0
        while index in self._source.varied:
            what = f"other {self._reference.input_names[index]}, way {ways}"
            objections = [_LOST]
            if what not in self._left_out:
                with self._source.varying_only(index):
                    objections = self._tried(what, self._objections)
                    self._book.forget(*_FIRST_VARIED)
            if not any(objections):
                return
            self._source.give_up_way(index)
            ways += 1
            if index not in self._source.varied:
                self._leave(index, next(o for o in objections if o))

    def _leave(self, index: int, why: str) -> None:
        while index in self._source.varied:
            self._source.give_up_way(index)
        self._book.forget(*_FIRST_VARIED)
        self.skipped[f"other {self._reference.input_names[index]}"] = why

    def _objections(self) -> list[str]:
        return [self.objection(trial) for trial in _FIRST_VARIED]

    # ------------------------------------------------------------------------------------------------------- mixtures

    def _settle_mixtures(self) -> None:
        """Give every timed set a draw of its own where the reference refuses mixtures (of definite matrices, say)."""
        if _MIXTURES in self._left_out:
            self._source.draw_each_set()
            return
        views = tuple(torch.empty_like(view) for view in self._memory.inputs[0])
        self._source.fill("mixture", self._memory.n_sets).write(0, views)
        if not self._tried(_MIXTURES, lambda: self._takes_inputs(views)):
            self._source.draw_each_set()

    def _takes_inputs(self, inputs: Tensors) -> bool:
        book = self._book
        with book.parameters_kept():
            book.place_parameters(book.parameters(NOMINAL[0]))
            try:
                return are_finite(self._reference.run(inputs)) or not self._is_given_finite
            except ProblemError:
                return False

    # --------------------------------------------------------------------------------------------------------- trials

    def _takes_trial(self, name: str) -> bool:
        objection = _LOST if name in self._left_out else self._tried(name, lambda: self.objection(name))
        if objection:
            self.skipped[name] = objection
        return not objection

    def objection(self, name: str) -> str:
        """Return why the reference gives nothing for a trial, as it is drawn now, to be compared with, "" when it does."""
        try:
            case = self._book.case(name)
        except ProblemError as error:
            return str(error).removeprefix("reference.py: ")
        if self._is_given_finite and not case.is_finite:
            self._book.forget(name)
            return "outside the reference's domain: its output is not finite"
        if self._fits_as_given and not case.fits:
            self._book.forget(name)
            return "its output is beyond the range of the output's type"
        return ""

    def _tried(self, what: str, attempt: Callable[[], T]) -> T:
        """Return what an attempt gives.

        A kernel's failure shows in any later call, and in words of many libraries. So the GPU is asked whether it still
        answers, however the attempt ended.

        Raises:
            DeviceLostError: it does not.
        """
        try:
            return attempt()
        finally:
            try:
                self._memory.device.settle()
            except RuntimeError as error:  # torch's own, for all of CUDA's
                raise DeviceLostError(what) from error
