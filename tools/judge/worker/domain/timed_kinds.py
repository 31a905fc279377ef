"""The kinds of contents that timed blocks have beside nominal ones: those of the trials that the reference takes.

Blocks that count have those on which the reference takes no longer than usual. The others are slow, or were found slow on
a busy machine: they are met in blocks that do not count, so that no load takes a kind out of a measurement.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

import torch

from ridgeline.tools.errors import ProblemError
from ridgeline.tools.judge.worker.call_form import Tensors
from ridgeline.tools.judge.worker.device import JudgeDevice
from ridgeline.tools.judge.worker.grading.cases.case import are_finite
from ridgeline.tools.judge.worker.grading.cases.case_book import CaseBook
from ridgeline.tools.judge.worker.inputs.distributions import Distribution, SetKind
from ridgeline.tools.judge.worker.inputs.source import ArgumentKey, SecretSource
from ridgeline.tools.judge.worker.memory import ArenaMemory
from ridgeline.tools.judge.worker.reference import Reference
from ridgeline.tools.judge.worker.user_code import named_line
from ridgeline.tools.records import trial_names
from ridgeline.tools.records.trial_names import NOMINAL, SIGNED, SILENT, TIMED, as_kind, part_of, trial_of_kind
from ridgeline.tools.records.vocabulary import Role

_SLOWER = 1.15
"""Contents on which the reference takes longer by this factor are met in blocks that do not count: exponentials that end as
denormal numbers take a CPU many times as long."""
_ATTEMPTS, _ROUNDS, _ENOUGH_S = 3, 7, 0.2
"""The reference is not called slower for a busy machine: the fastest of several calls counts, in the best attempt."""


class ParameterKind(StrEnum):
    """A kind of a timed block's parameters, by the name of the trial that has it."""

    RANDOM = "random"
    ORDER_ONE = trial_names.ORDER_ONE
    MIXED_SIGNS = trial_names.MIXED_SIGNS
    FEW_SIGNS = trial_names.FEW_SIGNS
    OPPOSITE_SIGNS = trial_names.OPPOSITE_SIGNS


