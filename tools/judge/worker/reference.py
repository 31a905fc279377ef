"""The user's reference in KernelBench form, loaded and described (runs in the judge).

The reference is trusted code of the user's own; what can be wrong with it is a ProblemError of one line.
"""

from __future__ import annotations

import contextlib
import copy
import inspect
import random
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch

from ridgeline.tools.errors import ProblemError
from ridgeline.tools.judge.hang_limit import HangLimit
from ridgeline.tools.judge.worker.contract import (
    Written,
    find_written,
    like,
    module_contract,
    tensors_in,
    without_side_effects,
)
from ridgeline.tools.judge.worker.memory import storage_elements
from ridgeline.tools.judge.worker.user_code import FILE as _FILE
from ridgeline.tools.judge.worker.user_code import attribute, load_reference, run_own
from ridgeline.tools.modelnew.file import PUBLIC_SEED
from ridgeline.tools.modelnew.tensor_bits import equal_bits
from ridgeline.tools.records.problem import ArgSpec, Signature
from ridgeline.tools.records.vocabulary import ArgKind, Role

T = TypeVar("T")
Tensors = tuple[torch.Tensor, ...]

_STATE = (
    " (batch normalisation in training mode, a cache?): what it gives depends on earlier calls, which cannot be judged; "
    "it runs in eval() mode, so leave `training=True` out"
)
_RANDOM = " (dropout that is always on?): it runs in eval() mode, so tie what is random to `self.training`"
_LARGEST_INT = 2**53  # scalars travel as doubles
_SCALARS: tuple[tuple[type, str], ...] = ((bool, "bool"), (int, "int64"), (float, "float64"))
_DTYPES = frozenset({"float32", "float64", "float16", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "bool"})


@dataclass(frozen=True, slots=True)
class _Slot:
    """Where the n-th input tensor goes in the arguments of `forward`."""

    index: int


