"""The arguments whose change the comparison would not notice, and the outputs that never change.

A kernel may leave out what such arguments take part in, and what such outputs are made of.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import torch

from ridgeline.tools.errors import ProblemError
from ridgeline.tools.judge.worker.call_form import Scalar, Tensors
from ridgeline.tools.judge.worker.grading.cases.case import Case
from ridgeline.tools.judge.worker.grading.cases.case_book import CaseBook
from ridgeline.tools.judge.worker.grading.examiner import Examiner
from ridgeline.tools.judge.worker.inputs.source import ArgumentKey, SecretSource
from ridgeline.tools.judge.worker.own_time import OwnTime
from ridgeline.tools.judge.worker.reference import Reference
from ridgeline.tools.modelnew.tensor_bits import equal_bits
from ridgeline.tools.records.trial_names import NOMINAL, SCALARS

_LIMIT_S = 3.0
"""Time for all arguments; a model of hundreds of slow layers has the rest of them looked at together."""
_DRAWS = 8
_CONSTANT = "it is the same in every trial: a kernel may write it without the work that it takes"


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundEffects:
    """The effects that show in a reference's outputs; what has none is named with the reason."""

    without: Mapping[str, str] = field(default_factory=dict)  # arguments whose other values nobody would notice
    constant_outputs: Mapping[str, str] = field(default_factory=dict)  # of several outputs, those that never change
    weights_show: bool = True  # other parameters and buffers than a trial's, as far as that was looked at


