"""The row-wise family on a CPU: C++ with OpenMP, one loop over rows."""

from __future__ import annotations

from ridgeline.graph.models.requests import Subject
from ridgeline.graph.offline.composer import Composition, header_line
from ridgeline.graph.offline.program.read import read_program
from ridgeline.graph.offline.rowwise.cpu.choices import VARIATIONS
from ridgeline.graph.offline.rowwise.cpu.gains import expected_gain
from ridgeline.graph.offline.rowwise.cpu.source import write_source
from ridgeline.graph.offline.rowwise.cpu.structures import STRUCTURES, Structure, applicable
from ridgeline.tools.machine.vectors import vector_bits


class RowwiseCpu:
    """A row-wise reference on one CPU; a Composer."""

    structures = STRUCTURES

    def __init__(self, subject: Subject) -> None:
        """Read a reference.

        Raises:
            NotCovered: an operation or a layout is outside the family.
        """
        self.program = read_program(subject.description)
        self._subject = subject
        self._vector_bits = vector_bits(subject.facts)

    def applicable(self) -> tuple[str, ...]:
        return applicable(self.program, self._vector_bits)

    def base(self) -> Composition:
        """Return the row buffer where it applies: costly results are never computed twice."""
        return frozenset({Structure.KEEP}) & frozenset(self.applicable())

    def expected_gain(self, structure: str) -> float:
        return expected_gain(Structure(structure), self.program, self._subject.description.compulsory_bytes)

    def write_source(self, composition: Composition, variation: int) -> str:
        chosen = frozenset(Structure(s) for s in composition)
        choices = VARIATIONS[variation % len(VARIATIONS)]
        source = write_source(self.program, self._subject.description.signature, chosen, choices)
        return f"{header_line(self, composition)}\n{source}"
