"""The convolution family on an NVIDIA GPU."""

from __future__ import annotations

from ridgeline.graph.models.requests import Subject
from ridgeline.graph.offline.composer import Composition, header_line
from ridgeline.graph.offline.convolution.cuda.source import can_vectorise, tiling_of, write_source
from ridgeline.graph.offline.convolution.cuda.structures import STRUCTURES, Structure
from ridgeline.graph.offline.convolution.read import read_convolution
from ridgeline.graph.offline.program.ir import NotCovered
from ridgeline.tools.machine.architecture import has_async_copies, has_reduced_products, has_wgmma
from ridgeline.tools.records.precision import allows_tf32
from ridgeline.tools.records.vocabulary import Role


class ConvolutionCuda:
    """A convolution for one GPU; a Composer."""

    structures = STRUCTURES

    def __init__(self, subject: Subject) -> None:
        """Read a reference.

        Raises:
            NotCovered: the reference or its layout is outside the family, or not even the smallest tile fits shared memory.
        """
        self.layer, self._subject = read_convolution(subject.description), subject
        tiling_of(self.layer, frozenset(), subject.device)

    def applicable(self) -> tuple[str, ...]:
        layer, subject = self.layer, self._subject
        outputs = tuple(s.dtype for s in subject.description.signature.with_role(Role.OUTPUT))
        arch = subject.device.arch
        may_round = has_reduced_products(arch) and allows_tf32(subject.tolerance, (layer.x.dtype,), outputs)
        tests = {
            Structure.MMA: may_round and self._fits({Structure.MMA}),
            Structure.WGMMA: may_round and has_wgmma(arch) and self._fits({Structure.WGMMA}),
            Structure.POOL: layer.pool is not None and self._fits({Structure.POOL}),
            Structure.RESIDENT: self._fits({Structure.RESIDENT}),
            Structure.ASYNC: has_async_copies(arch) and layer.x.dtype == "float32",
            Structure.VECTOR: can_vectorise(layer, is_pooled=False)
            and (layer.pool is None or can_vectorise(layer, is_pooled=True)),
        }
        return tuple(s for s in STRUCTURES.texts if tests[Structure(s)])

    def _fits(self, structures: set[Structure]) -> bool:
        try:
            tiling_of(self.layer, frozenset(structures), self._subject.device)
        except NotCovered:
            return False
        return True

    def base(self) -> Composition:
        """Return tensor cores where the tolerance accepts them, wide copies and a pool in the tile: they hardly ever lose."""
        usable = self.applicable()
        unit = Structure.WGMMA if Structure.WGMMA in usable else Structure.MMA
        return frozenset({unit, Structure.VECTOR, Structure.POOL}) & frozenset(usable)

    def expected_gain(self, structure: str) -> float:
        """Return the gain of the tensor cores by their arithmetic, of a refinement as measured on one H200.

        The first convolution of AlexNet in TF32, with and without ReLU and pool, took three quarters of the
        time with warpgroup instructions. Copies ahead and resident weights saved a sixth together on mma.sync, and up
        to a tenth on top of warpgroups.
        """
        gains = {
            Structure.MMA: 3.0,
            Structure.WGMMA: 3.9,
            Structure.POOL: 1 + self.layer.stored_share(flops_per_byte=30),
            Structure.RESIDENT: 1.05,
            Structure.ASYNC: 1.06,
            Structure.VECTOR: 1.05,
        }
        return gains[Structure(structure)]

    def write_source(self, composition: Composition, variation: int) -> str:
        """Return a whole source; structures that do not fit together are dropped, and the header names the others."""
        kept = set(composition)
        for structure in (Structure.RESIDENT, Structure.ASYNC, Structure.POOL, Structure.VECTOR):
            if not self._fits({Structure(s) for s in kept}):
                kept.discard(structure)
        signature, device = self._subject.description.signature, self._subject.device
        source = write_source(self.layer, signature, frozenset(kept), device=device, variation=variation)
        return f"{header_line(self, kept)}\n{source}"
