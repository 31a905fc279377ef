"""A candidate that tries to stop the judge, the engine or the search itself, and how it may end."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ridgeline.tools.records.vocabulary import ReasonCode

CHEATS = Path(__file__).parents[1] / "cheats"
"""The folder whose reference every stopper pretends to compute, and whose honest kernels stand beside them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopper:
    """One candidate; `codes` are the ends of which any will do, `NONE` where its honest work has to count."""

    name: str
    source: str
    codes: tuple[ReasonCode, ...]


def stopper(name: str, source: str, *codes: ReasonCode) -> Stopper:
    """Return a stopper; without a code its honest work has to count."""
    return Stopper(name=name, source=source, codes=codes or (ReasonCode.NONE,))