class Effects:
    """Runs the reference with other values of single arguments, and asks whether the outputs would pass for right."""

    def __init__(self, book: CaseBook, source: SecretSource, reference: Reference, examiner: Examiner) -> None:
        """Look at nothing yet."""
        self._book = book
        self._source = source
        self._reference = reference
        self._passed_by = examiner.passed_by
        self._outputs = outputs = examiner.names
        self._usual: dict[str, Tensors] = {}  # what the reference gives for a trial: only several outputs are compared
        self._shown: set[ArgumentKey] = set()  # the arguments of whose changes one showed in some output
        self._never_changed = set(range(len(outputs))) if len(outputs) > 1 else set()

    def find(
        self,
        trials: Sequence[str],
        names: Callable[[ArgumentKey], str],
        scalar_names: Sequence[str] = (),
        *,
        limit_s: float = _LIMIT_S,
    ) -> FoundEffects:
        """Return what has no effect, and the outputs that are alike in all of these trials."""
        without = self._without(names, limit_s)
        weights_show = self._do_weights_show()
        self._usual.clear()
        without |= self._scalars_without(scalar_names)
        return FoundEffects(without=without, constant_outputs=self._constant_outputs(trials), weights_show=weights_show)

    def _without(self, names: Callable[[ArgumentKey], str], limit_s: float) -> dict[str, str]:
        """Return the tensors that have no effect, by name with the reason."""
        found: dict[str, str] = {}
        changing = list(self._source.changing)
        spent = OwnTime()
        while changing and not spent.is_beyond(limit_s):
            argument = changing.pop()
            if hidden := self._hidden((argument,)):
                found[names(argument)] = hidden.reason
        if changing and (hidden := self._hidden(tuple(changing))):
            found |= {names(argument): hidden.reason for argument in changing}
        return found

    def _do_weights_show(self) -> bool:
        """Return whether all other weights together show; nothing is asked where one of them does alone."""
        weights = self._source.weights.varied
        if not weights or not self._shown.isdisjoint(weights):
            return True
        hidden = self._hidden(weights)
        return hidden is None or not hidden.everywhere

    def _constant_outputs(self, trials: Sequence[str]) -> dict[str, str]:
        """Return those of several outputs that are alike in all of these trials, by name with the reason.

        An output that changed for an argument is not looked at again.
        """
        first = self._book.case(NOMINAL[0]).expected
        for trial in trials:
            if not self._never_changed:
                break
            expected = self._book.case(trial).expected
            self._never_changed = {i for i in self._never_changed if equal_bits(expected[i].values, first[i].values)}
        return {self._outputs[i]: _CONSTANT for i in sorted(self._never_changed)}

    def _scalars_without(self, names: Sequence[str]) -> dict[str, str]:
        pairs = enumerate(zip(self._reference.scalars, self._other_scalars, strict=True))
        changed = [i for i, (was, other) in pairs if repr(was) != repr(other)]
        return {names[i]: _Hidden(everywhere=True).reason for i in changed if not self._scalar_shows(i)}

    @property
    def _other_scalars(self) -> Sequence[Scalar]:
        return self._book.changes.scalars.get(SCALARS, self._reference.scalars)

    def _scalar_shows(self, index: int) -> bool:
        book, case = self._book, self._book.case(NOMINAL[0])
        others = list(self._reference.scalars)
        others[index] = self._other_scalars[index]
        with book.parameters_kept(), self._reference.with_scalars(others):
            book.place_parameters(case.parameters)
            try:
                outputs = self._reference.run(case.inputs)
            except ProblemError:
                return True
        return not all(self._passed_by(outputs, case))

    def _hidden(self, chosen: tuple[ArgumentKey, ...]) -> _Hidden | None:
        """Return the outputs in which nobody would see other values of the chosen arguments alone, None for none.

        They are tried beside either trial's other ones. An output whose bits never change does not depend on them.
        """
        tried = [self._looked_at(base, chosen) for base in dict.fromkeys((self._book.changes.alone_base, NOMINAL[0]))]
        if all(all(look.passed) for look in tried):
            return _Hidden(everywhere=True)
        self._shown.update(chosen)
        outputs = tuple(
            name
            for index, name in enumerate(self._outputs)
            if any(look.changed[index] for look in tried) and all(look.passed[index] for look in tried)
        )
        return _Hidden(outputs=outputs) if outputs else None

    def _looked_at(self, base: str, chosen: tuple[ArgumentKey, ...]) -> _Look:
        book, nothing = self._book, (False,) * len(self._outputs)
        with book.parameters_kept():
            case = book.case(base)
            inputs, parameters = self._others(case, chosen)
            usual = self._usual_outputs(case) if len(self._outputs) > 1 else ()
            book.place_parameters(parameters)
            try:
                outputs = self._reference.run(inputs)
            except ProblemError:
                return _Look(passed=nothing, changed=nothing)
            changed = (
                tuple(not equal_bits(new, was) for new, was in zip(outputs, usual, strict=True)) if usual else nothing
            )
            self._never_changed -= {index for index, is_other in enumerate(changed) if is_other}
            return _Look(passed=self._passed_by(outputs, case), changed=changed)

    def _usual_outputs(self, case: Case) -> Tensors:
        if case.name not in self._usual:
            self._book.place_parameters(case.parameters)
            self._usual[case.name] = tuple(output.clone() for output in self._reference.run(case.inputs))
        return self._usual[case.name]

    def _others(self, case: Case, chosen: tuple[ArgumentKey, ...]) -> tuple[Tensors, dict[str, torch.Tensor]]:
        """Return a case's contents with other values in the chosen places; a few numbers may be drawn alike at first."""
        for attempt in range(_DRAWS):
            inputs, parameters = self._book.contents.with_others(case.name, chosen, f"effect:{attempt}")
            pairs = [
                (inputs[c], case.inputs[c]) if isinstance(c, int) else (parameters[c], case.parameters[c])
                for c in chosen
            ]
            if not all(equal_bits(new, old) for new, old in pairs):
                break
        return inputs, parameters


@dataclass(frozen=True, slots=True)
class _Look:
    """One run with other values: which outputs would pass all the same, and which changed in any bit."""

    passed: tuple[bool, ...]
    changed: tuple[bool, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Hidden:
    """The outputs in which nobody would see other values of an argument: all of them, or some by name."""

    everywhere: bool = False
    outputs: tuple[str, ...] = ()

    @property
    def reason(self) -> str:
        where = "the output" if self.everywhere else ", ".join(self.outputs)
        return f"other values in its place alone change {where} by less than the gate"


def is_read(view: torch.Tensor, reference: Reference, inputs: Tensors) -> bool:
    """Return whether other values in a parameter's place, left there, show in any bit of the output, or are refused."""
    before = tuple(o.clone() for o in reference.run(inputs))
    view.copy_((view == 0).to(view.dtype))
    try:
        after = reference.run(inputs)
    except ProblemError:
        return True
    return not all(equal_bits(a, b) for a, b in zip(before, after, strict=True))