class Reference:
    """The reference's model in eval mode, its signature, and ways to call it on flat tuples of input tensors."""

    def __init__(self, source: str, device: str = "cpu", *, limit: HangLimit | None = None) -> None:
        """Run the module and its parts, each within `limit`, after which this process ends.

        `device` is as torch names it: "cpu" or "cuda".
        """
        self.device = device
        self._limit = limit or HangLimit()
        self._module = self._own("module", lambda: load_reference(source))
        self.model = self._make_model()
        self._place_model()
        self._arguments: list[Any] = []
        taken: set[str] = set()
        specs = self._describe_inputs(self._get_inputs(0), taken)
        self._written, self._result = self._find_written(self.draw_inputs(0))
        for kind, named in ((Role.PARAMETER, self.model.named_parameters()), (Role.BUFFER, self.model.named_buffers())):
            specs += [_tensor_spec(_unique(_c_name(n), taken), kind, t, n, keep_strides=False) for n, t in named]
        specs += self._describe_outputs(self.run(self.draw_inputs(0)), taken, specs)
        self.signature = Signature(args=tuple(specs))
        self._double: torch.nn.Module | None = None

    # -------------------------------------------------------------------------------------------------- description

    def _make_model(self) -> torch.nn.Module:
        init = self._own("get_init_inputs", attribute(self._module, "get_init_inputs"))
        if not isinstance(init, list | tuple):
            raise ProblemError(f"{_FILE}: get_init_inputs() must return a list, got {type(init).__name__}")
        self._init = init
        torch.manual_seed(PUBLIC_SEED)
        model = self._own("Model()", lambda: attribute(self._module, "Model")(*init))
        if not isinstance(model, torch.nn.Module):
            raise ProblemError(f"{_FILE}: Model() must give a torch.nn.Module, got {type(model).__name__}")
        lazy = [n for n, t in model.named_parameters() if isinstance(t, torch.nn.parameter.UninitializedParameter)]
        if lazy:
            raise ProblemError(f"{_FILE}: parameter {lazy[0]} has no shape yet: give its lazy module a size")
        return model.eval().requires_grad_(False)

    def _place_model(self) -> None:
        self._own("Model().to(device)", lambda: self.model.to(self.device))

    def _describe_inputs(self, values: Sequence[Any], taken: set[str]) -> list[ArgSpec]:
        names = _argument_names(self.model.forward)
        specs: list[ArgSpec] = []
        for i, value in enumerate(values):
            name = names[i] if i < len(names) else f"arg_{i}"
            self._arguments.append(_template(value, _c_name(name), name, specs, taken))
        if not any(s.kind is ArgKind.TENSOR for s in specs):
            raise ProblemError(f"{_FILE}: get_inputs() gives no tensor: a kernel needs at least one")
        return specs

    def _find_written(self, inputs: Tensors) -> tuple[Written, Any]:
        """Return which inputs `forward` works in place on, and its result; from now on it works on copies of them."""
        arguments = self.arguments(inputs)
        written, result = self._own("forward()", lambda: find_written(arguments, self.model, self._is_same))
        without_side_effects(self.model, written)
        return written, result

    def _is_same(self, copy: torch.Tensor, was: torch.Tensor) -> bool:
        return equal_bits(copy, was)

    def _describe_outputs(self, outputs: Tensors, taken: set[str], specs: Sequence[ArgSpec]) -> list[ArgSpec]:
        given = [s.name for s in specs if s.role is Role.INPUT and s.kind is ArgKind.TENSOR]
        written = [f"{given[i]}_after" for i in self._written.appended]
        n = len(outputs) - len(written)
        names = [*(["out"] if n == 1 else [f"out_{i}" for i in range(n)]), *written]
        return [
            _tensor_spec(_unique(n, taken), Role.OUTPUT, o, n, keep_strides=False)
            for n, o in zip(names, outputs, strict=True)
        ]

    # ------------------------------------------------------------------------------------------------------ running

    def _get_inputs(self, rng_seed: int) -> list[Any]:
        torch.manual_seed(rng_seed)
        random.seed(rng_seed)
        if "numpy" in sys.modules:
            sys.modules["numpy"].random.seed(rng_seed % (1 << 32))
        draw = attribute(self._module, "get_inputs")
        with torch.device(self.device):  # drawn on the device, where the reference does not say otherwise
            values = self._own("get_inputs()", draw)
        if not isinstance(values, list | tuple):
            raise ProblemError(f"{_FILE}: get_inputs() must return a list, got {type(values).__name__}")
        return list(values)

    def draw_inputs(self, rng_seed: int) -> Tensors:
        """Return the input tensors of one call of `get_inputs()`, lists flattened."""
        return tuple(t.detach().to(self.device) for t in tensors_in(self._get_inputs(rng_seed)))

    def arguments(self, inputs: Tensors) -> list[Any]:
        """Return what `forward` takes, with these tensors in their places."""
        return [_fill(a, inputs) for a in self._arguments]

    def run(self, inputs: Tensors) -> Tensors:
        """Call the reference as the user wrote it."""
        return self._own("forward()", lambda: flat_outputs(self.model(*self.arguments(inputs))))

    def run_double(self, inputs: Tensors, parameters: dict[str, torch.Tensor]) -> Tensors:
        """Call the reference in float64 with these parameters; in its own type where it refuses float64."""
        model = self._double_model()
        for name, value in parameters.items():
            _set_tensor(model, name, value.double() if value.is_floating_point() else value)
        doubled = tuple(t.double() if t.is_floating_point() else t for t in inputs)
        try:
            return flat_outputs(model(*self.arguments(doubled)))
        except torch.OutOfMemoryError:
            raise  # expected outputs of the reference's own type would be taken for those of float64
        except (RuntimeError, TypeError, ValueError):  # an operation without float64, or a type written into forward
            with self._holding(parameters):
                return self.run(inputs)

    @contextlib.contextmanager
    def _holding(self, parameters: dict[str, torch.Tensor]) -> Iterator[None]:
        """Let the model have these parameters meanwhile: in the judge's memory there may be others."""
        own = {name: tensor.data for name, tensor in self.named_tensors().items() if name in parameters}
        try:
            for name in own:
                _set_tensor(self.model, name, parameters[name])
            yield
        finally:
            for name, tensor in own.items():
                _set_tensor(self.model, name, tensor)

    def _double_model(self) -> torch.nn.Module:
        if self._double is None:
            self._double = copy.deepcopy(self.model).double()
            for module in self._double.modules():
                for name, value in vars(module).items():
                    if isinstance(value, torch.Tensor) and value.is_floating_point():
                        setattr(module, name, value.double())  # a plain attribute, which .double() does not see
        return self._double

    @property
    def input_names(self) -> tuple[str, ...]:
        """Return the names of the input tensors, in the order of `draw_inputs`."""
        return tuple(a.name for a in self.signature.with_role(Role.INPUT) if a.kind is ArgKind.TENSOR)

    def named_tensors(self) -> dict[str, torch.Tensor]:
        """Return parameters and buffers by their names in the model."""
        return dict(self.model.named_parameters()) | dict(self.model.named_buffers())

    def contract(self) -> dict[str, Any]:
        """Return what a runner needs to make a `ModelNew` and to call it, as plain values; to be asked before `bind`.

        Raises:
            ProblemError: an argument of the constructor cannot be sent.
        """
        arguments = self.arguments(self.draw_inputs(0))
        return module_contract(self.model, self._init, arguments, self._result, self._written)

    def loaded_names(self) -> frozenset[str]:
        """Return the parameters and buffers that `load_state_dict` sets: all but buffers that are not persistent."""
        kept = {id(t) for t in self.model.state_dict(keep_vars=True).values()}
        return frozenset(n for n, t in self.named_tensors().items() if id(t) in kept)

    def _own(self, what: str, call: Callable[[], T]) -> T:
        with self._limit.applied():
            return run_own(what, call)

    def bind(self, views: dict[str, torch.Tensor]) -> None:
        """Let the model's parameters and buffers live in the given memory, which gets their values."""
        for name, tensor in self.named_tensors().items():
            views[name].copy_(tensor)
            _set_tensor(self.model, name, views[name])


