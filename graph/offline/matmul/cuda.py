"""The contraction family on NVIDIA GPUs."""

from __future__ import annotations

import math
from collections.abc import Mapping

from ridgeline.graph.models.requests import Subject
from ridgeline.graph.offline.composer import Composition, Pointers, Text, header_line, pointed_at
from ridgeline.graph.offline.ideas import within_roofline
from ridgeline.graph.offline.ir import NotCovered
from ridgeline.graph.offline.matmul.contraction import recognise
from ridgeline.graph.offline.matmul.cuda_ideas import TEXTS
from ridgeline.graph.offline.matmul.cuda_text import (
    ASYNC,
    CLUSTER,
    GROUPED,
    PERSISTENT,
    SPLIT,
    TENSOR,
    VECTOR,
    WARPGROUP,
    WIDE,
    CudaKernel,
    is_chunked,
    sides_of,
)
from ridgeline.tools.machine.architecture import has_async_copies, has_reduced_products, has_wgmma
from ridgeline.tools.records.precision import allows_tf32

CONFLICTS = (
    frozenset({TENSOR, WARPGROUP}),
    frozenset({ASYNC, WARPGROUP}),
    frozenset({VECTOR, WARPGROUP}),
    frozenset({SPLIT, WARPGROUP}),
    frozenset({CLUSTER, TENSOR}),  # only the copy engine delivers to several blocks
    frozenset({CLUSTER, ASYNC}),
    frozenset({CLUSTER, VECTOR}),
    frozenset({CLUSTER, SPLIT}),
    frozenset({VECTOR, ASYNC}),  # asynchronous copies move 16 bytes wherever that is aligned
)
MAX_BATCHES = 65535
"""A grid's extent in z."""
MAX_WORKSPACE_BYTES = 1 << 30
SUSPECTS: Pointers = (
    (r"compil|ptxas|regist|assembl", (WARPGROUP, TENSOR, ASYNC)),
    (r"illegal|address|memory|crash|launch|signal", (CLUSTER, SPLIT, WARPGROUP, ASYNC, VECTOR)),
    (r"wrong|error|precision|nan|inf|finite|differ|written", (CLUSTER, WARPGROUP, TENSOR, SPLIT, WIDE)),
    (r"time|slow|endless|hang", (CLUSTER, PERSISTENT, WARPGROUP, SPLIT)),
)
LAST_SUSPECTS = (CLUSTER, WARPGROUP, TENSOR, SPLIT, ASYNC, PERSISTENT, WIDE, VECTOR, GROUPED)


class MatmulCuda:
    """A contraction for one GPU; a Composer."""

    def __init__(self, subject: Subject) -> None:
        """Read a reference.

        Raises:
            NotCovered: an operation or a layout is outside the family.
        """
        self.contraction = recognise(subject.description)
        if self.contraction.batch > MAX_BATCHES or max(self._extents()) >= 1 << 30:
            raise NotCovered("a product of more than 65535 matrices, or of more than 2^30 rows")
        self._subject = subject

    def _extents(self) -> tuple[int, int, int]:
        return self.contraction.m, self.contraction.n, self.contraction.k

    @property
    def texts(self) -> Mapping[str, Text]:
        return TEXTS

    @property
    def conflicts(self) -> tuple[Composition, ...]:
        return CONFLICTS

    def applicable(self) -> tuple[str, ...]:
        contraction, cores, arch = self.contraction, self._subject.device.cores, self._subject.device.arch
        reduced, tiles = self._is_reduced(), self._tiles()
        operands = (contraction.left, contraction.right)
        tests = {
            WARPGROUP: reduced and self._has_warpgroups(),
            TENSOR: reduced,
            ASYNC: has_async_copies(arch) and (reduced or contraction.element_bytes == 4),
            VECTOR: any(is_chunked(o, contraction) for o in operands),
            GROUPED: math.ceil(contraction.m / 128) >= 4 and tiles >= 16,
            PERSISTENT: tiles > cores,
            CLUSTER: reduced and self._has_warpgroups() and tiles >= cores,
            WIDE: reduced and contraction.n % 4 == 0,
            SPLIT: tiles < cores and contraction.k >= 512 and self._output_bytes() * 16 <= MAX_WORKSPACE_BYTES,
        }
        return tuple(s for s in TEXTS if tests[s])

    def base(self) -> Composition:
        """Return the fastest unit that the tolerance allows: nothing else makes up for leaving it idle.

        Of many tiles on warpgroups it also returns what made them faster on one H200, in fp16 and in tf32 at 4096.
        """
        usable = self.applicable()
        unit = next((s for s in (WARPGROUP, TENSOR, ASYNC) if s in usable), VECTOR)
        refined = {GROUPED, WIDE} if unit == WARPGROUP and PERSISTENT in usable else set()
        return frozenset({unit, *refined}) & frozenset(usable)

    def expected_gain(self, structure: str) -> float:
        """Return the gain of what others are built on by its arithmetic, of a refinement as one H200 showed it.

        There, products of 4096 x 4096 x 4096 took 0.9 (fp16) to 0.98 (tf32) of the time with grouped and persistent
        blocks and wide stores, and half as long again or more with cluster multicast.
        """
        on_warpgroups = WARPGROUP in self.base()
        gains = {
            WARPGROUP: 8.0,  # 8 times the multiplications a cycle of ordinary instructions, at tf32
            TENSOR: 1.0 if on_warpgroups else 5.0,
            ASYNC: 1.0 if on_warpgroups else 1.3,
            VECTOR: 1.0 if on_warpgroups else 1.1,
            GROUPED: 1.05,
            PERSISTENT: 1.04,
            CLUSTER: 1.0,
            WIDE: 1.03,
            SPLIT: min(self._subject.device.cores / self._tiles(), 3.0),
        }
        return within_roofline(gains[structure], self._subject)

    def emit(self, composition: Composition, variation: int) -> str:
        kernel = CudaKernel(
            contraction=self.contraction,
            signature=self._subject.description.signature,
            cores=self._subject.device.cores,
            arch=self._subject.device.arch,
            structures=composition,
            variation=variation,
        )
        return f"{header_line(self, composition)}\n{kernel.source()}"

    def tunable(self) -> Composition:
        return frozenset({WARPGROUP, TENSOR, ASYNC, GROUPED, SPLIT})

    def varying(self) -> tuple[str, ...]:
        return GROUPED, PERSISTENT, ASYNC, WIDE

    def suspects(self, failure: str) -> tuple[str, ...]:
        return pointed_at(failure, SUSPECTS, LAST_SUSPECTS)

    def _is_reduced(self) -> bool:
        """Tell whether there are tensor cores that are precise enough: half operands are what they are."""
        contraction = self.contraction
        return has_reduced_products(self._subject.device.arch) and allows_tf32(
            self._subject.tolerance, (contraction.dtype,), (contraction.epilogue.output.dtype,)
        )

    def _has_warpgroups(self) -> bool:
        contraction = self.contraction
        first, second, _ = sides_of(contraction)
        packed = sum(
            side.outer * (contraction.k + 8) * contraction.batch * contraction.element_bytes
            for side in (first, second)
            if side.is_repacked
        )
        return has_wgmma(self._subject.device.arch) and packed <= MAX_WORKSPACE_BYTES

    def _tiles(self) -> int:
        contraction = self.contraction
        return math.ceil(contraction.m / 128) * math.ceil(contraction.n / 128) * contraction.batch

    def _output_bytes(self) -> int:
        return 4 * self.contraction.batch * self.contraction.m * self.contraction.n
