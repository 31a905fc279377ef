"""Kernels composed for other GPUs than Hopper: only what each has is proposed, what is emitted fits, and nvcc takes it."""

import asyncio
import dataclasses
import re
import shutil

import pytest
from tests.candidates import candidate_of
from tests.graph.offline.rowwise.test_cuda import resized
from tests.graph.offline.subjects import HOPPER, subject_of

from ridgeline.graph.offline.composer import compatible
from ridgeline.graph.offline.convolution.cuda.composer import ConvolutionCuda
from ridgeline.graph.offline.convolution.cuda.structures import Structure as ConvolutionStructure
from ridgeline.graph.offline.matmul.cuda.composer import MatmulCuda
from ridgeline.graph.offline.matmul.cuda.structures import Structure as MatmulStructure
from ridgeline.graph.offline.rowwise.cuda.composer import RowwiseCuda
from ridgeline.graph.offline.rowwise.cuda.structures import Structure as RowwiseStructure
from ridgeline.graph.search.sources.tuning import parse_tunables, with_values
from ridgeline.tools.build.compiler import Compiler
from ridgeline.tools.engine import CompileTask
from ridgeline.tools.machine.occupancy import block_shared_bytes
from ridgeline.tools.records.problem import DescribedTarget
from ridgeline.tools.records.vocabulary import Interface, PrecisionClass

needs_nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")
CORES = {"sm_75": 40, "sm_80": 108, "sm_86": 84, "sm_89": 128, "sm_90a": 132, "sm_100a": 148, "sm_120a": 170}
FAMILIES = ("rows", "fp32", "tf32", "fp16", "conv")
OLD_AND_NEW = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_100a", "sm_120a")


def gpu_of(arch):
    return dataclasses.replace(HOPPER, name=arch, arch=arch, cores=CORES[arch])


@pytest.fixture
def kinds(references, products, convolutions):
    """Return how each family's composer is made for an architecture, with its reference."""
    long_rows = resized(references["softmax"], 4096, 65536)
    return {
        "rows": (long_rows, lambda d: RowwiseCuda(subject_of(long_rows, d, "fp32"))),
        "fp32": (products["linear"], lambda d: MatmulCuda(subject_of(products["linear"], d, "fp32"))),
        "tf32": (products["square"], lambda d: MatmulCuda(subject_of(products["square"], d, "tf32"))),
        "fp16": (products["fp16"], lambda d: MatmulCuda(subject_of(products["fp16"], d, "fp16"))),
        "conv": (
            convolutions["alexnet_relu_pool"],
            lambda d: ConvolutionCuda(subject_of(convolutions["alexnet_relu_pool"], d, "tf32")),
        ),
    }


def fullest(composer, without=()):
    """Return as many of the structures as go together."""
    chosen = frozenset()
    for structure in composer.applicable():
        if structure not in without and compatible(composer, chosen | {structure}):
            chosen |= {structure}
    return chosen


@pytest.mark.parametrize("arch", CORES)
def test_only_what_the_architecture_has_is_proposed(kinds, arch):
    number = int(re.sub(r"\D", "", arch))
    usable = {name: set(make(gpu_of(arch)).applicable()) for name, (_, make) in kinds.items()}
    for name in ("tf32", "fp16"):
        assert (MatmulStructure.WARPGROUP in usable[name]) is (arch == "sm_90a")
        assert (MatmulStructure.TENSOR in usable[name]) is (number >= 80)
        assert MatmulStructure.CLUSTER not in usable[name] or arch == "sm_90a"
    assert (ConvolutionStructure.WGMMA in usable["conv"]) is (arch == "sm_90a")
    assert ({ConvolutionStructure.MMA, ConvolutionStructure.ASYNC} <= usable["conv"]) is (number >= 80)
    assert (MatmulStructure.ASYNC in usable["fp32"]) is (number >= 80)
    assert (RowwiseStructure.CLUSTER in usable["rows"]) is (RowwiseStructure.ASYNC in usable["rows"]) is (number >= 90)


@pytest.mark.parametrize("arch", CORES)
def test_a_source_is_written_for_the_shared_memory_of_its_gpu(kinds, arch):
    for name in ("fp32", "conv"):
        composer = kinds[name][1](gpu_of(arch))
        source = composer.write_source(
            fullest(composer, without={MatmulStructure.WARPGROUP, ConvolutionStructure.WGMMA}), 0
        )
        assert f"constexpr int SHARED_LIMIT = {block_shared_bytes(arch)};" in source


def test_rows_that_hopper_keeps_in_shared_memory_are_shared_by_more_blocks_elsewhere(references):
    """32768 floats are 128 KiB: one block of Hopper or Ampere holds them, one of Ada only a part of them."""
    long_rows = resized(references["softmax"], 4096, 32768)
    parts = {}
    for arch in ("sm_90a", "sm_80", "sm_89"):
        source = RowwiseCuda(subject_of(long_rows, gpu_of(arch), "fp32")).write_source(
            frozenset({RowwiseStructure.SHARED}), 0
        )
        parts[arch] = "MULTIPROCESSORS" if "MULTIPROCESSORS *" in source else "1" if "PARTS = 1;" in source else "?"
    assert parts == {"sm_90a": "1", "sm_80": "1", "sm_89": "MULTIPROCESSORS"}


def sources_for(composer):
    """Return a base, a fullest and their other variations, and the largest point of each one's tunables."""
    without = {MatmulStructure.SPLIT, MatmulStructure.WARPGROUP, ConvolutionStructure.WGMMA}
    bases = [composer.base(), fullest(composer, without)]
    made = [composer.write_source(c, v) for v, c in enumerate(bases)] + [
        composer.write_source(bases[1] | composer.base(), 2)
    ]
    largest = {t.name: max(t.values) for t in parse_tunables(made[1]) if t.name in {"BN", "BK", "MAX_STAGES"}}
    return [*made, with_values(made[1], largest)] if largest else made


@needs_nvcc
@pytest.mark.parametrize(
    ("arch", "names"),
    [
        pytest.param("sm_86", ("fp32",), marks=pytest.mark.slow),
        *(pytest.param(arch, FAMILIES, marks=pytest.mark.slow) for arch in OLD_AND_NEW),
    ],
)
def test_nvcc_takes_what_is_composed_for_the_architecture(bench, kinds, arch, names):
    gpu, tasks = gpu_of(arch), {}
    for name in names:
        reference, make = kinds[name]
        problem = DescribedTarget(
            name=name, reference_source="", interface=Interface.C, tolerance=PrecisionClass.TF32, device=gpu,
            description=reference.description,
        )  # fmt: skip
        for number, source in enumerate(sources_for(make(gpu))):
            candidate = candidate_of(source, name=f"{name}{number}", language="cu")
            tasks[candidate.id] = CompileTask(problem=problem, candidate=candidate)
    builds = asyncio.run(Compiler(bench.sandbox, bench.folder / arch, gpu).compile_batch(list(tasks.values())))
    refused = {name: b.reason or b.log for name, b in zip(tasks, builds, strict=True) if not b.library_path}
    assert refused == {}


def test_without_asynchronous_copies_loads_are_still_wide(kinds):
    composer = kinds["fp32"][1](gpu_of("sm_75"))
    assert composer.base() <= {MatmulStructure.VECTOR}
