"""The contents of each trial by its name: inputs and parameters, drawn from the secret."""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch

from ridgeline.tools.judge.worker.call_form import Tensors
from ridgeline.tools.judge.worker.inputs.arrangements.near_rows import NearRows
from ridgeline.tools.judge.worker.inputs.arrangements.square_matrices import (
    near_identity,
    with_band,
    with_large_diagonals,
)
from ridgeline.tools.judge.worker.inputs.distributions import Distribution, SetKind
from ridgeline.tools.judge.worker.inputs.source import ArgumentKey, SecretSource
from ridgeline.tools.judge.worker.inputs.trial_changes import Far, Share, TrialChanges
from ridgeline.tools.judge.worker.inputs.values.symmetry import near_singular
from ridgeline.tools.judge.worker.inputs.values.transforms import (
    narrowed,
    row_scaled,
    shifted,
    whole_numbers,
    with_lifted_rows,
    with_one_run,
    with_outliers,
)
from ridgeline.tools.judge.worker.memory import ArenaMemory
from ridgeline.tools.records.trial_names import (
    APART,
    ARRANGED,
    AS_MADE,
    BANDED_HIGH,
    BANDS,
    BETWEEN,
    BLOCKED,
    CROWDS,
    FAR_CHOICES,
    FEW_OUTLIERS,
    GIVEN,
    INTEGERS,
    LARGE_BLOCKED,
    LARGE_DIAGONALS,
    LARGE_INPUTS,
    LARGE_MATRICES,
    LARGE_VECTORS,
    MIXTURE,
    MOVED,
    MOVED_VECTORS,
    NARROW,
    NEAR_ONE,
    NEAR_ROWS,
    NOMINAL,
    OF_SQUARES,
    ORDER_ONE,
    OUTLIERS,
    QUIET,
    RAISED,
    ROW_SCALED,
    SHIFTED,
    SMALL_APART,
    SMALL_INPUTS,
    SMALL_NEAR_IDENTITY,
    SMALL_PARAMETERS,
    TWEAKED,
    UNEVEN,
    trial_of,
)

_LARGEST = 3.0
"""Size of the largest number of a vector of the trial `large_vectors`, times the trial's size."""
_OTHERS = {SMALL_NEAR_IDENTITY: 1 / 16}
"""Size of all other arguments beside square matrices, times their usual one."""
_SHIFTS = 1 << 16
"""Numbers of which one, less a multiple of a matrix's size, says how far its diagonal is shifted."""

Drawn = tuple[Tensors, dict[str, torch.Tensor]]
"""Inputs, and parameters by name."""


