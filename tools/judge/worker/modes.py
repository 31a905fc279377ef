"""The reference as a side of a measurement: eager or compiled, looping over the sets."""

from __future__ import annotations

import collections
import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from ridgeline.tools.errors import EngineError
from ridgeline.tools.judge.worker.call_form import Tensors, flat_outputs
from ridgeline.tools.judge.worker.device import use_tf32
from ridgeline.tools.judge.worker.memory import ArenaMemory
from ridgeline.tools.judge.worker.reference import Reference
from ridgeline.tools.judge.worker.user_code import named_line
from ridgeline.tools.modelnew.held_results import HeldResults
from ridgeline.tools.records.reference_mode import ReferenceMode
from ridgeline.tools.records.tickets import draw_tickets, encode_tickets


class ReferenceModes:
    """Callables of the reference by mode, made on first use, and the timed loop over them."""

    def __init__(self, reference: Reference, memory: ArenaMemory) -> None:
        self._reference = reference
        self._memory = memory
        self._compiled: dict[ReferenceMode, Callable[..., Any]] = {}
        self._arguments = [reference.arguments(inputs) for inputs in memory.inputs]
        self._held: HeldResults | None = None  # by loops
        self._drawn, self._tickets = os.pipe()

    def prepare(self, mode: ReferenceMode, inputs: Tensors) -> Tensors:
        """Return the outputs of one call in this mode, compiled first where the mode needs it.

        Raises:
            EngineError: PyTorch has no such mode here, or refuses the reference.
        """
        if mode not in self._memory.device.modes:
            raise EngineError(f"{mode}: PyTorch has no such mode on {self._memory.device.kind}")
        try:
            call = self._call(mode)
            with _set_for(mode):
                return flat_outputs(call(*self._reference.arguments(inputs)))
        except Exception as error:  # inductor raises whatever its compiler stack does: it is a baseline that failed
            raise EngineError(f"{mode}: {named_line(error)}") from error

    def loop(self, mode: ReferenceMode, sets: Sequence[int], *, is_empty: bool = False) -> float:
        """Call the reference on each set and return the seconds that took, by this process's or the device's clock.

        Results are held and sets are drawn as tickets as in a runner, so that they cost both sides alike. `is_empty` leaves
        the calls out: what is left is what they cost.
        """
        call, arguments = _do_nothing if is_empty else self._call(mode), self._arguments
        if self._held is None:
            makes_room = not self._memory.device.frees_for_runner
            self._held = HeldResults(self._memory.outputs[0], self._memory.n_sets, makes_room=makes_room)
        os.write(self._tickets, encode_tickets(sets))
        tickets = draw_tickets(self._drawn)
        watch = self._memory.device.stopwatch()
        try:
            with _set_for(mode):
                watch.start()
                results = self._held.begin()
                for index in tickets:
                    results[index] = call(*arguments[index])
                return watch.seconds()
        finally:
            collections.deque(tickets, maxlen=0)  # a call that raised leaves the rest, which the next loop would take

    def forget_results(self) -> None:
        """Free the results that the last loop left."""
        if self._held is not None:
            self._held.forget()

    def _call(self, mode: ReferenceMode) -> Callable[..., Any]:
        if not mode.compile_mode:
            return self._reference.model
        if mode not in self._compiled:
            _keep_headers_in_cache()
            option = self._memory.device.compile_option(mode)
            self._compiled[mode] = torch.compile(self._reference.model, mode=option, dynamic=False)
        return self._compiled[mode]


def _keep_headers_in_cache() -> None:
    """Have inductor keep the headers that it precompiles, about 150 MB, beside what it compiles: it takes $TMPDIR by itself.

    torch 2.13 has no setting for their folder, and without them each C++ kernel parses torch's headers anew.
    """
    from torch._inductor import codecache  # the first torch.compile would import it
    from torch._inductor.runtime.cache_dir_utils import cache_dir

    folder = os.path.join(cache_dir(), "precompiled_headers")
    codecache._HEADER_DIR = folder
    codecache._HEADER_LOCK_DIR = os.path.join(folder, "locks")


def _do_nothing(*_: object) -> None:
    """Return at once."""


@contextlib.contextmanager
def _set_for(mode: ReferenceMode) -> Iterator[None]:
    """Set torch's global state for a mode, and put it back: the judge's own arithmetic is exact."""
    use_tf32(on=mode.uses_tf32)
    try:
        with torch.no_grad(), _attention_of(mode):
            yield
    finally:
        use_tf32(on=False)


def _attention_of(mode: ReferenceMode) -> contextlib.AbstractContextManager[Any]:
    """Return the context in which attention runs on the mode's backend alone, where the mode names one."""
    if not mode.attention_backend:
        return contextlib.nullcontext()
    return sdpa_kernel(getattr(SDPBackend, mode.attention_backend))
