"""Outputs of the reference that more than one question about a case asks for: of other last bits, of plain sums, of neighbours.

A limit of the whole output asks for them, then one of its well-conditioned part, of each output and in each class.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable

from ridgeline.tools.judge.worker.call_form import Tensors


class MadeOutputs:
    """Outputs of one case at a time, by what they are of; those of the next case take their place."""

    def __init__(self, room_bytes: int = 0) -> None:
        """Keep outputs of so many bytes at most; what finds no room is made whenever it is asked for."""
        self.room_bytes = room_bytes
        self._taken_bytes = 0
        self._outputs: dict[Hashable, Tensors | None] = {}
        self._case: weakref.ref[object] | None = None

    def once(self, case: object, what: Hashable, make: Callable[[], Tensors | None]) -> Tensors | None:
        """Return what `make` gives, made once for a case where there is room; None where nothing can be told."""
        if self._case is None or self._case() is not case:
            self.clear()
            self._case = weakref.ref(case)
        if what in self._outputs:
            return self._outputs[what]
        made = make()
        outputs = None if made is None else tuple(t.detach() for t in made)  # a parameter gets other numbers
        size_bytes = sum(t.untyped_storage().nbytes() for t in outputs or ())
        if self._taken_bytes + size_bytes <= self.room_bytes:
            self._taken_bytes += size_bytes
            self._outputs[what] = outputs
        return outputs

    def clear(self) -> None:
        """Free all outputs."""
        self._outputs.clear()
        self._taken_bytes, self._case = 0, None
