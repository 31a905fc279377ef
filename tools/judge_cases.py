"""The trials' inputs with their expected outputs, and each precision class's own error on them (runs in the judge)."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import torch

from ridgeline.tools.errors import ProblemError
from ridgeline.tools.judge_compare import Expected, compare, expect
from ridgeline.tools.judge_device import use_tf32
from ridgeline.tools.judge_inputs import SecretSource
from ridgeline.tools.judge_memory import ArenaMemory
from ridgeline.tools.judge_reference import Reference, Tensors
from ridgeline.tools.precision import Errors
from ridgeline.tools.records import DeviceKind, PrecisionClass

NOMINAL = ("nominal_0", "nominal_1")
TWEAKED = ("tweaked_0", "tweaked_1")
TRANSFORMED = (*TWEAKED, "shifted", "row_scaled", "integers")

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
    """Cases by name, kept while they fit into `budget_bytes` and made again from the secret when they do not."""

    def __init__(self, reference: Reference, source: SecretSource, memory: ArenaMemory, *, budget_bytes: int) -> None:
        self._reference = reference
        self._source = source
        self._memory = memory
        self._budget_bytes = budget_bytes
        self._kept: dict[str, Case] = {}
        self._own: dict[str, dict[PrecisionClass, Errors | None]] = {}
        self.skipped: dict[str, str] = {}
        self.default_parameters = False
        self._settle_parameters()
        nominal = self.case(NOMINAL[0])
        self._is_nominal_finite, self._fits_nominally = _all_finite(nominal), nominal.fits
        del nominal  # the largest cases are not kept
        self.names = (*NOMINAL, *(n for n in TRANSFORMED if self._is_in_domain(n)))

    def case(self, name: str) -> Case:
        """Return a case: one of `names`, or "extra_<n>" for a further nominal one."""
        if name in self._kept:
            return self._kept[name]
        case = self._make(name)
        if sum(c.size_bytes for c in self._kept.values()) + case.size_bytes <= self._budget_bytes:
            self._kept[name] = case
        return case

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
        }
        inputs = draws.get(name, self._source.nominal)(name)
        parameters = self._parameters_of(name)
        self.place_parameters(parameters)
        native = self._reference.run(inputs)
        expected = expected_of(self._reference, inputs, parameters, tuple(n.clone() for n in exact_of(native)))
        own = self._own.setdefault(name, {})
        own.setdefault(PrecisionClass.FP32, _errors_of(native, expected))
        return Case(name, inputs, parameters, expected, own, fits=_fits(native, expected))

    def _parameters_of(self, name: str) -> dict[str, torch.Tensor]:
        """Return a trial's parameters; those of the last tweaked one differ from `nominal_1`'s in a row of each."""
        if name == TWEAKED[-1] and not self.default_parameters:
            return self._source.tweaked_parameters(NOMINAL[1], name)
        return self.parameters(NOMINAL[1] if name in TWEAKED else name)

    def _settle_parameters(self) -> None:
        """Fall back on the model's own parameters when random ones leave the reference's domain."""
        case = self._make(NOMINAL[0])
        if _all_finite(case):
            return
        self.default_parameters = True
        self._own.clear()
        if _all_finite(self._make(NOMINAL[0])):
            self.skipped["random parameters"] = "outside the reference's domain"
        else:
            self.default_parameters = False
        self._own.clear()

    def _is_in_domain(self, name: str) -> bool:
        try:
            case = self.case(name)
        except ProblemError as error:
            self.skipped[name] = str(error).removeprefix("reference.py: ")
            return False
        if self._is_nominal_finite and not _all_finite(case):
            self.skipped[name] = "outside the reference's domain: its output is not finite"
            self._kept.pop(name, None)
            return False
        if self._fits_nominally and not case.fits:
            self.skipped[name] = "its output is beyond the range of the output's type"
            self._kept.pop(name, None)
            return False
        return True

    def _measure_own(self, case: Case, precision: PrecisionClass) -> Errors | None:
        inputs = tuple(_rounded(t, precision) for t in case.inputs)
        parameters = {n: _rounded(t, precision) for n, t in case.parameters.items()}
        with torch.no_grad():
            outputs = self._reference.run_double(inputs, parameters)
        stored = precision in _ROUNDED_TO
        outputs = tuple(_rounded(o, precision) if stored else o for o in outputs)
        floating = [(o, e) for o, e in zip(outputs, case.expected, strict=True) if not e.is_exact]
        errors = _errors_of(tuple(o for o, _ in floating), tuple(e for _, e in floating))
        if errors is None:
            return None
        natives = [case.own.get(PrecisionClass.FP32)]
        if precision is PrecisionClass.TF32 and self._memory.kind is DeviceKind.CUDA:
            natives.append(self._torch_tf32_errors(case))
        return functools.reduce(lambda worst, found: worst.merged(found) if found else worst, natives, errors)

    def _torch_tf32_errors(self, case: Case) -> Errors | None:
        """Return PyTorch's own error with TF32 on: tensor cores round sums of thousands of products too, not only operands."""
        use_tf32(on=True)
        try:
            outputs = self.native(case)
        finally:
            use_tf32(on=False)
        return _errors_of(outputs, case.expected)


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


def _errors_of(outputs: Tensors, expected: tuple[Expected, ...]) -> Errors | None:
    errors = Errors(overall=0.0)
    for output, want in zip(outputs, expected, strict=True):
        found = compare(output, want)
        if found.non_finite is not None:
            return None
        errors = errors.merged(found.errors)
    return errors


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
