"""The results of a timed loop, held so that outputs rotate through memory as a native kernel's do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

_TEMPORARIES = 8
"""Results' worth of memory for what a call makes and frees."""


class HeldResults:
    """The last result on each set.

    On a CPU those of a block are freed together when the next one begins. glibc reuses the memory of a single freed
    result for nothing as large, so that results freed one by one leave holes, and a process grows, and faults its pages
    in, for hundreds of blocks. The next block's results lie further on by as many as the last one had.

    On a GPU, where torch's allocator reuses memory of the same size, each result is held until its set comes again.
    """

    def __init__(self, outputs: Sequence[torch.Tensor], n_sets: int, *, makes_room: bool = True) -> None:
        """Make room, unless told otherwise: touch as much memory as all of this takes. The allocator keeps it.

        Args:
            outputs: one call's, whose shapes and types all results have.
            n_sets: the number of sets.
            makes_room: without it, results take new memory as they come.
        """
        self._outputs = outputs
        self._by_set: list[Any] = [None] * n_sets
        self._spacer: list[torch.Tensor] = []
        self._first = 0  # how many results' room lies before the block's
        self._frees_together = all(output.device.type == "cpu" for output in outputs)
        pieces = n_sets + _TEMPORARIES if makes_room else 0
        room = [torch.zeros_like(output) for output in outputs for _ in range(pieces)]
        del room

    def __getitem__(self, set_index: int) -> Any:
        """Return the last result on a set; None where there is none."""
        return self._by_set[set_index]

    def begin(self) -> list[Any]:
        """Return the results by set, for a block to store its own."""
        if self._frees_together:
            held = sum(result is not None for result in self._by_set)
            self.forget()
            # two thirds of the sets are a block's at most: what lies before it takes the rest
            self._first = (self._first + held) % (len(self._by_set) // 3 + 1)
            self._spacer = [torch.empty(self._first * o.nbytes, dtype=torch.uint8) for o in self._outputs]
        return self._by_set

    def forget(self) -> None:
        """Free everything."""
        self._spacer = []
        self._by_set[:] = [None] * len(self._by_set)
