"""The convolution family on a CPU."""

from __future__ import annotations

from ridgeline.graph.models.requests import Subject
from ridgeline.graph.offline.composer import Composition, header_line
from ridgeline.graph.offline.convolution.cpu.source import MAX_BUFFER_BYTES, buffer_bytes, write_source
from ridgeline.graph.offline.convolution.cpu.structures import STRUCTURES, Structure
from ridgeline.graph.offline.convolution.read import read_convolution
from ridgeline.graph.offline.program.ir import NotCovered

MAX_RING_BYTES = 4 << 20


class ConvolutionCpu:
    """A convolution for one CPU; a Composer."""

    structures = STRUCTURES

    def __init__(self, subject: Subject) -> None:
        """Read a reference.

        Raises:
            NotCovered: the reference or its layout is outside the family, or the input rows of one output row do not fit a
                thread's buffer.
        """
        layer = read_convolution(subject.description)
        if buffer_bytes(layer, 1) > MAX_BUFFER_BYTES:
            raise NotCovered("a convolution whose input rows exceed a thread's buffer")
        self.layer, self._subject = layer, subject

    def applicable(self) -> tuple[str, ...]:
        layer = self.layer
        pool = layer.pool
        ring_rows = pool.kernel[0] * pool.dilation[0] + 8 if pool else 0
        tests = {
            Structure.FILTERS: True,
            Structure.POOL: 0 < 4 * layer.filters * ring_rows * layer.out_size[1] <= MAX_RING_BYTES,
            Structure.PANEL: layer.channels > 1,
            Structure.ROWS: layer.out_size[0] > 1 and buffer_bytes(layer, 2) <= MAX_BUFFER_BYTES,
            Structure.PREFETCH: True,
            Structure.DYNAMIC: layer.images * layer.out_size[0] > 1,
        }
        return tuple(s for s in STRUCTURES.texts if tests[Structure(s)])

    def base(self) -> Composition:
        """Return no structure: outputs of a row fill the vectors, weights stay as they lie."""
        return frozenset()

    def expected_gain(self, structure: str) -> float:
        cols = self.layer.out_size[1]
        filled = cols / (-(-cols // 16) * 16)
        gains = {
            Structure.FILTERS: 1.15 / filled,
            Structure.POOL: 1 + self.layer.stored_share(flops_per_byte=20),
            Structure.PANEL: 1.05,
            Structure.ROWS: 1.1,
            Structure.PREFETCH: 1.02,
            Structure.DYNAMIC: 1.03,
        }
        return gains[Structure(structure)]

    def write_source(self, composition: Composition, variation: int) -> str:
        signature, cores = self._subject.description.signature, self._subject.device.cores
        source = write_source(self.layer, signature, composition, cores=cores, variation=variation)
        return f"{header_line(self, composition)}\n{source}"
