"""A contraction's kernel to be written: the reference, the device and the chosen structures."""

from __future__ import annotations

from dataclasses import dataclass

from ridgeline.graph.models.requests import Subject
from ridgeline.graph.offline.matmul.read import Contraction
from ridgeline.graph.offline.text.frame import tunable
from ridgeline.tools.records.problem import Device, Signature

MAX_WORKSPACE_BYTES = 1 << 30
"""Of packed operands or of the parts of a split contraction; a structure that needs more does not apply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """One kernel to be written."""

    contraction: Contraction
    subject: Subject
    structures: frozenset[str]
    variation: int

    @property
    def signature(self) -> Signature:
        """Return the arguments of `run`."""
        return self.subject.description.signature

    @property
    def device(self) -> Device:
        """Return the device that the kernel is for."""
        return self.subject.device

    def has(self, structure: str) -> bool:
        """Tell whether the kernel is composed of a structure."""
        return structure in self.structures

    def choose(self, name: str, defaults: tuple[int, ...], values: tuple[int, ...]) -> str:
        """Return a tunable's line; variations start at its defaults in turn, or at the last value where one is missing."""
        return tunable(name, defaults[self.variation % len(defaults)], values)
