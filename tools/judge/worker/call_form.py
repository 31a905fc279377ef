"""The form of a call: what `forward` takes and gives, as flat tuples of tensors and as the signature describes them.

A template of the arguments has a slot for each input tensor; `filled` puts tensors into the slots.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor

from ridgeline.tools.errors import BadReferenceError
from ridgeline.tools.judge.worker.contract import like, refuse_cycles, tensors_in
from ridgeline.tools.judge.worker.regions import storage_elements
from ridgeline.tools.records.problem import ArgSpec
from ridgeline.tools.records.vocabulary import ArgKind, Role

Tensors = tuple[torch.Tensor, ...]
Scalar = float | int | bool

_LARGEST_INT = 2**53  # scalars travel as doubles
_SCALARS: tuple[tuple[type, str], ...] = ((bool, "bool"), (int, "int64"), (float, "float64"))
_DTYPES = frozenset({"float32", "float64", "float16", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "bool"})


@dataclass(frozen=True, slots=True)
class _InputSlot:
    """Place of the n-th input tensor in the arguments of `forward`."""

    index: int


@dataclass(frozen=True, slots=True)
class _ScalarSlot:
    """Place of the n-th scalar in the arguments of `forward`."""

    index: int


def argument_names(forward: Callable[..., Any]) -> list[str]:
    """Return the names that positional arguments have; none from `*args` on."""
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    try:
        return [p.name for p in inspect.signature(forward).parameters.values() if p.kind in positional]
    except (TypeError, ValueError):  # a callable of some native library
        return []


def template_of(value: Any, name: str, source: str, specs: list[ArgSpec], taken: set[str]) -> Any:
    """Return the template of one argument, and add to `specs` what it holds.

    Args:
        value: what `get_inputs` gives for the argument.
        name: a C identifier for it.
        source: how the reference names it.
        specs: the descriptions so far.
        taken: the names so far, in upper case.

    Raises:
        BadReferenceError: a kernel could not take the value.
    """
    if isinstance(value, list | tuple):
        parts = [template_of(v, f"{name}_{i}", f"{source}[{i}]", specs, taken) for i, v in enumerate(value)]
        return like(value, parts)
    if isinstance(value, dict):
        named = [(k, c_name(f"{name}_{k}"), f"{source}[{k!r}]") for k in value]
        return {k: template_of(value[k], inner, place, specs, taken) for k, inner, place in named}
    name = unique_name(name, taken)
    if isinstance(value, torch.Tensor):
        expect_readable(value, f"input {source}")
        index = sum(s.kind is ArgKind.TENSOR for s in specs)
        specs.append(tensor_spec(name, Role.INPUT, value, source, keep_strides=True))
        return _InputSlot(index)
    if value is None:
        specs.append(ArgSpec(name=name, role=Role.INPUT, kind=ArgKind.NONE, source=source))
        return None
    specs.append(_scalar_spec(name, value, source))
    return _ScalarSlot(sum(s.kind is ArgKind.SCALAR for s in specs) - 1)


def scalars_in(value: Any) -> list[Scalar]:
    """Return the scalars of a value in the order of its template; lists, tuples and dicts flattened."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return [s for v in value for s in scalars_in(v)]
    return [] if value is None or isinstance(value, torch.Tensor) else [value]


def _scalar_spec(name: str, value: Any, source: str) -> ArgSpec:
    if isinstance(value, int) and abs(value) > _LARGEST_INT:
        raise BadReferenceError.of_text(f"input {source} exceeds 2^53, which a kernel could not get exactly")
    dtype = next((dtype for kind, dtype in _SCALARS if isinstance(value, kind)), None)
    if dtype is None:
        raise BadReferenceError.of_text(
            f"input {source} is a {type(value).__name__}: tensors, numbers, None, or lists and dicts of them"
        )
    return ArgSpec(name=name, role=Role.INPUT, kind=ArgKind.SCALAR, dtype=dtype, value=float(value), source=source)


def filled(template: Any, inputs: Tensors, scalars: Sequence[Scalar]) -> Any:
    """Return an argument from its template, with these tensors and scalars in its slots."""
    if isinstance(template, _InputSlot):
        return inputs[template.index]
    if isinstance(template, _ScalarSlot):
        return scalars[template.index]
    if isinstance(template, list | tuple):
        return like(template, [filled(t, inputs, scalars) for t in template])
    if isinstance(template, dict):
        return {key: filled(t, inputs, scalars) for key, t in template.items()}
    return template


def flat_outputs(result: Any) -> Tensors:
    """Return the tensors of a result, lists and tuples flattened.

    Raises:
        BadReferenceError: there is none, one has a type that kernels cannot write, or a list holds itself.
    """
    refuse_cycles(result, "forward()")
    tensors = tuple(tensors_in(result))
    if not tensors:
        raise BadReferenceError.of_text(f"forward() must return a tensor, got {type(result).__name__}")
    for tensor in tensors:
        strange = _strangeness(tensor)
        if strange:
            raise BadReferenceError.of_text(f"forward() returns {strange}, which kernels cannot write")
    return tensors


def expect_readable(tensor: torch.Tensor, what: str) -> None:
    """Check that a tensor is plain memory of a type that C has, and of a class that every operation knows.

    Raises:
        BadReferenceError: it is not; the line begins with `what` it is.
    """
    if strange := _strangeness(tensor) or _subclass(tensor):
        raise BadReferenceError.of_text(f"{what} is {strange}, which kernels cannot read")


def tensor_spec(name: str, role: Role, tensor: torch.Tensor, source: str, *, keep_strides: bool) -> ArgSpec:
    """Return a tensor's description; without `keep_strides`, or where it is not dense, a contiguous one."""
    shape = tuple(tensor.shape)
    spec = ArgSpec(
        name=name, role=role, dtype=dtype_name(tensor), shape=shape, strides=tuple(tensor.stride()), source=source
    )
    if keep_strides and storage_elements(spec) == tensor.numel():
        return spec  # dense in some order
    contiguous = tuple(torch.empty(shape, device="meta").stride())
    return ArgSpec(name=name, role=role, dtype=spec.dtype, shape=shape, strides=contiguous, source=source)


def c_name(name: str) -> str:
    """Return a C identifier that is like a name."""
    identifier = re.sub(r"\W", "_", name)
    return identifier if not identifier[:1].isdigit() else f"_{identifier}"


def unique_name(name: str, taken: set[str]) -> str:
    """Return a name that no other equals, in upper case either: problem.h has constants by it."""
    while name.upper() in taken:
        name += "_"
    taken.add(name.upper())
    return name


def _strangeness(tensor: torch.Tensor) -> str:
    """Return what keeps a tensor from being plain memory of a type that C has; "" for nothing."""
    if tensor.is_nested or tensor.layout is not torch.strided:
        return "a nested tensor" if tensor.is_nested else str(tensor.layout).removeprefix("torch.").removeprefix("_")
    if tensor.is_meta:
        return "on the meta device, without values"
    return "" if dtype_name(tensor) in _DTYPES else dtype_name(tensor)


def _subclass(tensor: torch.Tensor) -> str:
    """Return which class of the user's a tensor has; "" for torch's own, an outline's included."""
    is_own = type(tensor) in (torch.Tensor, torch.nn.Parameter, FakeTensor)
    return "" if is_own else f"a {type(tensor).__name__}, a subclass of torch.Tensor"


def dtype_name(tensor: torch.Tensor) -> str:
    """Return "float32" for torch.float32."""
    return str(tensor.dtype).removeprefix("torch.")
