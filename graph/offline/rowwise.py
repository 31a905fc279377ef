"""The row-wise family on the CPU: C++ with OpenMP, one loop over rows."""

from __future__ import annotations

from collections.abc import Mapping

from ridgeline.graph.models.requests import Subject
from ridgeline.graph.offline.composer import Composition, Pointers, Text, pointed_at
from ridgeline.graph.offline.emit_cpp import emit
from ridgeline.graph.offline.ideas import within_roofline
from ridgeline.graph.offline.recognise import recognise
from ridgeline.graph.offline.rowwise_ideas import TEXTS, raw_gain
from ridgeline.graph.offline.structures import CONFLICTS, Choices, Structure, applicable

VARIATIONS = (
    Choices(),
    Choices(row_block=4, lanes=2, online_block=1024, stream_tile=1024, prefetch_rows=2, chunk=64),
    Choices(row_block=1, lanes=8, online_block=64, stream_tile=64, prefetch_rows=4, chunk=4),
)
TUNABLE = frozenset(
    {Structure.ROWS, Structure.LANES, Structure.ONLINE, Structure.STREAM, Structure.PREFETCH, Structure.DYNAMIC}
)
VARYING = (Structure.PREFETCH, Structure.DYNAMIC, Structure.NARROW, Structure.LANES)

SUSPECTS: Pointers = (
    (r"flag", (Structure.NARROW,)),
    (r"crash|segmentation|written|signal|memory|stack", (Structure.STREAM, Structure.ROWS, Structure.KEEP)),
    (r"wrong|error|precision|nan|inf|finite|differ", (Structure.MOMENTS, Structure.ONLINE, Structure.POLY)),
    (r"time|slow", (Structure.DYNAMIC, Structure.ONLINE)),
)
"""Which structures a failure points at, most likely first."""
LAST_SUSPECTS = (
    Structure.ROWS,
    Structure.LANES,
    Structure.STREAM,
    Structure.PREFETCH,
    Structure.DYNAMIC,
    Structure.NARROW,
    Structure.MOMENTS,
    Structure.ONLINE,
    Structure.POLY,
    Structure.KEEP,
)


class RowwiseCpp:
    """A row-wise reference for one CPU; a Composer."""

    def __init__(self, subject: Subject) -> None:
        """Read a reference.

        Raises:
            NotCovered: an operation or a layout is outside the family.
        """
        self.program = recognise(subject.description)
        self._subject = subject

    @property
    def texts(self) -> Mapping[str, Text]:
        return TEXTS

    @property
    def conflicts(self) -> tuple[Composition, ...]:
        return CONFLICTS

    def applicable(self) -> tuple[str, ...]:
        return applicable(self.program)

    def base(self) -> Composition:
        """Return the row buffer where it applies: costly results are never computed twice."""
        return frozenset({Structure.KEEP}) & frozenset(self.applicable())

    def expected_gain(self, structure: str) -> float:
        return within_roofline(raw_gain(Structure(structure), self.program, self._subject), self._subject)

    def emit(self, composition: Composition, variation: int) -> str:
        chosen = frozenset(Structure(s) for s in composition)
        return emit(self.program, self._subject.description.signature, chosen, VARIATIONS[variation % len(VARIATIONS)])

    def tunable(self) -> Composition:
        return TUNABLE

    def varying(self) -> tuple[str, ...]:
        return VARYING

    def suspects(self, failure: str) -> tuple[str, ...]:
        return pointed_at(failure, SUSPECTS, LAST_SUSPECTS)
