"""The notes of where outputs lie, by which the parent reads them while a block runs and after it: see left_outputs.py."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from typing import Any

import torch

from ridgeline.tools.runner.wire import NOTE_BYTES


class Notes:
    """One address for each set and output, at a place that stays."""

    def __init__(self, n_sets: int, n_outputs: int) -> None:
        self._n_outputs = n_outputs
        self._words = array("Q", bytes(max(1, n_sets * n_outputs) * NOTE_BYTES))
        self.address, _ = self._words.buffer_info()

    def take(self, index: int, result: Any, outputs_of: Callable[[Any], Sequence[torch.Tensor]]) -> None:
        """Note where the outputs of a result on a set lie; the parent's clock runs meanwhile."""
        if self._n_outputs == 1 and type(result) is torch.Tensor:  # nearly every candidate's: a third of the time
            self._words[index] = result.data_ptr()
            return
        for place, output in enumerate(outputs_of(result), index * self._n_outputs):
            self._words[place] = output.data_ptr()
