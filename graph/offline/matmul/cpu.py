"""The contraction family on CPUs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from ridgeline.graph.models.requests import Subject
from ridgeline.graph.offline.composer import Composition, Pointers, Text, header_line, pointed_at
from ridgeline.graph.offline.ideas import within_roofline
from ridgeline.graph.offline.matmul.contraction import recognise
from ridgeline.graph.offline.matmul.cpu_ideas import TEXTS
from ridgeline.graph.offline.matmul.cpu_text import (
    DEPTHS,
    DOT,
    DYNAMIC,
    PANELS,
    POLY,
    PREFETCH,
    SPLIT,
    TILES,
    CpuKernel,
)

MAX_WORKSPACE_BYTES = 1 << 30
CPU_FLAGS = Path("/proc/cpuinfo")
SUSPECTS: Pointers = (
    (r"compil|target|inlin", (DOT,)),
    (r"crash|segmentation|written|signal|memory|stack|illegal", (SPLIT, DOT, TILES, PANELS)),
    (r"wrong|error|precision|nan|inf|finite|differ", (DOT, SPLIT, POLY, DEPTHS)),
    (r"time|slow", (DYNAMIC, SPLIT)),
)
LAST_SUSPECTS = (SPLIT, DOT, PREFETCH, DYNAMIC, TILES, DEPTHS, POLY, PANELS)


class MatmulCpu:
    """A contraction for one CPU; a Composer."""

    def __init__(self, subject: Subject) -> None:
        """Read a reference.

        Raises:
            NotCovered: an operation or a layout is outside the family.
        """
        self.contraction = recognise(subject.description)
        self._subject = subject

    @property
    def texts(self) -> Mapping[str, Text]:
        return TEXTS

    @property
    def conflicts(self) -> tuple[Composition, ...]:
        return ()

    def applicable(self) -> tuple[str, ...]:
        contraction = self.contraction
        is_large = contraction.m * contraction.n * contraction.k >= 1 << 18
        batches = contraction.batch if contraction.right.batch_terms else 1
        tiles = -(-contraction.m // 112) * -(-contraction.n // 256) * contraction.batch
        packs = 4 * batches * (contraction.n + 64) * contraction.k <= MAX_WORKSPACE_BYTES
        tests = {
            PANELS: packs,
            DEPTHS: packs and contraction.k > 256,
            TILES: packs and contraction.n > 128,
            DOT: packs and contraction.dtype == "bfloat16" and has_bf16_products(),
            PREFETCH: packs and is_large,
            SPLIT: packs and tiles < 4 * self._subject.device.cores and contraction.k >= 1024,
            DYNAMIC: packs and tiles > 2,
            POLY: contraction.epilogue.has_transcendental,
        }
        return tuple(s for s in TEXTS if tests[s])

    def base(self) -> Composition:
        """Return packed panels where they fit: every other structure refines them."""
        return frozenset({PANELS}) & frozenset(self.applicable())

    def expected_gain(self, structure: str) -> float:
        contraction = self.contraction
        depth_bytes = 4 * contraction.k * 32  # of a right panel, which every row panel reads again
        elements = contraction.m * contraction.n * contraction.batch
        cost = 2 * contraction.epilogue.cost * elements / contraction.flops
        gains = {
            PANELS: 6.0,
            DEPTHS: 1.4 if depth_bytes > 1 << 15 else 1.05,
            TILES: 1.2,
            DOT: 1.8,
            PREFETCH: 1.03,
            SPLIT: 1.1,
            DYNAMIC: 1.04,
            POLY: 1.02 + min(cost, 0.5),
        }
        return within_roofline(gains[structure], self._subject)

    def emit(self, composition: Composition, variation: int) -> str:
        kernel = CpuKernel(
            contraction=self.contraction,
            signature=self._subject.description.signature,
            structures=composition,
            variation=variation,
        )
        return f"{header_line(self, composition)}\n{kernel.source()}"

    def tunable(self) -> Composition:
        return frozenset({PANELS})

    def varying(self) -> tuple[str, ...]:
        return PREFETCH, DYNAMIC, TILES

    def suspects(self, failure: str) -> tuple[str, ...]:
        return pointed_at(failure, SUSPECTS, LAST_SUSPECTS)


def has_bf16_products() -> bool:
    """Tell whether this machine's processor multiplies pairs of bf16; without /proc, no."""
    try:
        return re.search(r"\bavx512_bf16\b", CPU_FLAGS.read_text(encoding="utf-8")) is not None
    except OSError:
        return False
