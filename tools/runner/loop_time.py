"""The duration of one loop of a measurement's side, by two clocks."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopTime:
    """Duration of one loop: by the parent's clock around the request, and by the side's own clock."""

    parent_s: float
    own_s: float
