"""The contraction family on an NVIDIA GPU."""

from __future__ import annotations

import math

from ridgeline.graph.models.requests import Subject
from ridgeline.graph.offline.composer import Composition, header_line
from ridgeline.graph.offline.matmul.cuda.source import write_source
from ridgeline.graph.offline.matmul.cuda.structures import STRUCTURES, Structure
from ridgeline.graph.offline.matmul.cuda.warpgroups import sides_of
from ridgeline.graph.offline.matmul.kernel import MAX_WORKSPACE_BYTES, Kernel
from ridgeline.graph.offline.matmul.read import read_contraction
from ridgeline.graph.offline.program.ir import NotCovered
from ridgeline.tools.machine.architecture import has_async_copies, has_reduced_products, has_wgmma
from ridgeline.tools.records.precision import allows_tf32

MAX_BATCHES = 65535
"""A grid's extent in z."""


class MatmulCuda:
    """A contraction for one GPU; a Composer."""

    structures = STRUCTURES

    def __init__(self, subject: Subject) -> None:
        """Read a reference.

        Raises:
            NotCovered: an operation or a layout is outside the family.
        """
        self.contraction = read_contraction(subject.description)
        if self.contraction.batch > MAX_BATCHES or max(self._extents()) >= 1 << 30:
            raise NotCovered("a product of more than 65535 matrices, or of more than 2^30 rows")
        self._subject = subject

    def _extents(self) -> tuple[int, int, int]:
        return self.contraction.m, self.contraction.n, self.contraction.k

    def applicable(self) -> tuple[str, ...]:
        contraction, cores, arch = self.contraction, self._subject.device.cores, self._subject.device.arch
        reduced, tiles = self._is_reduced(), self._tiles()
        operands = (contraction.left, contraction.right)
        tests = {
            Structure.WARPGROUP: reduced and self._has_warpgroups(),
            Structure.TENSOR: reduced,
            Structure.ASYNC: has_async_copies(arch) and (reduced or contraction.element_bytes == 4),
            Structure.VECTOR: any(contraction.is_chunked(o) for o in operands),
            Structure.GROUPED: math.ceil(contraction.m / 128) >= 4 and tiles >= 16,
            Structure.PERSISTENT: tiles > cores,
            Structure.CLUSTER: reduced and self._has_warpgroups() and tiles >= cores,
            Structure.WIDE: reduced and contraction.n % 4 == 0,
            Structure.SPLIT: tiles < cores
            and contraction.k >= 512
            and self._output_bytes() * 16 <= MAX_WORKSPACE_BYTES,
        }
        return tuple(s for s in STRUCTURES.texts if tests[Structure(s)])

    def base(self) -> Composition:
        """Return the fastest unit that the tolerance allows: no other structure makes up for an idle unit.

        For many tiles on warpgroups, grouped blocks and wide stores come with it: both were faster on one H200, in fp16
        and in tf32 at 4096.
        """
        usable = self.applicable()
        unit = next(
            (s for s in (Structure.WARPGROUP, Structure.TENSOR, Structure.ASYNC) if s in usable), Structure.VECTOR
        )
        refined = (
            {Structure.GROUPED, Structure.WIDE}
            if unit == Structure.WARPGROUP and Structure.PERSISTENT in usable
            else set()
        )
        return frozenset({unit, *refined}) & frozenset(usable)

    def expected_gain(self, structure: str) -> float:
        """Return the gain of a unit by its arithmetic, of a refinement as measured on one H200.

        Products of 4096 x 4096 x 4096 took 0.9 (fp16) to 0.98 (tf32) of the time with grouped and persistent
        blocks and wide stores, and half as long again or more with cluster multicast.
        """
        on_warpgroups = Structure.WARPGROUP in self.base()
        gains = {
            Structure.WARPGROUP: 8.0,  # 8 times the multiplications a cycle of ordinary instructions, at tf32
            Structure.TENSOR: 1.0 if on_warpgroups else 5.0,
            Structure.ASYNC: 1.0 if on_warpgroups else 1.3,
            Structure.VECTOR: 1.0 if on_warpgroups else 1.1,
            Structure.GROUPED: 1.05,
            Structure.PERSISTENT: 1.04,
            Structure.CLUSTER: 1.0,
            Structure.WIDE: 1.03,
            Structure.SPLIT: min(self._subject.device.cores / self._tiles(), 3.0),
        }
        return gains[Structure(structure)]

    def write_source(self, composition: Composition, variation: int) -> str:
        kernel = Kernel(
            contraction=self.contraction, subject=self._subject, structures=composition, variation=variation
        )
        return f"{header_line(self, composition)}\n{write_source(kernel)}"

    def _is_reduced(self) -> bool:
        """Tell whether the tolerance accepts the products of the device's tensor cores; half operands lose nothing in them."""
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
