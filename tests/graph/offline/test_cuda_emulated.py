"""CUDA kernels of the row-wise family on an emulated GPU of three multiprocessors: they compute what references do."""

import dataclasses

import pytest

from ridgeline.graph.offline.cuda_structures import CudaStructure as S
from ridgeline.graph.offline.emit_cuda import emit

from .cuda_emulation import on_cpu
from .subjects import HOPPER

SMALL = dataclasses.replace(HOPPER, cores=3)
COMPOSITIONS = (
    {S.WARP, S.REGISTERS, S.VECTOR, S.ONLINE, S.MOMENTS, S.FAST},
    {S.CLUSTER, S.REGISTERS, S.ASYNC, S.VECTOR},
    {S.GRID, S.SHARED, S.MOMENTS},
    {S.SPLIT, S.VECTOR, S.ONLINE},
)
"""One for each way of sharing a row; the GPU tests try them all."""


CASES = [("swiglu", 2), *(pytest.param(*c, marks=pytest.mark.slow) for c in [("mean_pool", 4), ("masked_softmax", 2)])]


@pytest.mark.timeout(120)
@pytest.mark.parametrize(("name", "count"), CASES)
def test_emulated_kernels_are_correct(bench, references, name, count):
    reference = references[name]
    program, signature = reference.program, reference.description.signature
    bench.check(reference, [on_cpu(emit(program, signature, frozenset(c), SMALL)) for c in COMPOSITIONS[:count]])
