"""Checks that only a candidate's own process can make: the form of outputs, shared storage, global state.

These checks tell an honest author what is wrong. They stop no cheat, since the candidate shares their address space: the
judge compares every output, and the parent keeps the time.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from typing import Any

import torch

from ridgeline.tools.modelnew.tensor_bits import equal_bits
from ridgeline.tools.records.dtypes import spanned_elements
from ridgeline.tools.records.module_contract import DictResult, ResultForm, SequenceResult, TensorResult
from ridgeline.tools.runner.wire import RunnerFailureCode
from ridgeline.tools.runner.worker.device import MappedRegion, RunFailed

Outputs = tuple[torch.Tensor, ...]

_REPLACED_BY_TORCH = frozenset({(torch, "manual_seed")})  # by importing torch._dynamo, as torch.compile does


class GlobalState:
    """State that a candidate may not change: torch's settings, and the functions of torch and of the time module."""

    def __init__(self) -> None:
        self._settings = _settings()
        self._functions = {module: dict(vars(module)) for module in (torch, torch.Tensor, torch.nn.functional, time)}

    def check(self, during: str) -> None:
        """Raise RunFailed when something differs from the start."""
        for name, value in _settings().items():
            if self._settings[name] != value:
                raise RunFailed(
                    RunnerFailureCode.STATE_CHANGED,
                    f"{during} changed torch's {name} from {self._settings[name]} to {value}",
                )
        for module, functions in self._functions.items():
            now = vars(module)
            for name, function in functions.items():
                if (module, name) in _REPLACED_BY_TORCH:
                    continue
                if callable(function) and now.get(name) is not function:
                    raise RunFailed(RunnerFailureCode.STATE_CHANGED, f"{during} replaced {module.__name__}.{name}")


def check_form(output: torch.Tensor, like: torch.Tensor) -> None:
    """Raise RunFailed when an output has not the reference's shape, type and device, or is not contiguous."""
    if tuple(output.shape) != tuple(like.shape):
        raise RunFailed(
            RunnerFailureCode.SHAPE_MISMATCH, f"the output has shape {tuple(output.shape)}, not {tuple(like.shape)}"
        )
    if output.dtype != like.dtype:
        raise RunFailed(RunnerFailureCode.DTYPE_MISMATCH, f"the output is {output.dtype}, not {like.dtype}")
    if output.is_conj() or output.is_neg():
        lazily, plain = ("conjugated", "resolve_conj()") if output.is_conj() else ("negated", "resolve_neg()")
        raise RunFailed(
            RunnerFailureCode.NOT_A_TENSOR,
            f"the output is a lazily {lazily} view, no plain tensor: return output.{plain}",
        )
    if output.layout != torch.strided or output.device != like.device:
        raise RunFailed(
            RunnerFailureCode.NOT_A_TENSOR, f"the output is no plain tensor: {output.layout} on {output.device}"
        )
    sizes = [i for i, size in enumerate(like.shape) if size > 1]
    if like.numel() and any(output.stride(i) != like.stride(i) for i in sizes):
        raise RunFailed(
            RunnerFailureCode.SHAPE_MISMATCH,
            f"the output has strides {output.stride()}: outputs are contiguous, {like.stride()} here, also where the "
            "reference returns a view; return output.contiguous()",
        )


def check_storage(output: torch.Tensor, regions: Sequence[MappedRegion]) -> None:
    """Raise RunFailed when an output lies in the judge's memory."""
    start = output.untyped_storage().data_ptr()
    end = start + output.untyped_storage().nbytes()
    for region in regions:
        if start < region.address + region.size_bytes and region.address < end:
            raise RunFailed(RunnerFailureCode.OUTPUT_ALIASES_INPUT, "the output is a view of an input or a parameter")


def check_apart(outputs: Outputs, shared: Sequence[tuple[int, int]]) -> None:
    """Raise RunFailed when two outputs of a call have memory in common which are not among the pairs that may share it."""
    spans = [(output.data_ptr(), output.data_ptr() + _spanned_bytes(output)) for output in outputs]
    for (i, (first, end)), (j, (other_first, other_end)) in itertools.combinations(enumerate(spans), 2):
        if max(first, other_first) < min(end, other_end) and (i, j) not in shared:
            raise RunFailed(
                RunnerFailureCode.OUTPUT_ALIASES_INPUT,
                f"outputs {i} and {j} share memory, which the reference's do not: return a copy of one",
            )


