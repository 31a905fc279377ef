"""The trials' cases: made from the secret, kept while memory allows, with each precision class's own error."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import torch

from ridgeline.tools.judge.worker.call_form import Tensors
from ridgeline.tools.judge.worker.device import use_tf32
from ridgeline.tools.judge.worker.grading.cases.case import (
    Case,
    EachErrors,
    errors_of,
    exact_of,
    expected_of,
    fits_type,
)
from ridgeline.tools.judge.worker.grading.cases.class_errors import (
    condition_numbers,
    errors_of_class,
    is_whole,
    moved_outputs,
    rounded_outputs,
    sum_errors,
    worst_of,
)
from ridgeline.tools.judge.worker.grading.cases.made_outputs import MadeOutputs
from ridgeline.tools.judge.worker.grading.cases.vector_signs import as_expected, signed_as
from ridgeline.tools.judge.worker.grading.outputs.expected import Expected
from ridgeline.tools.judge.worker.grading.outputs.small_rows import Moved
from ridgeline.tools.judge.worker.grading.outputs.well_conditioned import WellConditioned, well_conditioned
from ridgeline.tools.judge.worker.inputs.source import SecretSource
from ridgeline.tools.judge.worker.inputs.trial_changes import TrialChanges
from ridgeline.tools.judge.worker.inputs.trial_contents import Drawn, TrialContents
from ridgeline.tools.judge.worker.inputs.values.structure import range_of_whole
from ridgeline.tools.judge.worker.memory import ArenaMemory
from ridgeline.tools.judge.worker.reference import Reference
from ridgeline.tools.judge.worker.regions import torch_dtype
from ridgeline.tools.records.precision import LOST_MOVED, LOST_STEADY, MOVED_DRAWS, SUM_ERROR
from ridgeline.tools.records.reference_mode import ReferenceMode
from ridgeline.tools.records.trial_names import NOMINAL
from ridgeline.tools.records.vocabulary import PrecisionClass, Role

_MOVES = 3
"""Choices of operands with other last bits: a row that one of them happens to leave as it is, another one moves."""


class CaseBook:
    """Cases by name, kept while they fit into `budget_bytes` and made again from the secret when they do not.

    One that does not fit is held until the next is made, or `let_go`, up to `held_bytes`: each is asked for three times.
    """

    def __init__(
        self,
        reference: Reference,
        source: SecretSource,
        memory: ArenaMemory,
        *,
        budget_bytes: int,
        held_bytes: int = 0,
        aside_bytes: int | None = None,
    ) -> None:
        """Make no case yet.

        Args:
            reference: the user's, on its device.
            source: what inputs and parameters are drawn from.
            memory: the sets, and the parameters that the reference uses.
            budget_bytes: how much the cases that are kept may take.
            held_bytes: how much may be beside them: the one that is held, and outputs that are made of one case.
            aside_bytes: how much those that are kept may take while another secret is drawn from; None: all that are kept.
        """
        self.contents = TrialContents(source, memory, self._kept_contents)
        self._reference = reference
        self._memory = memory
        self._budget_bytes = budget_bytes
        self._held_bytes = held_bytes
        self._aside_bytes = budget_bytes if aside_bytes is None else aside_bytes
        self._kept: dict[str, Case] = {}
        self._aside: dict[str, Case] = {}  # those that were kept, while another secret is drawn from
        self._held: dict[str, Case] = {}  # one at most
        self.made = MadeOutputs(held_bytes)
        self._own: dict[str, dict[PrecisionClass, EachErrors | None]] = {}
        self._sums: dict[str, dict[PrecisionClass, EachErrors | None]] = {}
        self._whole: dict[str, dict[int, tuple[int, int]]] = {}  # the range of each input of whole numbers, by trial
        self._fits: dict[str, bool] = {}  # of the cases that were made, also of those that are gone
        self.least_spreads: dict[str, tuple[float, ...]] = {}
        """The part of each output's norm that its errors count beside at least, by trial: see `Expected.least_spread`."""
        self._dtypes = tuple(torch_dtype(spec.dtype) for spec in reference.signature.with_role(Role.OUTPUT))

    def case(self, name: str) -> Case:
        """Return a trial's case; "extra_<n>" is a further nominal one."""
        if (known := self._kept.get(name) or self._held.get(name)) is not None:
            return known
        self.let_go()  # before there is another beside it
        case = self._made_again(name) if self._can_make_again(name) else self.make(name)
        self._fits[name] = case.fits
        if self._kept_bytes + case.size_bytes <= self._budget_bytes:
            self._kept[name] = case
        elif case.size_bytes <= self._held_bytes:
            self._held[name] = case
            self.made.room_bytes -= case.size_bytes
        return case

    @property
    def _kept_bytes(self) -> int:
        return sum(case.size_bytes for case in self._kept.values())

    @property
    def changes(self) -> TrialChanges:
        """Return what trials change of their contents now."""
        return self.contents.changes

    def use(self, changes: TrialChanges) -> None:
        """Make trials with these changes from now on, and drop the cases of those that have other contents by them."""
        self.forget(*self.changes.differing(changes))
        self.contents.changes = changes

    def _kept_contents(self, name: str) -> Drawn | None:
        return (known.inputs, known.parameters) if (known := self._kept.get(name)) else None

    def whole_ranges(self, names: Sequence[str]) -> dict[int, tuple[int, int]]:
        """Return the range of each input of whole numbers over these trials, which were made before."""
        found = [self._whole[name] for name in names if name in self._whole]
        inputs = sorted({i for ranges in found for i in ranges})
        pairs = {i: [ranges[i] for ranges in found if i in ranges] for i in inputs}
        return {i: (min(low for low, _ in each), max(high for _, high in each)) for i, each in pairs.items()}

    def let_go(self) -> None:
        """Free the case that is held, and what is made of any: its memory is wanted for something else."""
        self._held.clear()
        self.made.clear()
        self.made.room_bytes = self._held_bytes

    def free(self) -> None:
        """Free every case, of another secret too; what is known of their errors stays."""
        self._kept.clear()
        self._aside.clear()
        self.let_go()

    def forget(self, *names: str) -> None:
        """Drop cases and their classes' errors: their contents have changed."""
        if not self._held.keys().isdisjoint(names):
            self.let_go()
        for name in names:
            self._kept.pop(name, None)
            self._own.pop(name, None)
            self._sums.pop(name, None)
            self._fits.pop(name, None)

    def forget_all(self) -> None:
        """Drop every case and the classes' errors, but those set aside: another secret is drawn from."""
        self._kept.clear()
        self.let_go()
        self.forget_errors()

    def set_aside(self) -> Callable[[], None]:
        """Drop every case and the classes' errors, and return what brings them back: another secret is drawn from meanwhile.

        Cases that leave too little room for what is drawn then are freed; what is known of their errors comes back.
        """
        if self._kept_bytes > self._aside_bytes:
            self._kept.clear()
        self._aside, own, sums, whole, fits = self._kept, self._own, self._sums, self._whole, self._fits

        def take_back() -> None:
            self.let_go()
            self._kept, self._aside = self._aside, {}
            self._own, self._sums, self._whole, self._fits = own, sums, whole, fits

        self.let_go()
        self._kept, self._own, self._sums, self._whole, self._fits = {}, {}, {}, dict(whole), {}
        return take_back

    def forget_errors(self) -> None:
        """Drop what is known of all cases by their names alone: other parameters are used from now on."""
        self._own.clear()
        self._sums.clear()
        self._fits.clear()

    # ------------------------------------------------------------------------------------------------------ parameters

    def place_parameters(self, values: dict[str, torch.Tensor]) -> None:
        """Write parameters into the memory that the runner reads and the reference uses."""
        for name, view in self._memory.parameters.items():
            view.copy_(values[name])

    @contextlib.contextmanager
    def parameters_kept(self) -> Iterator[None]:
        """Leave the parameters in the memory as they were: an output may still be graded by them."""
        placed = {name: view.clone() for name, view in self._memory.parameters.items()}
        try:
            yield
        finally:
            self.place_parameters(placed)

    @contextlib.contextmanager
    def usual_parameters(self) -> Iterator[None]:
        """Place the parameters of a usual trial meanwhile."""
        with self.parameters_kept():
            self.place_parameters(self.contents.parameters(NOMINAL[0]))
            yield

    def scalars_of(self, name: str) -> contextlib.AbstractContextManager[None]:
        """Call the reference with a trial's scalars meanwhile."""
        return self._reference.with_scalars(self.changes.scalars.get(name, self._reference.scalars))

    # --------------------------------------------------------------------------------------------------------- making

    def make(self, name: str) -> Case:
        """Return a new case, which is not kept."""
        with self.parameters_kept(), self.scalars_of(name):
            return self._computed(name)

    def _can_make_again(self, name: str) -> bool:
        """Return whether all that the reference's output in its own type tells of a case is known."""
        return name in self._fits and all(dtype.is_floating_point for dtype in self._dtypes)

    def _made_again(self, name: str) -> Case:
        """Return a case that was made before: the reference runs in float64 alone."""
        with self.scalars_of(name):
            inputs, parameters = self.contents.of(name)
            nothing = tuple(torch.empty(0, dtype=dtype) for dtype in self._dtypes)  # no output is exact
            expected = self._expected(name, inputs, parameters, nothing)
        sums = self._sums.setdefault(name, {})
        return Case(name, inputs, parameters, expected, self._own[name], sums, made=self.made, fits=self._fits[name])

    def _computed(self, name: str) -> Case:
        inputs, parameters = self.contents.of(name)
        self._whole[name] = {i: whole for i, t in enumerate(inputs) if (whole := range_of_whole(t))}
        self.place_parameters(parameters)
        native = self._reference.run(inputs)
        expected = self._expected(name, inputs, parameters, tuple(n.clone() for n in exact_of(native)))
        own = self._own.setdefault(name, {})
        if PrecisionClass.FP32 not in own:
            signed = as_expected(self._reference, native, expected, lambda: self._reference.run(inputs))
            own[PrecisionClass.FP32] = errors_of(signed, expected)
        sums = self._sums.setdefault(name, {})
        return Case(name, inputs, parameters, expected, own, sums, made=self.made, fits=fits_type(native, expected))

    def _expected(
        self, name: str, inputs: Tensors, parameters: dict[str, torch.Tensor], exact: Tensors
    ) -> tuple[Expected, ...]:
        expected = expected_of(self._reference, inputs, parameters, exact)
        shares = self.least_spreads.get(name, (0.0,) * len(expected))
        return tuple(replace(e, least_spread=share * e.norm) for e, share in zip(expected, shares, strict=True))

    # --------------------------------------------------------------------------------------------------- class errors

    def own_errors(self, case: Case, precision: PrecisionClass) -> EachErrors | None:
        """Return a class's own errors on a case, computed once; None when the class cannot hold these numbers."""
        if precision not in case.own:
            with self.scalars_of(case.name):
                case.own[precision] = self._measure_own(case, precision)
        return case.own[precision]

    def sum_errors(self, case: Case, precision: PrecisionClass) -> EachErrors | None:
        """Return what a class's sums lose of a case, computed once; None when nothing can be told of it."""
        if precision not in case.sums:
            with self.scalars_of(case.name):
                case.sums[precision] = sum_errors(self._reference, case, SUM_ERROR[precision])
        return case.sums[precision]

    @contextlib.contextmanager
    def running(self, case: Case) -> Iterator[Reference]:
        """Yield the reference with a case's scalars."""
        with self.scalars_of(case.name):
            yield self._reference

    def condition_of(self, case: Case, index: int) -> float:
        """Return an output's relative change over that of its operands, computed once: 1 or more.

        Whole numbers are not moved. An output of such operands alone has the nominal trial's, where that is larger.
        """
        if not case.conditions:
            with self.scalars_of(case.name):
                found = condition_numbers(self._reference, case)
            if case.name != NOMINAL[0] and all(map(is_whole, case.inputs)):
                nominal = self.case(NOMINAL[0])
                found = [max(each, self.condition_of(nominal, i)) for i, each in enumerate(found)]
            case.conditions.extend(found)
        return case.conditions[index]

    def honest(self, case: Case, index: int, precisions: tuple[PrecisionClass, ...]) -> Iterator[Moved | None]:
        """Yield what an output of a case might be in honest kernels of these classes; None where nothing can be told.

        That is PyTorch's own, those of operands rounded to a class, and some of operands with other last bits.
        """
        loosest = precisions[-1]
        with self.parameters_kept(), self.scalars_of(case.name):
            self.place_parameters(case.parameters)
            with signed_as(self._reference, case.expected):
                native = self._reference.run(case.inputs)[index]
            yield Moved(output=native, allowed=LOST_STEADY[PrecisionClass.FP32])
            for rng_seed in range(_MOVES):
                moved = moved_outputs(self._reference, case, SUM_ERROR[loosest], rng_seed)
                yield None if moved is None else Moved(output=moved[index], allowed=LOST_MOVED, by_operands=True)
            for precision in precisions:
                output = rounded_outputs(self._reference, case, precision)[index]
                yield Moved(output=output, allowed=LOST_STEADY[precision])

    def well_conditioned(self, case: Case, index: int, precision: PrecisionClass) -> WellConditioned | None:
        """Return the well-conditioned part of an output in a class, computed once; None where nothing can be told of it."""
        key = (index, precision)
        if key not in case.conditioned:
            case.conditioned[key] = well_conditioned(case.expected[index], self.honest(case, index, (precision,)))
        return case.conditioned[key]

    def moved(self, case: Case, index: int, precision: PrecisionClass) -> Iterator[torch.Tensor]:
        """Yield what an output of a case is for operands with other last bits, in float64; nothing where that is not told."""
        with self.scalars_of(case.name):
            for rng_seed in range(MOVED_DRAWS):
                outputs = moved_outputs(self._reference, case, SUM_ERROR[precision], rng_seed)
                if outputs is None:
                    return
                yield outputs[index]

    def own_of(self, name: str, precisions: tuple[PrecisionClass, ...]) -> dict[PrecisionClass, EachErrors | None]:
        """Return these classes' own errors on a case, which is made only for those that are not known yet."""
        own = self._own.setdefault(name, {})
        if any(p not in own for p in precisions):
            with self.parameters_kept():
                case = self.case(name)
                for precision in precisions:
                    self.own_errors(case, precision)
        return own

    def _measure_own(self, case: Case, precision: PrecisionClass) -> EachErrors | None:
        errors = errors_of_class(self._reference, case, precision)
        if errors is None:
            return None
        natives = [case.own.get(PrecisionClass.FP32)]
        if precision is PrecisionClass.TF32 and ReferenceMode.EAGER_TF32 in self._memory.device.modes:
            natives.append(self._torch_tf32_errors(case))
        return worst_of(errors, *natives)

    def _torch_tf32_errors(self, case: Case) -> EachErrors | None:
        """Return PyTorch's own error with TF32 on: tensor cores round sums of thousands of products too, not only operands."""
        use_tf32(on=True)
        try:
            self.place_parameters(case.parameters)
            with signed_as(self._reference, case.expected):
                outputs = self._reference.run(case.inputs)
        finally:
            use_tf32(on=False)
        return errors_of(outputs, case.expected)
