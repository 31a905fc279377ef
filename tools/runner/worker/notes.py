"""The notes of where outputs lie, from which the parent reads them once this process is stopped: see left_outputs.py."""

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

    def take(
        self, sets: Sequence[int], results: Sequence[Any], outputs_of: Callable[[Any], Sequence[torch.Tensor]]
    ) -> None:
        """Note where the outputs of these sets' results lie; the parent's clock runs meanwhile."""
        words, count = self._words, self._n_outputs
        for index in sets:
            result = results[index]
            if count == 1 and type(result) is torch.Tensor:  # nearly every candidate's: a third of the time
                words[index] = result.data_ptr()
                continue
            for place, output in enumerate(outputs_of(result), index * count):
                words[place] = output.data_ptr()
