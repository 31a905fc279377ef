"""A contraction's kernel to be written: the reference, the device and the chosen structures."""

from __future__ import annotations

from dataclasses import dataclass

from ridgeline.graph.offline.matmul.read import Contraction
from ridgeline.graph.offline.text.frame import tunable
from ridgeline.tools.records.problem import Device, Signature


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """One kernel to be written."""

    contraction: Contraction
    signature: Signature
    device: Device
    structures: frozenset[str]
    variation: int = 0

    def has(self, structure: str) -> bool:
        """Tell whether the kernel is composed of a structure."""
        return structure in self.structures

    def choose(self, name: str, defaults: tuple[int, ...], values: tuple[int, ...]) -> str:
        """Return a tunable's line; variations start at its defaults in turn, or at the last value where one is missing."""
        return tunable(name, defaults[self.variation % len(defaults)], values)
