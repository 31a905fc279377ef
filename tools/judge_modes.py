"""The reference as a side of a measurement: eager or compiled, looping over the arena's sets (runs in the judge)."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch

from ridgeline.tools.errors import EngineError
from ridgeline.tools.judge_memory import ArenaMemory
from ridgeline.tools.judge_reference import Reference, Tensors, flat_outputs, one_line

_COMPILE_MODES = {"compile": "default", "compile_max_autotune": "max-autotune"}


class ReferenceModes:
    """Callables of the reference by mode, made on first use, and the timed loop over them."""

    def __init__(self, reference: Reference, memory: ArenaMemory) -> None:
        self._reference = reference
        self._memory = memory
        self._calls: dict[str, Callable[..., Any]] = {"eager": reference.model}
        self._arguments = [reference.arguments(inputs) for inputs in memory.inputs]
        self._results: list[Any] = [None] * memory.n_sets

    def prepare(self, mode: str, inputs: Tensors) -> Tensors:
        """Return the outputs of one call in this mode, compiling first where it must.

        Raises:
            EngineError: PyTorch has no such mode here, or refuses the reference.
        """
        if mode == "eager_tf32":
            raise EngineError("a CPU has no tf32")
        try:
            with torch.no_grad():
                return flat_outputs(self._call(mode)(*self._reference.arguments(inputs)))
        except Exception as error:  # inductor raises whatever its compiler stack does: it is a baseline that failed
            raise EngineError(f"{mode}: {one_line(error)}") from error

    def loop(self, mode: str, first_set: int, calls: int) -> float:
        """Call the reference over rotating sets and return the seconds it took by this process's clock.

        Each set's result is held until the set comes again, so that outputs rotate through memory as a kernel's do.
        """
        call, arguments, results, n = self._call(mode), self._arguments, self._results, self._memory.n_sets
        with torch.no_grad():
            start = time.perf_counter()
            for i in range(first_set, first_set + calls):
                results[i % n] = call(*arguments[i % n])
            return time.perf_counter() - start

    def _call(self, mode: str) -> Callable[..., Any]:
        if mode not in self._calls:
            if mode not in _COMPILE_MODES:
                raise EngineError(f"unknown mode {mode!r} of the reference")
            self._calls[mode] = torch.compile(self._reference.model, mode=_COMPILE_MODES[mode], dynamic=False)
        return self._calls[mode]
