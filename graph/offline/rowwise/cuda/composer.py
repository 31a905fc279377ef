"""The row-wise family on a GPU: CUDA, a row for a warp, a block, a cluster or the whole grid."""

from __future__ import annotations

from ridgeline.graph.models.requests import Subject
from ridgeline.graph.offline.composer import Composition, compatible, header_line
from ridgeline.graph.offline.program import schedule
from ridgeline.graph.offline.program.ir import REDUCTIONS, NotCovered
from ridgeline.graph.offline.program.read import read_program
from ridgeline.graph.offline.rowwise.cuda.gains import expected_gain
from ridgeline.graph.offline.rowwise.cuda.geometry import (
    MAX_COLUMNS,
    MIN_SPLIT_COLUMNS,
    WARP_COLUMNS,
    fit,
    staged,
    vectors,
)
from ridgeline.graph.offline.rowwise.cuda.source import demand, planned, write_source
from ridgeline.graph.offline.rowwise.cuda.structures import STRUCTURES, Structure
from ridgeline.tools.machine.architecture import has_clusters

FAST_OPS = ("exp", "div", "reciprocal", "sigmoid", "silu", "sqrt")
MIN_STREAM_BYTES = 1 << 20
"""Smaller data stays in the L2 cache anyway."""

ON_CHIP = (Structure.ASYNC, Structure.SHARED, Structure.REGISTERS)


class RowwiseCuda:
    """A row-wise reference on one GPU; a Composer."""

    structures = STRUCTURES

    def __init__(self, subject: Subject) -> None:
        """Read a reference.

        Raises:
            NotCovered: an operation or a layout is outside the family.
        """
        self.program = read_program(subject.description)
        if self.program.cols > MAX_COLUMNS:
            raise NotCovered(f"rows of {self.program.cols} elements")
        planned(self.program, frozenset())
        self._subject = subject
        self._applicable = self._find_applicable()

    def applicable(self) -> tuple[str, ...]:
        return self._applicable

    def base(self) -> Composition:
        """Return vector loads with the row in registers of a warp or a block; of few long rows, with the split."""
        program, device = self.program, self._subject.device
        chosen = {Structure.VECTOR}
        if program.rows < device.cores and Structure.SPLIT in self._applicable:
            chosen |= {Structure.SPLIT}
        else:
            chosen |= {Structure.REGISTERS}
            chosen |= {Structure.WARP} if program.cols <= WARP_COLUMNS // 4 else set()
        return frozenset(chosen) & frozenset(self._applicable)

    def expected_gain(self, structure: str) -> float:
        return expected_gain(structure, self.program, self._subject.device)

    def write_source(self, composition: Composition, variation: int) -> str:
        """Return a whole source; where not all structures fit, the costliest are dropped, and the header names the others.

        A row in shared memory and the ring of rows that bulk copies fill would both start where a block's shared
        memory does: the copy of a later row would overwrite the row that is kept.
        """
        signature, device = self._subject.description.signature, self._subject.device
        fewer = (composition.difference(dropped) for dropped in ((), (Structure.ASYNC,), ON_CHIP))
        chosen = next((c for c in fewer if self._fits(c)), frozenset())
        return f"{header_line(self, chosen)}\n{write_source(self.program, signature, chosen, device, variation)}"

    def _fits(self, composition: Composition) -> bool:
        if not compatible(self, composition):
            return False
        _, keeps = planned(self.program, composition)
        wanted = demand(self.program, composition, keeps)
        try:
            fit(self.program, composition, wanted, self._subject.device)
        except NotCovered:
            return False
        return True

    def _find_applicable(self) -> tuple[str, ...]:
        program, device = self.program, self._subject.device
        values = program.values()
        reduces = any(v.op in REDUCTIONS for v in values)
        moved = sum(4 * program.rows * program.cols for o in program.outputs if o.value.space)
        _, keeps = planned(program, frozenset({Structure.REGISTERS}))
        tests = {
            Structure.VECTOR: len(vectors(program)) > 1 or vectors(program)[0] > 1,
            Structure.WARP: max(keeps.slots, 1) * program.cols <= WARP_COLUMNS and program.rows >= 4,
            Structure.CLUSTER: has_clusters(device.arch) and program.cols >= 2048,
            Structure.SPLIT: program.cols >= MIN_SPLIT_COLUMNS,
            Structure.GRID: reduces and program.cols >= 64 * device.cores,
            Structure.REGISTERS: keeps.slots > 0 and self._fits(frozenset({Structure.REGISTERS})),
            Structure.SHARED: keeps.slots > 0 and self._fits(frozenset({Structure.SHARED})),
            Structure.ASYNC: has_clusters(device.arch)
            and bool(staged(program))
            and program.cols >= 512
            and program.rows >= 2
            and self._fits(frozenset({Structure.ASYNC})),
            Structure.ONLINE: schedule.has_online_pair(program),
            Structure.MOMENTS: schedule.has_moments(program),
            Structure.STREAM: moved >= MIN_STREAM_BYTES,
            Structure.PERSIST: program.rows >= 4 * device.cores,
            Structure.FAST: any(v.op in FAST_OPS and v.space & 1 for v in values),
        }
        return tuple(s for s in Structure if tests[s])
