"""The row-wise family on a GPU: CUDA, a row for a warp, a block, a cluster or the whole grid."""

from __future__ import annotations

from collections.abc import Mapping

from ridgeline.graph.models.requests import Subject
from ridgeline.graph.offline import schedule
from ridgeline.graph.offline.composer import Composition, Pointers, Text, compatible, pointed_at
from ridgeline.graph.offline.cuda_geometry import (
    MAX_COLUMNS,
    MIN_SPLIT_COLUMNS,
    WARP_COLUMNS,
    fit,
    staged,
    vectors,
)
from ridgeline.graph.offline.cuda_structures import CONFLICTS
from ridgeline.graph.offline.cuda_structures import CudaStructure as S
from ridgeline.graph.offline.emit_cuda import demand, emit, planned
from ridgeline.graph.offline.ideas import within_roofline
from ridgeline.graph.offline.ir import REDUCTIONS, NotCovered
from ridgeline.graph.offline.recognise import recognise
from ridgeline.graph.offline.rowwise_cuda_ideas import TEXTS, raw_gain
from ridgeline.tools.machine.architecture import has_clusters

FAST_OPS = ("exp", "div", "reciprocal", "sigmoid", "silu", "sqrt")
MIN_STREAM_BYTES = 1 << 20
"""Smaller data stays in the L2 cache anyway."""
TUNABLE = frozenset({S.VECTOR, S.CLUSTER, S.SPLIT, S.GRID, S.ASYNC, S.WARP, S.REGISTERS, S.SHARED})
VARYING = (S.STREAM, S.PERSIST, S.FAST)

SUSPECTS: Pointers = (
    (r"cooperative|too large|co.?resident|workspace", (S.GRID, S.SPLIT)),
    (r"illegal|misaligned|address|alignment", (S.ASYNC, S.VECTOR, S.CLUSTER, S.SHARED)),
    (r"launch|resource|shared memory|register|invalid", (S.GRID, S.CLUSTER, S.ASYNC, S.SHARED, S.REGISTERS)),
    (r"time|hang|endless|slow", (S.GRID, S.ASYNC, S.CLUSTER)),
    (r"wrong|error|precision|nan|inf|finite|differ", (S.MOMENTS, S.ONLINE, S.FAST)),
)
"""Which structures a failure points at, most likely first."""
LAST_SUSPECTS = (
    S.ASYNC,
    S.GRID,
    S.CLUSTER,
    S.SHARED,
    S.REGISTERS,
    S.MOMENTS,
    S.ONLINE,
    S.FAST,
    S.PERSIST,
    S.STREAM,
    S.SPLIT,
    S.WARP,
    S.VECTOR,
)


class RowwiseCuda:
    """A row-wise reference for one GPU; a Composer."""

    def __init__(self, subject: Subject) -> None:
        """Read a reference.

        Raises:
            NotCovered: an operation or a layout is outside the family.
        """
        self.program = recognise(subject.description)
        if self.program.cols > MAX_COLUMNS:
            raise NotCovered(f"rows of {self.program.cols} elements")
        planned(self.program, frozenset())
        self._subject = subject
        self._applicable = self._find_applicable()

    @property
    def texts(self) -> Mapping[str, Text]:
        return TEXTS

    @property
    def conflicts(self) -> tuple[Composition, ...]:
        return CONFLICTS

    def applicable(self) -> tuple[str, ...]:
        return self._applicable

    def base(self) -> Composition:
        """Return vector loads, one block's or warp's row in registers, and of few long rows the split."""
        program, device = self.program, self._subject.device
        chosen = {S.VECTOR}
        if program.rows < device.cores and S.SPLIT in self._applicable:
            chosen |= {S.SPLIT}
        else:
            chosen |= {S.REGISTERS}
            chosen |= {S.WARP} if program.cols <= WARP_COLUMNS // 4 else set()
        return frozenset(chosen) & frozenset(self._applicable)

    def expected_gain(self, structure: str) -> float:
        return within_roofline(raw_gain(structure, self.program, self._subject.device), self._subject)

    def emit(self, composition: Composition, variation: int) -> str:
        """Return a whole source; what does not fit together goes, the costliest first, and the header says what stayed.

        A row in shared memory and the ring of rows that bulk copies fill would both start where a block's shared
        memory does: the copy of a later row would overwrite the row that is kept.
        """
        signature, device = self._subject.description.signature, self._subject.device
        for dropped in ((), (S.ASYNC,), (S.ASYNC, S.SHARED, S.REGISTERS)):
            chosen = composition - set(dropped)
            if self._fits(chosen):
                return emit(self.program, signature, chosen, device, variation)
        return emit(self.program, signature, frozenset(), device, variation)

    def tunable(self) -> Composition:
        return TUNABLE

    def varying(self) -> tuple[str, ...]:
        return VARYING

    def suspects(self, failure: str) -> tuple[str, ...]:
        return pointed_at(failure, SUSPECTS, LAST_SUSPECTS)

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
        _, keeps = planned(program, frozenset({S.REGISTERS}))
        tests = {
            S.VECTOR: len(vectors(program)) > 1 or vectors(program)[0] > 1,
            S.WARP: max(keeps.slots, 1) * program.cols <= WARP_COLUMNS and program.rows >= 4,
            S.CLUSTER: has_clusters(device.arch) and program.cols >= 2048,
            S.SPLIT: program.cols >= MIN_SPLIT_COLUMNS,
            S.GRID: reduces and program.cols >= 64 * device.cores,
            S.REGISTERS: keeps.slots > 0 and self._fits(frozenset({S.REGISTERS})),
            S.SHARED: keeps.slots > 0 and self._fits(frozenset({S.SHARED})),
            S.ASYNC: has_clusters(device.arch)
            and bool(staged(program))
            and program.cols >= 512
            and program.rows >= 2
            and self._fits(frozenset({S.ASYNC})),
            S.ONLINE: schedule.has_online_pair(program),
            S.MOMENTS: schedule.has_moments(program),
            S.STREAM: moved >= MIN_STREAM_BYTES,
            S.PERSIST: program.rows >= 4 * device.cores,
            S.FAST: any(v.op in FAST_OPS and v.space & 1 for v in values),
        }
        return tuple(s for s in S if tests[s])