class TrialContents:
    """Inputs and parameters by the name of a trial; the same name gives the same ones while secret and changes stay."""

    def __init__(self, source: SecretSource, memory: ArenaMemory, kept: Callable[[str], Drawn | None]) -> None:
        """Draw nothing yet; `kept` returns a trial's contents where these are at hand."""
        self.changes = TrialChanges()
        self.makes_symmetric = False
        """Whether the reference makes symmetric matrices, which are nearly singular in the trial `near_singular` then."""
        self._source = source
        self._memory = memory
        self._kept = kept

    def of(self, name: str) -> Drawn:
        """Return a trial's inputs and parameters."""
        changes = self.changes
        if name in changes.alone:
            return self.with_others(changes.alone_base, changes.alone[name], name)
        if name in changes.signed:
            chosen = changes.signed[name]
            inputs = self._source.inputs_with_signs(self._source.nominal(name), trial_of(name), chosen, name)
            return inputs, self.parameters_with_signs(name, name)
        if name in changes.uneven:
            share, part = min(changes.uneven[name], key=self._turn_of)
            drawn, by = (self._source.nominal(name), self.parameters(name)), self._source.sizes[name] ** part
            return scaled(drawn, share, by if name == UNEVEN[0] else 1 / by)
        if name in BETWEEN:
            return self.changed(name, name, self._source.sizes[name])
        if name == FAR_CHOICES and changes.far:
            return self.far(changes.far, name, self._source.sizes[name])
        transformed = self._source.transformed
        draws: dict[str, Callable[[str], Tensors]] = {
            TWEAKED[0]: lambda label: self._source.tweaked(NOMINAL[1], label),
            TWEAKED[1]: lambda label: self._source.tweaked(NOMINAL[1], label, with_one_run),
            TWEAKED[2]: lambda label: self._source.tweaked(NOMINAL[1], label, with_one_run),
            SHIFTED: lambda label: transformed(shifted, label),
            ROW_SCALED: lambda label: transformed(row_scaled, label),
            BLOCKED: self._source.blocked,
            APART: self._source.apart,
            NEAR_ONE: self._source.near_one,
            **{trial: functools.partial(self._source.arranged, trial=trial) for trial in ARRANGED},
            LARGE_INPUTS: lambda label: self._source.times(self._source.nominal(label), self._source.sizes[label]),
            SMALL_INPUTS: lambda label: self._source.times(self._source.nominal(label), 1 / self._source.sizes[label]),
            NEAR_ROWS: lambda label: transformed(NearRows(self._source.sizes[label]), label),
            **dict.fromkeys(OF_SQUARES, self._with_other_squares),
            **{trial: functools.partial(self._source.silent, trial=trial) for trial in QUIET},
            INTEGERS: lambda label: transformed(whole_numbers, label),
            OUTLIERS: lambda label: transformed(self._outliers, label),
            FEW_OUTLIERS: functools.partial(self._as_timed, to=SetKind(Distribution.OUTLIERS)),
            MIXTURE: self._as_timed,
            **{trial: functools.partial(self._source.crowded, trial=trial) for trial in CROWDS},
            GIVEN: self._source.given,
            AS_MADE: self._source.given,
        }
        kind = name if name in draws else self._source.beside.get(name, name)
        return draws.get(kind, self._source.nominal)(name), self._parameters_of(name)

    def at_hand(self, name: str) -> Drawn:
        """Return a trial's inputs and parameters, those that are kept where there are such."""
        return self._kept(name) or self.of(name)

    def changed(self, trial: str, label: str, size: float) -> Drawn:
        """Return the nominal contents of a label, changed as one of BETWEEN does by a size."""
        weights, is_made = self._source.weights, self.makes_symmetric
        if trial == NARROW:
            return self._source.transformed(functools.partial(narrowed, size=size), label), self.parameters(label)
        way = functools.partial(near_singular, size=size, is_made=is_made)
        return self._source.transformed(way, label), weights.with_each(label, way, of_all=is_made)

    def far(self, far: Far, label: str, factor: float) -> Drawn:
        """Return the nominal inputs of a label times a factor, and its parameters, changed as another trial's are."""
        return self._source.times(self._source.nominal(label), factor), self._parameters_of(far.kind, label)

    def _turn_of(self, choice: tuple[Share, float]) -> float:
        """Return a secret number, the same in both trials of UNEVEN: what is larger in one is smaller in the other."""
        return self._source.rng(f"{UNEVEN[0]}:{choice[0]}").random()

    def with_others(self, base: str, chosen: tuple[ArgumentKey, ...], label: str) -> Drawn:
        """Return the contents of the trial `base`, with another draw's in place of the chosen arguments'."""
        inputs, parameters = self.at_hand(base)
        others = self._source.nominal(label) if any(isinstance(c, int) for c in chosen) else inputs
        weights = self._source.weights
        drawn = weights.of_order_one if base == ORDER_ONE else self.parameters
        is_any_named = any(isinstance(c, str) for c in chosen)
        values = weights.unlike(parameters, drawn(label), label) if is_any_named else parameters
        return (
            tuple(others[i] if i in chosen else t for i, t in enumerate(inputs)),
            {n: values[n] if n in chosen else t for n, t in parameters.items()},
        )

    def _outliers(self, tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        """Return an input of the trial of outliers: whole rows are such, where the reference takes no single ones."""
        dims = self._source.lifted_dims
        return with_lifted_rows(tensor, generator, dims=dims) if dims else with_outliers(tensor, generator)

    def _with_other_squares(self, trial: str) -> Tensors:
        """Return inputs of one of OF_SQUARES."""
        return self._source.with_square(trial, self._change_of_square(trial), others=_OTHERS.get(trial, 1.0))

    def _change_of_square(self, trial: str) -> Callable[[torch.Tensor], torch.Tensor]:
        """Return what one of OF_SQUARES does to a square matrix, as far as the trial's size says."""
        size = self._source.sizes[trial]
        if trial in BANDS:
            return functools.partial(with_band, size=size, is_high=trial == BANDED_HIGH)
        if trial == LARGE_DIAGONALS:
            return functools.partial(with_large_diagonals, steps=size)
        return functools.partial(near_identity, size=size, shift=self.shift_of(trial))

    def shift_of(self, trial: str) -> int:
        """Return how many places on the diagonals of one of OF_SQUARES lie, less a multiple of a matrix's size."""
        return self._source.rng(f"{trial}:shift").randrange(_SHIFTS) if trial == SMALL_NEAR_IDENTITY else 0

    def _as_timed(self, label: str, to: SetKind | None = None) -> Tensors:
        """Return inputs made as those of a timed set, of a kind where one is given."""
        return self._source.timed_set(label, self._memory.inputs[0], self._memory.n_sets, to)

    # ------------------------------------------------------------------------------------------------------ parameters

    def parameters(self, label: str) -> dict[str, torch.Tensor]:
        """Return the parameters that belong to a label."""
        return self._source.weights.usual(label)

    def parameters_with_signs(self, name: str, label: str) -> dict[str, torch.Tensor]:
        """Return the parameters of a trial of signs, or of a part of one: of order one where there is such a trial."""
        is_order_one = self.changes.alone_base == ORDER_ONE
        values = self._source.weights.of_order_one(label) if is_order_one else self.parameters(label)
        return self._source.parameters_with_signs(values, trial_of(name), self.changes.signed[name], label)

    def _parameters_of(self, name: str, label: str = "") -> dict[str, torch.Tensor]:
        """Return a trial's parameters, drawn by another label where one is given.

        Those of `tweaked_1` and `tweaked_2` differ from `nominal_1`'s in a row, or a number.
        """
        label = label or name
        weights = self._source.weights
        if name == TWEAKED[1]:
            return weights.with_slices(self.parameters(NOMINAL[1]), name)
        if name == TWEAKED[2]:
            return weights.with_elements(self.parameters(NOMINAL[1]), name)
        if name == AS_MADE:
            return weights.defaults
        if name == ORDER_ONE:
            return weights.of_order_one(label)
        if name in MOVED:
            by = self._source.sizes[name]
            return weights.moved(label, by if name in RAISED else -by, vectors=name in MOVED_VECTORS)
        if name in OF_SQUARES:
            return weights.with_square(label, self._change_of_square(name), others=_OTHERS.get(name, 1.0))
        if name in (LARGE_MATRICES, LARGE_BLOCKED):
            return weights.enlarged(label, self._source.sizes[name])
        if name in (SMALL_PARAMETERS, SMALL_APART):
            return weights.lessened(label, self._source.sizes[name])
        if name == LARGE_VECTORS:
            return weights.with_large_vectors(label, _LARGEST * self._source.sizes[name])
        return self.parameters(NOMINAL[1] if name in TWEAKED else label)


def scaled(drawn: Drawn, chosen: Share, factor: float) -> Drawn:
    """Return the contents, the chosen arguments' times a factor."""
    inputs, parameters = drawn
    return (
        tuple(t * factor if i in chosen else t for i, t in enumerate(inputs)),
        {n: t * factor if n in chosen else t for n, t in parameters.items()},
    )