def check_usable(reference: Reference) -> None:
    """Run the reference twice on the same inputs.

    Raises:
        ProblemError: it changes its own state, its two results differ beyond rounding, or other inputs give other shapes.
    """
    inputs = reference.draw_inputs(1)
    _check_form("get_inputs()", inputs, reference.signature, Role.INPUT)
    before = tuple(t.clone() for t in inputs)
    state = {n: t.clone() for n, t in reference.named_tensors().items()}
    first = tuple(t.clone() for t in reference.run(inputs))
    _check_form("forward()", first, reference.signature, Role.OUTPUT)
    if not all(equal_bits(a, b) for a, b in zip(inputs, before, strict=True)):
        raise ProblemError(
            f"{_FILE}: forward() works in place on an input for some values only: a kernel takes one form"
        )
    changed = next((n for n, t in reference.named_tensors().items() if not equal_bits(t, state[n])), None)
    if changed is not None:
        raise ProblemError(f"{_FILE}: forward() changes its own `{changed}`{_STATE}")
    for one, two in zip(first, reference.run(inputs), strict=True):
        if not _agree(one, two):
            raise ProblemError(f"{_FILE}: forward() is nondeterministic: two runs on the same inputs differ{_RANDOM}")
    if not any(t.numel() for t in first):
        raise ProblemError(f"{_FILE}: forward() gives only empty tensors: a kernel would have nothing to do")
    if all(t.is_floating_point() and not bool(torch.isfinite(t).any()) for t in first):
        raise ProblemError(f"{_FILE}: forward() gives nothing but NaN or infinity for get_inputs()")


def _check_form(what: str, tensors: Tensors, signature: Signature, role: Role) -> None:
    specs = [s for s in signature.with_role(role) if s.kind is ArgKind.TENSOR]
    if len(specs) != len(tensors):
        raise ProblemError(
            f"{_FILE}: {what} gives {len(specs)} tensors and then {len(tensors)}: a kernel takes one form"
        )
    for spec, tensor in zip(specs, tensors, strict=True):
        one, two = f"{spec.dtype} {spec.shape}", f"{dtype_name(tensor)} {tuple(tensor.shape)}"
        if one != two:
            raise ProblemError(f"{_FILE}: {what} gives {one} and then {two}: a kernel takes one form, for any values")


def flat_outputs(result: Any) -> Tensors:
    """Return the tensors of a result, lists and tuples flattened.

    Raises:
        ProblemError: there is none, or one has a type that kernels cannot write.
    """
    tensors = tuple(tensors_in(result))
    if not tensors:
        raise ProblemError(f"{_FILE}: forward() must return a tensor, got {type(result).__name__}")
    for tensor in tensors:
        strange = _strangeness(tensor)
        if strange:
            raise ProblemError(f"{_FILE}: forward() returns {strange}, which kernels cannot write")
    return tensors


def _strangeness(tensor: torch.Tensor) -> str:
    """Return what keeps a tensor from being plain memory of a type that C has; "" for nothing."""
    if tensor.is_nested or tensor.layout is not torch.strided:
        return "nested" if tensor.is_nested else str(tensor.layout).removeprefix("torch.").removeprefix("_")
    if tensor.is_meta:
        return "on the meta device, without values"
    return "" if dtype_name(tensor) in _DTYPES else dtype_name(tensor)


