"""The trials' inputs with their expected outputs, and each precision class's own error on them (runs in the judge)."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

import torch

from ridgeline.tools.errors import DeviceLostError, ProblemError
from ridgeline.tools.judge.worker.device import use_tf32
from ridgeline.tools.judge.worker.grading.compare import Expected, compare, expect
from ridgeline.tools.judge.worker.inputs.source import SecretSource
from ridgeline.tools.judge.worker.memory import ArenaMemory
from ridgeline.tools.judge.worker.reference import Reference, Tensors
from ridgeline.tools.records.precision import Errors
from ridgeline.tools.records.vocabulary import DeviceKind, PrecisionClass

T = TypeVar("T")

NOMINAL = ("nominal_0", "nominal_1")
TWEAKED = ("tweaked_0", "tweaked_1")
TRANSFORMED = (*TWEAKED, "shifted", "row_scaled", "integers", "outliers")
_GIVEN = NOMINAL[1]  # all inputs as `get_inputs` gives them, those too that it always gives alike

_FIRST_VARIED = (NOMINAL[0], TWEAKED[0])  # the first trials to change inputs that `get_inputs` gives alike
_RANDOM_PARAMETERS, _MIXTURES = "random parameters", "mixtures"
_TOGETHER, _TOGETHER_AGAIN = "other inputs", "other inputs, each accepted alone"
_LOST = "the reference's kernels fail on the GPU with these values (a device-side assert?)"

_ROUNDED_TO = {
    PrecisionClass.FP16: torch.float16,
    PrecisionClass.BF16: torch.bfloat16,
    PrecisionClass.FP8: torch.float8_e4m3fn,
}
_TF32_DROPPED_BITS = 13  # tf32 keeps 10 of float32's 23 mantissa bits


@dataclass(slots=True)
class Case:
    """One trial: what goes in, what must come out, and how wrong each class is on it."""

    name: str
    inputs: Tensors
    parameters: dict[str, torch.Tensor]
    expected: tuple[Expected, ...]
    own: dict[PrecisionClass, Errors | None] = field(default_factory=dict)
    fits: bool = True  # PyTorch's own output is finite wherever the expected one is: fp16 ends at 65504

    @property
    def size_bytes(self) -> int:
        """Return the memory this case holds."""
        tensors = [*self.inputs, *self.parameters.values(), *(e.values for e in self.expected)]
        return sum(t.numel() * t.element_size() for t in tensors)


class CaseBook:
    """Cases by name, kept while they fit into `budget_bytes` and made again from the secret when they do not.

    What does not fit is held until the next one is made, or until `let_go`: a trial asks for its case three times.
    """

    def __init__(
        self,
        reference: Reference,
        source: SecretSource,
        memory: ArenaMemory,
        *,
        budget_bytes: int,
        held_bytes: int = 0,
        left_out: frozenset[str] = frozenset(),
    ) -> None:
        """Find out by running the reference which trials it takes.

        Args:
            reference: the user's, on its device.
            source: what inputs and parameters are drawn from.
            memory: the sets, and the parameters that the reference uses.
            budget_bytes: how much the cases that are kept may take.
            held_bytes: how much the one that is held may take beside them.
            left_out: what lost an earlier judge of this reference its GPU, and is not tried again.

        Raises:
            DeviceLostError: something new did, which its message names.
        """
        self._left_out = left_out
        self._reference = reference
        self._source = source
        self._memory = memory
        self._budget_bytes = budget_bytes
        self._held_bytes = held_bytes
        self._kept: dict[str, Case] = {}
        self._held: dict[str, Case] = {}  # one at most
        self._own: dict[str, dict[PrecisionClass, Errors | None]] = {}
        self.skipped: dict[str, str] = {}
        self.default_parameters = False
        self._settle_parameters()
        given = self.case(_GIVEN)
        self._is_given_finite, self._fits_as_given = _all_finite(given), given.fits
        del given  # the largest cases are not kept
        self.let_go()
        self._settle_inputs()
        self._settle_mixtures()
        self.names = (*NOMINAL, *(n for n in TRANSFORMED if self._is_in_domain(n)))

    def case(self, name: str) -> Case:
        """Return a case: one of `names`, or "extra_<n>" for a further nominal one."""
        known = self._kept.get(name) or self._held.get(name)
        if known is not None:
            return known
        self.let_go()  # before there is another beside it
        case = self._make(name)
        if sum(c.size_bytes for c in self._kept.values()) + case.size_bytes <= self._budget_bytes:
            self._kept[name] = case
        elif case.size_bytes <= self._held_bytes:
            self._held[name] = case
        return case

    def let_go(self) -> None:
        """Free the case that is held: its memory is wanted for something else."""
        self._held.clear()

    def parameters(self, label: str) -> dict[str, torch.Tensor]:
        """Return the parameters that belong to a label."""
        if self.default_parameters:
            return self._source.default_parameters()
        return self._source.parameters(label)

    def place_parameters(self, values: dict[str, torch.Tensor]) -> None:
        """Write parameters into the memory that the runner reads and the reference uses."""
        for name, view in self._memory.parameters.items():
            view.copy_(values[name])

    def native(self, case: Case) -> Tensors:
        """Return the reference's own outputs in its own type."""
        self.place_parameters(case.parameters)
        return self._reference.run(case.inputs)

    def own_errors(self, case: Case, precision: PrecisionClass) -> Errors | None:
        """Return a class's own error on a case, computed once; None when the class cannot hold these numbers."""
        if precision not in case.own:
            case.own[precision] = self._measure_own(case, precision)
        return case.own[precision]

    def own_of(self, name: str, precisions: tuple[PrecisionClass, ...]) -> dict[PrecisionClass, Errors | None]:
        """Return these classes' own errors on a case, which is made only for those that are not known yet."""
        own = self._own.setdefault(name, {})
        if any(p not in own for p in precisions):
            with self._parameters_kept():
                case = self.case(name)
                for precision in precisions:
                    self.own_errors(case, precision)
        return own

    # --------------------------------------------------------------------------------------------------------- making

    def _make(self, name: str) -> Case:
        with self._parameters_kept():
            return self._computed(name)

    @contextlib.contextmanager
    def _parameters_kept(self) -> Iterator[None]:
        """Leave the parameters in the memory as they were: an output may still be graded by them."""
        placed = {name: view.clone() for name, view in self._memory.parameters.items()}
        try:
            yield
        finally:
            self.place_parameters(placed)

    def _computed(self, name: str) -> Case:
        draws: dict[str, Callable[[str], Tensors]] = {
            **{name: lambda label: self._source.tweaked(NOMINAL[1], label) for name in TWEAKED},
            "shifted": self._source.shifted,
            "row_scaled": self._source.row_scaled,
            "integers": self._source.integers,
            "outliers": self._source.outliers,
            _GIVEN: self._source.given,
        }
        inputs = draws.get(name, self._source.nominal)(name)
        parameters = self._parameters_of(name)
        self.place_parameters(parameters)
        native = self._reference.run(inputs)
        expected = expected_of(self._reference, inputs, parameters, tuple(n.clone() for n in exact_of(native)))
        own = self._own.setdefault(name, {})
        if PrecisionClass.FP32 not in own:
            own[PrecisionClass.FP32] = errors_of(native, expected)
        return Case(name, inputs, parameters, expected, own, fits=_fits(native, expected))

    def _parameters_of(self, name: str) -> dict[str, torch.Tensor]:
        """Return a trial's parameters; those of the last tweaked one differ from `nominal_1`'s in a row of each."""
        if name == TWEAKED[-1] and not self.default_parameters:
            return self._source.tweaked_parameters(NOMINAL[1], name)
        return self.parameters(NOMINAL[1] if name in TWEAKED else name)

    def _settle_parameters(self) -> None:
        """Fall back on the model's own parameters when random ones leave the reference's domain."""
        if _RANDOM_PARAMETERS in self._left_out:
            self.default_parameters = True
            self.skipped[_RANDOM_PARAMETERS] = _LOST
            return
        if self._tried(_RANDOM_PARAMETERS, lambda: _all_finite(self._make(_GIVEN))):
            return
        self.default_parameters = True
        self._own.clear()
        if _all_finite(self._make(_GIVEN)):
            self.skipped[_RANDOM_PARAMETERS] = "outside the reference's domain"
        else:
            self.default_parameters = False
        self._own.clear()

    def _settle_inputs(self) -> None:
        """Find out in which way each input may be changed that `get_inputs` does not change, or not enough."""
        source, names = self._source, self._reference.input_names
        if self._is_refused(_TOGETHER):
            for index in source.varied:
                self._settle_input(index)
            if self._is_refused(_TOGETHER_AGAIN):
                for index in source.varied:
                    self._leave(index, "together with others, other values are outside the reference's domain")
        for index in source.kept:
            self.skipped.setdefault(f"other {names[index]}", "its values are a mask or indices, and are always these")

    def _is_refused(self, what: str) -> bool:
        """Return whether the reference refuses the inputs as they are changed now, all at once."""
        if not self._source.varied:
            return False
        return what in self._left_out or any(self._tried(what, self._objections))

    def _objections(self) -> list[str]:
        return [self._objection(trial) for trial in _FIRST_VARIED]

    def _settle_input(self, index: int) -> None:
        ways = 0
        while index in self._source.varied:
            what = f"other {self._reference.input_names[index]}, way {ways}"
            objections = [_LOST]
            if what not in self._left_out:
                with self._source.varying_only(index):
                    objections = self._tried(what, self._objections)
                    self._forget(_FIRST_VARIED)
            if not any(objections):
                return
            self._source.give_up_way(index)
            ways += 1
            if index not in self._source.varied:
                self._leave(index, next(o for o in objections if o))

    def _leave(self, index: int, why: str) -> None:
        while index in self._source.varied:
            self._source.give_up_way(index)
        self._forget(_FIRST_VARIED)
        self.skipped[f"other {self._reference.input_names[index]}"] = why

    def _settle_mixtures(self) -> None:
        """Give every timed set a draw of its own where the reference refuses mixtures (of definite matrices, say)."""
        if _MIXTURES in self._left_out:
            self._source.draw_each_set()
            return
        views = tuple(torch.empty_like(view) for view in self._memory.inputs[0])
        self._source.fill("mixture", self._memory.n_sets).write(0, views)
        if not self._tried(_MIXTURES, lambda: self._takes(views)):
            self._source.draw_each_set()

    def _takes(self, inputs: Tensors) -> bool:
        with self._parameters_kept():
            self.place_parameters(self.parameters(NOMINAL[0]))
            try:
                return _are_finite(self._reference.run(inputs)) or not self._is_given_finite
            except ProblemError:
                return False

    def _forget(self, names: tuple[str, ...]) -> None:
        for name in names:
            self._kept.pop(name, None)
            self._held.pop(name, None)
            self._own.pop(name, None)

    def _is_in_domain(self, name: str) -> bool:
        objection = _LOST if name in self._left_out else self._tried(name, lambda: self._objection(name))
        if objection:
            self.skipped[name] = objection
        return not objection

    def _tried(self, what: str, attempt: Callable[[], T]) -> T:
        """Return what an attempt gives.

        A kernel's failure shows in any later call, and in words of many libraries: so the GPU is asked whether it still
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

    def _objection(self, name: str) -> str:
        """Return why the reference gives nothing for a trial to be compared with, "" when it does."""
        try:
            case = self.case(name)
        except ProblemError as error:
            return str(error).removeprefix("reference.py: ")
        if self._is_given_finite and not _all_finite(case):
            self._forget((name,))
            return "outside the reference's domain: its output is not finite"
        if self._fits_as_given and not case.fits:
            self._forget((name,))
            return "its output is beyond the range of the output's type"
        return ""

    def _measure_own(self, case: Case, precision: PrecisionClass) -> Errors | None:
        inputs = tuple(_rounded(t, precision) for t in case.inputs)
        parameters = {n: _rounded(t, precision) for n, t in case.parameters.items()}
        with torch.no_grad():
            outputs = self._reference.run_double(inputs, parameters)
        stored = precision in _ROUNDED_TO
        outputs = tuple(_rounded(o, precision) if stored else o for o in outputs)
        floating = [(o, e) for o, e in zip(outputs, case.expected, strict=True) if not e.is_exact]
        errors = errors_of(tuple(o for o, _ in floating), tuple(e for _, e in floating))
        if errors is None:
            return None
        natives = [case.own.get(PrecisionClass.FP32)]
        if precision is PrecisionClass.TF32 and self._memory.device.kind is DeviceKind.CUDA:
            natives.append(self._torch_tf32_errors(case))
        return functools.reduce(lambda worst, found: worst.merged(found) if found else worst, natives, errors)

    def _torch_tf32_errors(self, case: Case) -> Errors | None:
        """Return PyTorch's own error with TF32 on: tensor cores round sums of thousands of products too, not only operands."""
        use_tf32(on=True)
        try:
            outputs = self.native(case)
        finally:
            use_tf32(on=False)
        return errors_of(outputs, case.expected)


