"""The convolution family on its two targets, as the offline search sees it."""

from __future__ import annotations

from collections.abc import Mapping

from ridgeline.graph.models.requests import Subject
from ridgeline.graph.offline.composer import Composer, Composition, Pointers, Text, header_line, pointed_at
from ridgeline.graph.offline.convolution import emit_cpp, emit_cuda
from ridgeline.graph.offline.convolution.layer import Convolution, recognise
from ridgeline.graph.offline.convolution.structures import CPU_TEXTS, GPU_TEXTS, Cpu, Gpu
from ridgeline.graph.offline.ideas import within_roofline
from ridgeline.graph.offline.ir import NotCovered
from ridgeline.tools.machine.architecture import has_async_copies, has_reduced_products, has_wgmma
from ridgeline.tools.records.precision import allows_tf32
from ridgeline.tools.records.vocabulary import Role

MAX_RING_BYTES = 4 << 20

CPU_SUSPECTS: Pointers = (
    (r"crash|segmentation|written|signal|memory|stack", (Cpu.POOL, Cpu.ROWS)),
    (r"wrong|error|precision|nan|inf|finite|differ", (Cpu.POOL, Cpu.PANEL)),
    (r"time|slow", (Cpu.DYNAMIC, Cpu.PREFETCH)),
)
GPU_SUSPECTS: Pointers = (
    (r"shared memory|register|launch|resource", (Gpu.RESIDENT, Gpu.ASYNC)),
    (r"illegal|crash|align|written|signal", (Gpu.VECTOR, Gpu.ASYNC, Gpu.RESIDENT)),
    (r"precision|wrong|error|nan|inf|finite|differ", (Gpu.WGMMA, Gpu.POOL, Gpu.MMA)),
    (r"time|slow", (Gpu.WGMMA, Gpu.RESIDENT)),
)
"""Which structures a failure points at, most likely first."""


def convolution(subject: Subject) -> Composer:
    """Return the convolution family's composer for the subject's target.

    Raises:
        NotCovered: the reference or its layout is outside the family.
    """
    layer = recognise(subject.description)
    return ConvolutionCpp(layer, subject) if subject.language == "cpp" else ConvolutionCuda(layer, subject)


