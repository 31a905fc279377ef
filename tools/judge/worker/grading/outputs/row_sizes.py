"""Rows of an output that lie far below the rest."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ridgeline.tools.records.precision import small_share
from ridgeline.tools.records.vocabulary import PrecisionClass

_LARGEST_SHARE = small_share(PrecisionClass.BF16)


@dataclass(frozen=True, slots=True)
class SmallRows:
    """Some rows of an output: their places among all rows, and their norms."""

    places: torch.Tensor
    norms: torch.Tensor

    def where(self, chosen: torch.Tensor) -> SmallRows:
        """Return those that a mask chooses."""
        return SmallRows(self.places[chosen], self.norms[chosen])

    def __len__(self) -> int:
        return len(self.places)


def small_rows(norms: torch.Tensor, usual: float) -> SmallRows | None:
    """Return the rows far below the usual norm that are not all zeros; None for none, as nearly always."""
    is_small = (norms < _LARGEST_SHARE * usual) & (norms > 0)
    places = is_small.nonzero().flatten()
    return SmallRows(places, norms[places]) if len(places) else None