def exact_of(native: Tensors) -> Tensors:
    """Return the reference's outputs as `expected_of` needs them: integers and bools, and nothing of floating ones."""
    return tuple(n.new_empty(0) if n.is_floating_point() else n for n in native)


def expected_of(
    reference: Reference, inputs: Tensors, parameters: dict[str, torch.Tensor], exact: Tensors
) -> tuple[Expected, ...]:
    """Return the expected outputs: in float64, or what `exact` has of integers and bools."""
    with torch.no_grad():
        doubles = reference.run_double(inputs, parameters)
    pairs = zip(doubles, exact, strict=True)
    return tuple(expect(d if d.is_floating_point() and n.is_floating_point() else n) for d, n in pairs)


def _fits(outputs: Tensors, expected: tuple[Expected, ...]) -> bool:
    if not all(math.isfinite(e.norm) for e in expected):
        return False  # float64 holds the values and not their squares: every error would be none
    pairs = [(o, e) for o, e in zip(outputs, expected, strict=True) if o.is_floating_point()]
    return all(bool((torch.isfinite(o) | ~_is_finite(e)).all()) for o, e in pairs)


def _is_finite(expected: Expected) -> torch.Tensor:
    """Return which elements are finite; one word where all are."""
    values = expected.values
    return torch.ones((), dtype=torch.bool, device=values.device) if expected.all_finite else torch.isfinite(values)