def dtype_name(tensor: torch.Tensor) -> str:
    """Return "float32" for torch.float32."""
    return str(tensor.dtype).removeprefix("torch.")


# ------------------------------------------------------------------------------------------------------- flattening


def _argument_names(forward: Callable[..., Any]) -> list[str]:
    """Return the names that positional arguments have; none from `*args` on."""
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    try:
        return [p.name for p in inspect.signature(forward).parameters.values() if p.kind in positional]
    except (TypeError, ValueError):  # a callable of some native library
        return []


def _template(value: Any, name: str, source: str, specs: list[ArgSpec], taken: set[str]) -> Any:
    if isinstance(value, list | tuple):
        parts = [_template(v, f"{name}_{i}", f"{source}[{i}]", specs, taken) for i, v in enumerate(value)]
        return like(value, parts)
    if isinstance(value, dict):
        named = [(k, _c_name(f"{name}_{k}"), f"{source}[{k!r}]") for k in value]
        return {k: _template(value[k], inner, place, specs, taken) for k, inner, place in named}
    name = _unique(name, taken)
    if isinstance(value, torch.Tensor):
        strange = _strangeness(value)
        if strange:
            raise ProblemError(f"{_FILE}: input {source} is {strange}, which kernels cannot read")
        index = sum(s.kind is ArgKind.TENSOR for s in specs)
        specs.append(_tensor_spec(name, Role.INPUT, value, source, keep_strides=True))
        return _Slot(index)
    if value is None:
        specs.append(ArgSpec(name=name, role=Role.INPUT, kind=ArgKind.NONE, source=source))
        return None
    if isinstance(value, int) and abs(value) > _LARGEST_INT:
        raise ProblemError(f"{_FILE}: input {source} exceeds 2^53, which a kernel could not get exactly")
    for kind, dtype in _SCALARS:
        if isinstance(value, bool | int | float) and isinstance(value, kind):
            specs.append(
                ArgSpec(name=name, role=Role.INPUT, kind=ArgKind.SCALAR, dtype=dtype, value=float(value), source=source)
            )
            return value
    raise ProblemError(
        f"{_FILE}: input {source} is a {type(value).__name__}: tensors, numbers, None, or lists and dicts of them"
    )


def _fill(template: Any, inputs: Tensors) -> Any:
    if isinstance(template, _Slot):
        return inputs[template.index]
    if isinstance(template, list | tuple):
        return like(template, [_fill(t, inputs) for t in template])
    if isinstance(template, dict):
        return {key: _fill(t, inputs) for key, t in template.items()}
    return template


def _tensor_spec(name: str, role: Role, tensor: torch.Tensor, source: str, *, keep_strides: bool) -> ArgSpec:
    shape = tuple(tensor.shape)
    spec = ArgSpec(
        name=name, role=role, dtype=dtype_name(tensor), shape=shape, strides=tuple(tensor.stride()), source=source
    )
    if keep_strides and storage_elements(spec) == tensor.numel():
        return spec  # dense in some order; an expanded or sliced tensor is made contiguous
    contiguous = tuple(torch.empty(shape, device="meta").stride())
    return ArgSpec(name=name, role=role, dtype=spec.dtype, shape=shape, strides=contiguous, source=source)


def _c_name(name: str) -> str:
    identifier = re.sub(r"\W", "_", name)
    return identifier if not identifier[:1].isdigit() else f"_{identifier}"


def _unique(name: str, taken: set[str]) -> str:
    """Return a name that no other equals, in upper case either: problem.h has constants by it."""
    while name.upper() in taken:
        name += "_"
    taken.add(name.upper())
    return name


def _set_tensor(model: torch.nn.Module, name: str, value: torch.Tensor) -> None:
    path, _, leaf = name.rpartition(".")
    owner = model.get_submodule(path)
    if leaf in owner._parameters:
        parameter = owner._parameters[leaf]
        assert parameter is not None
        parameter.data = value
    else:
        owner._buffers[leaf] = value


# -------------------------------------------------------------------------------------------------------- comparing


def _agree(one: torch.Tensor, two: torch.Tensor) -> bool:
    if one.shape != two.shape or one.dtype != two.dtype:
        return False
    if not one.is_floating_point():
        return torch.equal(one, two)
    rounding = 64 * torch.finfo(one.dtype).eps
    return torch.allclose(one.double(), two.double(), rtol=rounding, atol=rounding, equal_nan=True)
