"""The contraction family on a CPU."""

from __future__ import annotations

from ridgeline.graph.models.requests import Subject
from ridgeline.graph.offline.composer import Composition, header_line
from ridgeline.graph.offline.matmul.cpu.source import write_source
from ridgeline.graph.offline.matmul.cpu.structures import STRUCTURES, Structure
from ridgeline.graph.offline.matmul.kernel import MAX_WORKSPACE_BYTES, Kernel
from ridgeline.graph.offline.matmul.read import read_contraction
from ridgeline.tools.machine.devices import cpu_flags


class MatmulCpu:
    """A contraction for one CPU; a Composer."""

    structures = STRUCTURES

    def __init__(self, subject: Subject) -> None:
        """Read a reference.

        Raises:
            NotCovered: an operation or a layout is outside the family.
        """
        self.contraction = read_contraction(subject.description)
        self._subject = subject

    def applicable(self) -> tuple[str, ...]:
        contraction = self.contraction
        is_large = contraction.m * contraction.n * contraction.k >= 1 << 18
        batches = contraction.batch if contraction.right.batch_terms else 1
        tiles = -(-contraction.m // 112) * -(-contraction.n // 256) * contraction.batch
        packs = 4 * batches * (contraction.n + 64) * contraction.k <= MAX_WORKSPACE_BYTES
        tests = {
            Structure.PANELS: packs,
            Structure.DEPTHS: packs and contraction.k > 256,
            Structure.TILES: packs and contraction.n > 128,
            Structure.DOT: packs and contraction.dtype == "bfloat16" and has_bf16_products(),
            Structure.PREFETCH: packs and is_large,
            Structure.SPLIT: packs and tiles < 4 * self._subject.device.cores and contraction.k >= 1024,
            Structure.DYNAMIC: packs and tiles > 2,
            Structure.POLY: contraction.epilogue.has_transcendental,
        }
        return tuple(s for s in STRUCTURES.texts if tests[Structure(s)])

    def base(self) -> Composition:
        """Return packed panels where they fit: every other structure refines them."""
        return frozenset({Structure.PANELS}) & frozenset(self.applicable())

    def expected_gain(self, structure: str) -> float:
        contraction = self.contraction
        depth_bytes = 4 * contraction.k * 32  # of a right panel, which every row panel reads again
        elements = contraction.m * contraction.n * contraction.batch
        cost = 2 * contraction.epilogue.cost * elements / contraction.flops
        gains = {
            Structure.PANELS: 6.0,
            Structure.DEPTHS: 1.4 if depth_bytes > 1 << 15 else 1.05,
            Structure.TILES: 1.2,
            Structure.DOT: 1.8,
            Structure.PREFETCH: 1.03,
            Structure.SPLIT: 1.1,
            Structure.DYNAMIC: 1.04,
            Structure.POLY: 1.02 + min(cost, 0.5),
        }
        return gains[Structure(structure)]

    def write_source(self, composition: Composition, variation: int) -> str:
        kernel = Kernel(
            contraction=self.contraction, subject=self._subject, structures=composition, variation=variation
        )
        return f"{header_line(self, composition)}\n{write_source(kernel)}"


def has_bf16_products() -> bool:
    """Tell whether this machine's processor multiplies pairs of bf16; without /proc, no."""
    try:
        return "avx512_bf16" in cpu_flags()
    except OSError:
        return False
