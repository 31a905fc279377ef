"""The notes of where outputs lie, from which the parent reads them once this process is stopped: see left_outputs.py."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import torch

from ridgeline.tools.runner.wire import NOTE_BYTES


class Notes:
    """One address for each set and output, at a place that stays."""

    def __init__(self, n_sets: int, n_outputs: int) -> None:
        self._n_outputs = n_outputs
        self._words = array("Q", bytes(max(1, n_sets * n_outputs) * NOTE_BYTES))
        self.address, _ = self._words.buffer_info()

    def take(self, set_index: int, outputs: Sequence[torch.Tensor]) -> None:
        """Note where the outputs of a set's last call lie."""
        words, place = self._words, set_index * self._n_outputs
        for output in outputs:
            words[place] = output.data_ptr()
            place += 1
