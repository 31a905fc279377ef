"""The reference as a side of a measurement: eager or compiled, looping over the sets."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from ridgeline.tools.errors import EngineError
from ridgeline.tools.judge.worker.call_form import Tensors, flat_outputs
from ridgeline.tools.judge.worker.device import use_tf32
from ridgeline.tools.judge.worker.memory import ArenaMemory
from ridgeline.tools.judge.worker.reference import Reference
from ridgeline.tools.judge.worker.user_code import one_line
from ridgeline.tools.records.vocabulary import DeviceKind

_COMPILED = {"compile": "default", "compile_max_autotune": "max-autotune"}
_WITHOUT_GRAPHS = {"default": "default", "max-autotune": "max-autotune-no-cudagraphs"}
"""Modes on a GPU. A CUDA graph first copies its inputs to fixed places, a cost that rotating sets would add to it."""
_BACKENDS = {
    "sdpa_flash": SDPBackend.FLASH_ATTENTION,
    "sdpa_efficient": SDPBackend.EFFICIENT_ATTENTION,
    "sdpa_cudnn": SDPBackend.CUDNN_ATTENTION,
    "sdpa_math": SDPBackend.MATH,
}
_TF32 = "_tf32"


class ReferenceModes:
    """Callables of the reference by mode, made on first use, and the timed loop over them.

    A mode is "eager", "compile", "compile_max_autotune", each also with "_tf32" appended on a GPU, or eager with one
    backend of scaled_dot_product_attention: "sdpa_flash", "sdpa_efficient", "sdpa_cudnn", "sdpa_math".
    """

    def __init__(self, reference: Reference, memory: ArenaMemory) -> None:
        self._reference = reference
        self._memory = memory
        self._calls: dict[str, Callable[..., Any]] = {"eager": reference.model}
        self._arguments = [reference.arguments(inputs) for inputs in memory.inputs]
        self._results: list[Any] = [None] * memory.n_sets

    def prepare(self, mode: str, inputs: Tensors) -> Tensors:
        """Return the outputs of one call in this mode, compiled first where the mode needs it.

        Raises:
            EngineError: PyTorch has no such mode here, or refuses the reference.
        """
        if self._memory.device.kind is DeviceKind.CPU and (mode.endswith(_TF32) or mode in _BACKENDS):
            raise EngineError(f"{mode}: a CPU has no such thing")
        call = self._call(mode)
        try:
            with self._as(mode):
                return flat_outputs(call(*self._reference.arguments(inputs)))
        except Exception as error:  # inductor raises whatever its compiler stack does: it is a baseline that failed
            raise EngineError(f"{mode}: {one_line(error)}") from error

    def loop(self, mode: str, first_set: int, calls: int) -> float:
        """Call the reference over rotating sets and return the seconds that took, by this process's or the device's clock.

        Each set's result is held until the set comes again, so that outputs rotate through memory as a kernel's do.
        """
        call, arguments, results, n = self._call(mode), self._arguments, self._results, self._memory.n_sets
        watch = self._memory.device.stopwatch()
        with self._as(mode):
            watch.start()
            for i in range(first_set, first_set + calls):
                results[i % n] = call(*arguments[i % n])
            return watch.seconds()

    def forget_results(self) -> None:
        """Free the results that the last loop left."""
        self._results = [None] * self._memory.n_sets

    @contextlib.contextmanager
    def _as(self, mode: str) -> Iterator[None]:
        """Set torch's global state for the mode, and put it back: the judge's own arithmetic is exact."""
        backend = _BACKENDS.get(mode)
        use_tf32(on=mode.endswith(_TF32))
        try:
            with torch.no_grad(), sdpa_kernel(backend) if backend is not None else contextlib.nullcontext():
                yield
        finally:
            use_tf32(on=False)

    def _call(self, mode: str) -> Callable[..., Any]:
        base = mode.removesuffix(_TF32)
        if base == "eager" or mode in _BACKENDS:
            return self._calls["eager"]
        if mode not in self._calls:
            if base not in _COMPILED:
                raise EngineError(f"unknown mode {mode!r} of the reference")
            kind = _COMPILED[base]
            kind = _WITHOUT_GRAPHS[kind] if self._memory.device.kind is DeviceKind.CUDA else kind
            self._calls[mode] = torch.compile(self._reference.model, mode=kind, dynamic=False)
        return self._calls[mode]