def errors_of(outputs: Tensors, expected: tuple[Expected, ...]) -> Errors | None:
    """Return how far outputs are from what is expected, None where one is not finite that should be."""
    errors = Errors(overall=0.0)
    for output, want in zip(outputs, expected, strict=True):
        found = compare(output, want)
        if found.non_finite is not None:
            return None
        errors = errors.merged(found.errors)
    return errors


def _are_finite(outputs: Tensors) -> bool:
    return all(bool(torch.isfinite(o).all()) for o in outputs if o.is_floating_point())


def _all_finite(case: Case) -> bool:
    return all(e.all_finite for e in case.expected)


def _rounded(tensor: torch.Tensor, precision: PrecisionClass) -> torch.Tensor:
    if not tensor.is_floating_point() or precision is PrecisionClass.FP32:
        return tensor
    if precision is PrecisionClass.TF32:
        bits = tensor.float().contiguous().view(torch.int32)
        half = (1 << (_TF32_DROPPED_BITS - 1)) - 1 + ((bits >> _TF32_DROPPED_BITS) & 1)  # to nearest, ties to even
        kept = (bits + half) & ~((1 << _TF32_DROPPED_BITS) - 1)
        return kept.view(torch.float32).to(tensor.dtype).view_as(tensor)
    return tensor.to(_ROUNDED_TO[precision]).to(tensor.dtype)