class ConvolutionCpp:
    """A convolution for one CPU; a Composer."""

    def __init__(self, layer: Convolution, subject: Subject) -> None:
        """Take a recognised convolution.

        Raises:
            NotCovered: the rows of one output do not fit a thread's buffer.
        """
        if emit_cpp.buffer_bytes(layer, 1) > emit_cpp.MAX_BUFFER_BYTES:
            raise NotCovered("a convolution whose input rows exceed a thread's buffer")
        self.layer, self._subject = layer, subject

    @property
    def texts(self) -> Mapping[str, Text]:
        return CPU_TEXTS

    @property
    def conflicts(self) -> tuple[Composition, ...]:
        return ()

    def applicable(self) -> tuple[str, ...]:
        layer = self.layer
        pool = layer.pool
        ring_rows = pool.kernel[0] * pool.dilation[0] + 8 if pool else 0
        tests = {
            Cpu.FILTERS: True,
            Cpu.POOL: 0 < 4 * layer.filters * ring_rows * layer.out_size[1] <= MAX_RING_BYTES,
            Cpu.PANEL: layer.channels > 1,
            Cpu.ROWS: layer.out_size[0] > 1 and emit_cpp.buffer_bytes(layer, 2) <= emit_cpp.MAX_BUFFER_BYTES,
            Cpu.PREFETCH: True,
            Cpu.DYNAMIC: layer.images * layer.out_size[0] > 1,
        }
        return tuple(s for s in CPU_TEXTS if tests[Cpu(s)])

    def base(self) -> Composition:
        """Return nothing: outputs of a row in vectors, the weights as they lie."""
        return frozenset()

    def expected_gain(self, structure: str) -> float:
        cols = self.layer.out_size[1]
        filled = cols / (-(-cols // 16) * 16)
        gains = {
            Cpu.FILTERS: 1.15 / filled,
            Cpu.POOL: 1 + _stored_share(self.layer, self._subject, flops_per_byte=20),
            Cpu.PANEL: 1.05,
            Cpu.ROWS: 1.1,
            Cpu.PREFETCH: 1.02,
            Cpu.DYNAMIC: 1.03,
        }
        return within_roofline(gains[Cpu(structure)], self._subject)

    def emit(self, composition: Composition, variation: int) -> str:
        header = header_line(self, composition)
        signature, cores = self._subject.description.signature, self._subject.device.cores
        return emit_cpp.emit(self.layer, signature, composition, header, cores=cores, variation=variation)

    def tunable(self) -> Composition:
        return frozenset({Cpu.FILTERS, Cpu.PANEL, Cpu.ROWS})

    def varying(self) -> tuple[str, ...]:
        return (Cpu.ROWS, Cpu.FILTERS, Cpu.PREFETCH, Cpu.DYNAMIC)

    def suspects(self, failure: str) -> tuple[str, ...]:
        return pointed_at(failure, CPU_SUSPECTS, CPU_TEXTS)


class ConvolutionCuda:
    """A convolution for one GPU; a Composer."""

    def __init__(self, layer: Convolution, subject: Subject) -> None:
        """Take a recognised convolution.

        Raises:
            NotCovered: not even the smallest tile fits shared memory.
        """
        self.layer, self._subject = layer, subject
        emit_cuda.tiling_of(layer, frozenset(), subject.device)

    @property
    def texts(self) -> Mapping[str, Text]:
        return GPU_TEXTS

    @property
    def conflicts(self) -> tuple[Composition, ...]:
        """Return the two tensor-core instructions: one kernel has one of them."""
        return (frozenset({Gpu.MMA, Gpu.WGMMA}),)

    def applicable(self) -> tuple[str, ...]:
        layer, subject = self.layer, self._subject
        outputs = tuple(s.dtype for s in subject.description.signature.with_role(Role.OUTPUT))
        arch = subject.device.arch
        may_round = has_reduced_products(arch) and allows_tf32(subject.tolerance, (layer.x.dtype,), outputs)
        tests = {
            Gpu.MMA: may_round and self._fits({Gpu.MMA}),
            Gpu.WGMMA: may_round and has_wgmma(arch) and self._fits({Gpu.WGMMA}),
            Gpu.POOL: layer.pool is not None and self._fits({Gpu.POOL}),
            Gpu.RESIDENT: self._fits({Gpu.RESIDENT}),
            Gpu.ASYNC: has_async_copies(arch) and layer.x.dtype == "float32",
            Gpu.VECTOR: emit_cuda.can_vectorise(layer, is_pooled=False)
            and (layer.pool is None or emit_cuda.can_vectorise(layer, is_pooled=True)),
        }
        return tuple(s for s in GPU_TEXTS if tests[Gpu(s)])

    def _fits(self, structures: set[Gpu]) -> bool:
        try:
            emit_cuda.tiling_of(self.layer, frozenset(structures), self._subject.device)
        except NotCovered:
            return False
        return True

    def base(self) -> Composition:
        """Return what hardly ever loses: tensor cores where the tolerance has them, wide copies, a pool in the tile."""
        usable = self.applicable()
        unit = Gpu.WGMMA if Gpu.WGMMA in usable else Gpu.MMA
        return frozenset({unit, Gpu.VECTOR, Gpu.POOL}) & frozenset(usable)

    def expected_gain(self, structure: str) -> float:
        """Return the gain of the tensor cores by their arithmetic, of what refines them as one H200 showed it.

        There, the first convolution of AlexNet in TF32, with and without ReLU and pool, took three quarters of the
        time with warpgroup instructions. Copies ahead and resident weights saved a sixth together on mma.sync, and up
        to a tenth on top of warpgroups.
        """
        gains = {
            Gpu.MMA: 3.0,
            Gpu.WGMMA: 3.9,
            Gpu.POOL: 1 + _stored_share(self.layer, self._subject, flops_per_byte=30),
            Gpu.RESIDENT: 1.05,
            Gpu.ASYNC: 1.06,
            Gpu.VECTOR: 1.05,
        }
        return within_roofline(gains[Gpu(structure)], self._subject)

    def emit(self, composition: Composition, variation: int) -> str:
        """Return a whole source; what does not fit together gives way, and the header names what stayed."""
        kept = set(composition)
        for structure in (Gpu.RESIDENT, Gpu.ASYNC, Gpu.POOL, Gpu.VECTOR):
            if not self._fits({Gpu(s) for s in kept}):
                kept.discard(structure)
        header = header_line(self, kept)
        signature, device = self._subject.description.signature, self._subject.device
        return emit_cuda.emit(self.layer, signature, frozenset(kept), header, device=device, variation=variation)

    def tunable(self) -> Composition:
        """Return all structures: each kernel's tile may start elsewhere."""
        return frozenset(GPU_TEXTS)

    def varying(self) -> tuple[str, ...]:
        return (Gpu.ASYNC, Gpu.VECTOR, Gpu.RESIDENT)

    def suspects(self, failure: str) -> tuple[str, ...]:
        return pointed_at(failure, GPU_SUSPECTS, GPU_TEXTS)


def _stored_share(layer: Convolution, subject: Subject, *, flops_per_byte: int) -> float:
    """Return the time of writing and reading the convolution's output over that of its arithmetic, at most 1."""
    stored = 8 * layer.images * layer.filters * layer.out_size[0] * layer.out_size[1]
    return min(1.0, stored * flops_per_byte / max(layer.flops, 1))