def _spanned_bytes(tensor: torch.Tensor) -> int:
    return spanned_elements(tensor.shape, tensor.stride()) * tensor.element_size()


def expect_defined(result: Any) -> None:
    """Raise RunFailed when a tensor that an extension returned holds nothing: it arrives as None."""
    several = type(result) in (tuple, list)
    for i, value in enumerate(result if several else (result,)):
        if value is None:
            where = f"forward[{i}]" if several else "forward"
            raise RunFailed(
                RunnerFailureCode.NOT_A_TENSOR, f"{where} returned an undefined tensor, which holds nothing"
            )


def flat_like(result: Any, form: ResultForm, where: str = "forward") -> list[torch.Tensor]:
    """Return a result's tensors in the reference's order.

    Of a container that derives from Python's own (a named tuple, what `torch.max` returns) its storage is read and nothing
    of its own is asked: one that works when it is opened would work behind the clock.

    Raises:
        RunFailed: its structure is not the reference's.
    """
    match form:
        case TensorResult():
            if type(result) is not torch.Tensor:
                raise RunFailed(RunnerFailureCode.NOT_A_TENSOR, f"{where} returned {_kind(result)}, not torch.Tensor")
            return [result]
        case DictResult(entries=entries):
            return _flat_dict(result, entries, where)
        case SequenceResult(parts=parts):
            return _flat_sequence(result, parts, where)
    return []


def _flat_dict(result: Any, entries: Sequence[tuple[str, ResultForm]], where: str) -> list[torch.Tensor]:
    keys = [key for key, _ in entries]
    named = {str(key): value for key, value in dict.items(result)} if issubclass(type(result), dict) else {}
    if set(named) != set(keys):
        raise RunFailed(
            RunnerFailureCode.NOT_A_TENSOR, f"{where} returned {_kind(result)}, not a dict of {', '.join(keys)}"
        )
    return [t for key, part in entries for t in flat_like(named[key], part, f"{where}[{key!r}]")]


def _flat_sequence(result: Any, parts: Sequence[ResultForm], where: str) -> list[torch.Tensor]:
    base = next((kind for kind in (tuple, list) if issubclass(type(result), kind)), None)
    values = list(base.__iter__(result)) if base else []
    if base is None or len(values) != len(parts):
        raise RunFailed(
            RunnerFailureCode.NOT_A_TENSOR, f"{where} returned {_kind(result)}, not a tuple or list of {len(parts)}"
        )
    pairs = enumerate(zip(values, parts, strict=True))
    return [t for i, (value, part) in pairs for t in flat_like(value, part, f"{where}[{i}]")]


def equal(first: Outputs, second: Outputs) -> bool:
    """Compare the bits of every output."""
    return all(equal_bits(a, b) for a, b in zip(first, second, strict=True))


def _kind(result: Any) -> str:
    name = type(result).__name__
    return f"a {name} of {len(result)}" if type(result) in (tuple, list, dict) else name


def _settings() -> dict[str, object]:
    return {
        "default dtype": torch.get_default_dtype(),
        "deterministic mode": torch.are_deterministic_algorithms_enabled(),
        "number of threads": torch.get_num_threads(),
        "matmul precision": _matmul_precision(),
        "cuDNN TF32": _cudnn_tf32(),
        "oneDNN": torch.backends.mkldnn.enabled,
        "autocast on the CPU": torch.is_autocast_enabled("cpu"),
        "autocast on CUDA": torch.is_autocast_enabled("cuda"),
        "inference mode": torch.is_inference_mode_enabled(),
    }


def _matmul_precision() -> str:
    try:
        return torch.get_float32_matmul_precision()
    except RuntimeError as error:  # torch refuses to read by one API what was set by the other
        return f"unreadable ({error})"[:80]


def _cudnn_tf32() -> object:
    try:
        return torch.backends.cudnn.allow_tf32
    except RuntimeError as error:
        return f"unreadable ({error})"[:80]