def named(kind: ParameterKind) -> str:
    """Return the name of a kind of parameters: a kind of inputs may have the same trial."""
    return f"{Role.PARAMETER}:{kind}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedKinds:
    """The kinds of one reference."""

    inputs: tuple[SetKind, ...] = ()  # of a secret share of the sets, in blocks that count
    parameters: tuple[ParameterKind, ...] = ()  # in turns with random ones, in blocks that count
    slow_inputs: tuple[SetKind, ...] = ()
    slow_parameters: tuple[ParameterKind, ...] = ()
    trials: tuple[str, ...] = ()  # of TIMED, in blocks that do not count
    refused: Mapping[str, str] = field(default_factory=dict)  # kinds that were left out, with what the reference raised

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of all kinds, the slow ones too."""
        parameters = (*self.parameters, *self.slow_parameters)
        inputs = (kind.name for kind in (*self.inputs, *self.slow_inputs))
        return (*inputs, *(named(kind) for kind in parameters), *map(as_kind, self.trials))

    def without(self, refused: Mapping[str, str]) -> TimedKinds:
        """Return these kinds but those that the reference refused, by name with what it raised."""
        return replace(
            self,
            inputs=tuple(kind for kind in self.inputs if kind.name not in refused),
            slow_inputs=tuple(kind for kind in self.slow_inputs if kind.name not in refused),
            parameters=tuple(kind for kind in self.parameters if named(kind) not in refused),
            slow_parameters=tuple(kind for kind in self.slow_parameters if named(kind) not in refused),
            trials=tuple(trial for trial in self.trials if as_kind(trial) not in refused),
            refused={**self.refused, **refused},
        )

    def inputs_named(self, wanted: Sequence[str]) -> list[SetKind]:
        """Return the kinds of inputs among those wanted, in their order."""
        kinds = {kind.name: kind for kind in (*self.inputs, *self.slow_inputs)}
        return [kinds[name] for name in wanted if name in kinds]

    def parameters_named(self, wanted: Sequence[str]) -> ParameterKind | None:
        """Return the kind of parameters that is wanted first, None where inputs are."""
        kinds = {named(kind): kind for kind in (*self.parameters, *self.slow_parameters)}
        return kinds.get(wanted[0]) if wanted else None

    def trial_named(self, wanted: Sequence[str]) -> str:
        """Return the trial that is wanted first, "" where something else is."""
        trial = trial_of_kind(wanted[0]) if wanted else ""
        return trial if trial in self.trials else ""

    def beside(self, kind: ParameterKind) -> list[SetKind]:
        """Return the kinds of inputs that sets may have beside parameters of a kind.

        Beside other signs of parameters the reference was only run on nominal inputs, and on those of the same trial. How
        much of an input may be silent was found beside random parameters.
        """
        if kind in SIGNED:
            return [each for each in self.inputs if each.name == kind.value]
        return [each for each in self.inputs if kind is ParameterKind.RANDOM or each.distribution not in SILENT]


@dataclass(frozen=True, slots=True)
class Contents:
    """Inputs, and what places the parameters beside them."""

    inputs: Tensors
    place: Callable[[], None]


def parameters_of_kind(
    kind: ParameterKind, label: str, book: CaseBook, source: SecretSource
) -> dict[str, torch.Tensor]:
    """Return new parameters of a kind."""
    if kind is ParameterKind.RANDOM:
        return book.contents.parameters(label)
    if kind is ParameterKind.ORDER_ONE:
        return source.weights.of_order_one(label)
    return book.contents.parameters_with_signs(part_of(kind, Role.PARAMETER), label)


def find_timed_kinds(
    names: Sequence[str], book: CaseBook, reference: Reference, source: SecretSource, memory: ArenaMemory
) -> TimedKinds:
    """Return the kinds of contents that timed blocks may have, of these trials and of the parts of those of signs."""
    with book.parameters_kept():
        return _Finder(names, book, reference, source, memory).find()


class _Finder:
    def __init__(
        self, names: Sequence[str], book: CaseBook, reference: Reference, source: SecretSource, memory: ArenaMemory
    ) -> None:
        self._book = book
        self._reference = reference
        self._source = source
        self._memory = memory
        self._trials = tuple(name for name in names if name in TIMED)
        taken = [kind for kind in Distribution if kind in names and self._is_of_sets(kind)]
        signed = {kind: book.changes.signed.get(part_of(kind, Role.INPUT), ()) for kind in taken}
        self._inputs = [
            SetKind(k, _inputs_among(signed[k]), size=source.sizes.get(k, 1.0), is_faint=k in source.faint)
            for k in taken
        ]
        apart = inputs_apart(names, book.changes.alone)
        self._inputs += [SetKind(Distribution.ALONE, inputs, trial) for trial, inputs in apart.items()]
        self._parameters = [kind for kind in ParameterKind if kind in names and self._is_part(kind, Role.PARAMETER)]
        self._filling = source.fill("usual time", memory.n_sets)
        views = self._empty()
        self._filling.write(0, views)
        self._usual = Contents(views, self._placing(ParameterKind.RANDOM))
        self._refused: dict[str, str] = {}

    def _is_of_sets(self, kind: Distribution) -> bool:
        """Return whether sets may have a kind: of APART there are some only where inputs are linked as there."""
        return self._is_part(kind, Role.INPUT) and (kind is not Distribution.APART or self._source.links.are_in(kind))

    def _is_part(self, kind: str, role: Role) -> bool:
        """Return whether a kind of signs changes inputs, or parameters; any other kind is of one role anyhow."""
        return kind not in SIGNED or part_of(kind, role) in self._book.changes.signed

    def _empty(self) -> Tensors:
        return tuple(torch.empty_like(view) for view in self._memory.inputs[0])

    def _placing(self, kind: ParameterKind) -> Callable[[], None]:
        label = NOMINAL[0] if kind is ParameterKind.RANDOM else f"usual time:{kind}"
        values = parameters_of_kind(kind, label, self._book, self._source)
        return lambda: self._book.place_parameters(values)

    def find(self) -> TimedKinds:
        inputs = {kind: self._is_usual(kind.name, self._with_inputs(kind)) for kind in self._inputs}
        parameters = {
            kind: self._is_usual(named(kind), Contents(self._usual.inputs, self._placing(kind)))
            for kind in self._parameters
        }
        return TimedKinds(
            inputs=tuple(kind for kind, is_usual in inputs.items() if is_usual),
            slow_inputs=tuple(kind for kind, is_usual in inputs.items() if is_usual is False),
            parameters=tuple(kind for kind, is_usual in parameters.items() if is_usual),
            slow_parameters=tuple(kind for kind, is_usual in parameters.items() if is_usual is False),
            trials=self._trials,
            refused=self._refused,
        )

    def _with_inputs(self, kind: SetKind) -> Contents:
        views = self._empty()
        self._source.distributed(self._filling, f"usual time:{kind.name}", {0: kind}).write(0, views)
        return Contents(views, self._usual.place)

    def _is_usual(self, kind: str, contents: Contents) -> bool | None:
        """Return whether the reference takes no longer than usual; None where it refuses these contents."""
        contents.place()
        try:
            with self._reference.patience.trying():
                is_taken = are_finite(self._reference.run(contents.inputs))
            self._usual.place()
            if not is_taken and are_finite(self._reference.run(self._usual.inputs)):
                return None
        except ProblemError as error:
            self._refused[kind] = named_line(error.__cause__ or error)
            return None
        slowdowns = (_slowdown(self._reference, self._usual, contents, self._memory.device) for _ in range(_ATTEMPTS))
        return any(slowdown < _SLOWER for slowdown in slowdowns)


def inputs_apart(names: Sequence[str], alone: Mapping[str, Sequence[ArgumentKey]]) -> dict[str, frozenset[int]]:
    """Return the inputs that each `alone` trial among these changes, by trial; none where one input changes, or none."""
    found = {name: inputs for name in names if (inputs := _inputs_among(alone.get(name, ())))}
    return found if len(frozenset().union(*found.values())) > 1 else {}


def _inputs_among(arguments: Collection[ArgumentKey]) -> frozenset[int]:
    return frozenset(argument for argument in arguments if isinstance(argument, int))


def _slowdown(reference: Reference, usual: Contents, other: Contents, device: JudgeDevice) -> float:
    """Return the fastest time on the other contents / on the usual ones."""
    best, spent = [float("inf")] * 2, 0.0
    for done in range(_ROUNDS):
        for i, contents in enumerate((usual, other)):
            contents.place()
            watch = device.stopwatch()
            watch.start()
            reference.run(contents.inputs)
            seconds = watch.seconds()
            best[i], spent = min(best[i], seconds), spent + seconds
        if spent > _ENOUGH_S and done:
            break
    return best[1] / max(best[0], 1e-9)
