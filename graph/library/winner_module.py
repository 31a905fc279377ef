"""A built kernel of interface `c` or `torch` as a torch module."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import torch

from ridgeline.graph.shipping.shipped import _call_c, _call_torch
from ridgeline.tools.build.header import ALIGNMENT_BYTES, passed_arguments
from ridgeline.tools.errors import EngineError, InputError
from ridgeline.tools.records.problem import ArgSpec, DescribedTarget
from ridgeline.tools.records.vocabulary import ArgKind, DeviceKind, Interface, Label, Role

Module: TypeAlias = torch.nn.Module
"""For annotations where torch is not imported."""


_NUMBERS: dict[str, tuple[tuple[type, ...], str]] = {
    "int64": ((int,), "a whole number"),
    "bool": ((bool,), "True or False"),
    "float64": ((int, float), "a number"),
}
"""The types that a scalar of each type takes, and their words; a bool is none but itself."""


_LIBRARIES: dict[Interface, type[_call_c.Library | _call_torch.Library]] = {
    Interface.C: _call_c.Library,
    Interface.TORCH: _call_torch.Library,
}
"""What loads and calls a library of each interface."""
LARGEST_INT = 2**53
"""Up to it a double, which the call passes, holds every whole number."""


class WinnerModule(torch.nn.Module):
    """Does what the reference does in eval mode, for inference, on the shapes of the search. Its calls take turns."""

    def __init__(self, library: Path, target: DescribedTarget, model: torch.nn.Module | None = None) -> None:
        super().__init__()
        self.problem = target.name
        self.model = model
        is_cuda = target.device.kind is DeviceKind.CUDA
        self.device = torch.device("cuda", target.device.index) if is_cuda else torch.device("cpu")
        args = target.description.signature.args
        self._inputs = tuple(a for a in args if a.role is Role.INPUT)
        self._weights = tuple(a for a in args if a.role in (Role.PARAMETER, Role.BUFFER))
        self._fixed = {s.name for s in target.description.skipped_trials if s.label is Label.NOT_VARIED}
        passed = passed_arguments(target.description.signature)
        self._tensors = tuple(a for a in passed if a.kind is ArgKind.TENSOR and a.role is not Role.OUTPUT)
        self._numbers = tuple(a for a in passed if a.kind is ArgKind.SCALAR)
        self._check_weights()
        self.training = False  # the model keeps its own mode; `train()` sets both
        self._library = _LIBRARIES[target.interface](library, [a.to_json() for a in passed], self.device)

    @torch.no_grad()
    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the kernel.

        Raises:
            InputError: an argument is missing, or is not what the kernel was made for; training mode, autocast.
            EngineError: the kernel left an error of CUDA behind.
        """
        self._check_mode()
        values = self._bound(args, kwargs) | self._held_weights()
        for arg in self._tensors:
            self._check(arg, values[arg.name])
        tensors = [values[arg.name] for arg in self._tensors]
        try:
            made = self._library.call(tensors, [values[arg.name] for arg in self._numbers])
        except _call_c.KernelFailed as error:
            raise EngineError(f"{self.problem}: {error}") from None
        return made[0] if len(made) == 1 else tuple(made)

    def extra_repr(self) -> str:
        """Return what `print` shows of the module."""
        return f"{self.problem}, {len(self._inputs)} inputs, {self.device}"

    # -------------------------------------------------------------------------------------------------- what is passed

    def _bound(self, args: Sequence[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Return each input by the name that the kernel has for it."""
        sources = [arg.source or arg.name for arg in self._inputs]
        given = dict(zip(sources, args, strict=False)) | kwargs
        lacking = [name for name in sources if name not in given]
        other = sorted(set(kwargs) - set(sources)) or sorted(set(kwargs) & set(sources[: len(args)]))
        if lacking or other or len(args) > len(sources):
            raise InputError(f"{self.problem}: takes {', '.join(sources)}, once each, by position or by name")
        values: dict[str, Any] = {}
        for arg, name in zip(self._inputs, sources, strict=True):
            value = given[name]
            if arg.kind is ArgKind.NONE and value is not None:
                raise InputError(f"{self.problem}: {name} must be None, as it was in the search")
            if arg.kind is ArgKind.SCALAR:
                self._check_number(arg, name, value)
            if arg.kind is ArgKind.SCALAR and f"not_varied {arg.name}" in self._fixed and value != arg.value:
                raise InputError(
                    f"{self.problem}: {name} must be {arg.value}: the kernel was tried with no other value"
                )
            values[arg.name] = value
        return values

    def _held_weights(self) -> dict[str, torch.Tensor]:
        held = self._tensors_of_model()
        return {arg.name: held[arg.source] for arg in self._weights}

    def _tensors_of_model(self) -> dict[str, torch.Tensor]:
        if self.model is None:
            return {}
        return dict(self.model.named_parameters()) | dict(self.model.named_buffers())

    def _check_weights(self) -> None:
        held = self._tensors_of_model()
        lacking = [arg.source for arg in self._weights if arg.source not in held]
        if lacking:
            what = "pass model=, an instance of the reference's Model" if self.model is None else "the model has none"
            raise InputError(f"{self.problem}: its kernel takes {', '.join(lacking)}: {what}")

    def _check_mode(self) -> None:
        if self.training:
            raise InputError(f"{self.problem}: the kernel does what the reference does in eval mode; call eval() first")
        if torch.is_autocast_enabled(self.device.type):
            raise InputError(f"{self.problem}: the kernel does what the reference does without autocast; leave it off")

    def _check_number(self, arg: ArgSpec, name: str, value: Any) -> None:
        """Refuse a number of another type, and one that the call, which passes doubles, would change."""
        types, words = _NUMBERS[arg.dtype]
        if not isinstance(value, types) or (isinstance(value, bool) and arg.dtype != "bool"):
            got = f"{value!r}" if isinstance(value, bool | float) else type(value).__name__
            raise InputError(f"{self.problem}: {name} must be {words}, got {got}")
        if isinstance(value, int) and abs(value) > LARGEST_INT and not _is_kept(value, arg.dtype):
            raise InputError(f"{self.problem}: {name} must be a number that a double holds, got {value}")

    def _check(self, arg: ArgSpec, value: Any) -> None:
        """Refuse a tensor that the kernel, which checks nothing, was not made for."""
        name = arg.source or arg.name
        wanted = f"{arg.dtype} {arg.shape} on {self.device}"
        if not isinstance(value, torch.Tensor):
            raise InputError(f"{self.problem}: {name} must be a tensor, {wanted}, got {type(value).__name__}")
        is_same = value.dtype is getattr(torch, arg.dtype) and tuple(value.shape) == arg.shape
        if not is_same or value.device != self.device or value.layout is not torch.strided:
            got = f"{str(value.dtype).removeprefix('torch.')} {tuple(value.shape)} on {value.device}"
            raise InputError(f"{self.problem}: {name} must be {wanted}, got {got}")
        steps = [(n, given, want) for n, given, want in zip(arg.shape, value.stride(), arg.strides, strict=True)]
        if value.numel() and any(given != want for n, given, want in steps if n > 1):
            raise InputError(f"{self.problem}: {name} must have strides {arg.strides}, got {value.stride()}")
        if value.data_ptr() % ALIGNMENT_BYTES:
            raise InputError(f"{self.problem}: {name} must start at a multiple of {ALIGNMENT_BYTES} bytes; clone() it")


def _is_kept(value: int, dtype: str) -> bool:
    """Say whether a whole number is the same as a double, and has room in its own type."""
    if dtype == "int64" and not -(2**63) <= value < 2**63:
        return False
    try:
        return int(float(value)) == value
    except OverflowError:
        return False
