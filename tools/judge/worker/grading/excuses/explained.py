"""Explanations of an output by runs of the reference with other last bits, which all choose among equals in one way."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from ridgeline.tools.judge.worker.grading.excuses.choices import Way
from ridgeline.tools.judge.worker.grading.outputs.compare import beside
from ridgeline.tools.records.precision import LAST_BITS_REACH

_INDICES = (torch.int32, torch.int64)


class Explained:
    """An output, as it is expected where runs in one way have what it has."""

    def __init__(self, way: Way, output: torch.Tensor, want: torch.Tensor, base: torch.Tensor | None) -> None:
        """Explain what `base` explains: the way without other last bits, None for what is expected."""
        self.way = way
        self._output, self._want = output, want
        self._base = want if base is None or base.shape != want.shape else base
        self._allowed: torch.Tensor | None = None
        self._repeats = _repeating(want)  # rows that have an index twice
        self.left = output
        if want.is_floating_point():
            self.left = self._nearer(0.0)
        elif self._base is not want:
            self._take(self._base)

    def add(self, draw: torch.Tensor | None) -> bool:
        """Explain what a draw explains too, and return whether there was one."""
        if draw is None or draw.shape != self._want.shape:
            return False
        if not self._want.is_floating_point():
            self._take(draw)
            return True
        apart = (draw.double() - self._base).abs_().nan_to_num_(0.0, 0.0, 0.0)
        self._allowed = apart if self._allowed is None else torch.maximum(self._allowed, apart, out=self._allowed)
        self.left = self._nearer(LAST_BITS_REACH * self._allowed)
        return True

    def _take(self, draw: torch.Tensor) -> None:
        self.left = torch.where(self._output == draw, self._want, self.left)
        repeats = _repeating(draw)
        if repeats is not None:
            self._repeats = repeats if self._repeats is None else repeats | self._repeats

    def _nearer(self, by: torch.Tensor | float) -> torch.Tensor:
        """Return the output in float64, nearer to the expected one by as much as it is to the base, and by at most `by`."""
        base, output = self._base.double(), self._output.double()
        is_same = (output == base) | (output.isnan() & base.isnan())
        return torch.where(is_same, self._want, beside(self._want, output - base, by))

    def rows(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return what is left of each row, and how far it is from the expected one.

        Where no run has an index twice, a row that has is not explained.
        """
        left, want = _as_rows(self.left), _as_rows(self._want)
        if want.is_floating_point():
            return left, (left - want).abs().nan_to_num(torch.inf, torch.inf).where(left != want, 0.0).amax(-1)
        repeats = _repeating(self._output)
        if repeats is not None and self._repeats is not None:
            left = torch.where((repeats & ~self._repeats)[:, None], _as_rows(self._output), left)
        return left, (left != want).sum(-1).double()


def merged(found: Sequence[Explained], output: torch.Tensor, want: torch.Tensor) -> torch.Tensor:
    """Return an output with each row as that way leaves it which explains it best."""
    if not output.numel():
        return output
    kept = [each.rows() for each in found]
    if len(kept) == 1:
        return kept[0][0].reshape(want.shape)
    rows, apart = torch.stack([rows for rows, _ in kept]), torch.stack([apart for _, apart in kept])
    best = apart.argmin(0)[None, :, None].expand(1, -1, rows.shape[-1])
    return rows.gather(0, best)[0].reshape(want.shape)


def _as_rows(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.reshape(-1, tensor.shape[-1] if tensor.dim() else 1)


def _repeating(indices: torch.Tensor) -> torch.Tensor | None:
    """Return which rows of indices have one twice; None for what is no index."""
    if indices.dtype not in _INDICES:
        return None
    rows = _as_rows(indices).sort(-1).values
    return (rows[:, 1:] == rows[:, :-1]).any(-1)
