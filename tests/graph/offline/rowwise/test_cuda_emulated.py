"""CUDA kernels of the row-wise family on an emulated GPU of three multiprocessors: they compute what references do."""

import dataclasses
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.graph.offline.subjects import HOPPER, QUICK

from ridgeline.graph.offline.rowwise.cuda.source import write_source
from ridgeline.graph.offline.rowwise.cuda.structures import Structure

from .emulation import on_cpu

SMALL = dataclasses.replace(HOPPER, cores=3)
COMPOSITIONS = (
    {Structure.WARP, Structure.REGISTERS, Structure.VECTOR, Structure.ONLINE, Structure.MOMENTS, Structure.FAST},
    {Structure.CLUSTER, Structure.REGISTERS, Structure.ASYNC, Structure.VECTOR},
    {Structure.GRID, Structure.SHARED, Structure.MOMENTS},
    {Structure.SPLIT, Structure.VECTOR, Structure.ONLINE},
)
"""One for each way of sharing a row; the GPU tests try them all."""


CASES = [("swiglu", 2), *(pytest.param(*c, marks=pytest.mark.slow) for c in [("mean_pool", 4), ("masked_softmax", 2)])]


@pytest.mark.thorough
@pytest.mark.timeout(120)
@pytest.mark.parametrize(("name", "count"), CASES)
def test_emulated_kernels_are_correct(bench, references, name, count):
    reference = references[name]
    program, signature = reference.program, reference.description.signature
    sources = [on_cpu(write_source(program, signature, frozenset(c), SMALL)) for c in COMPOSITIONS[:count]]
    bench.check(reference, sources, QUICK)


TAKE_TURNS = """
int main() {
  static int met = 0;
  emulated_launch(1, 64, 0, 1, [] { ++met; __syncthreads(); if (met != 64) std::abort(); });
}
"""


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
def test_coroutines_take_turns_where_gxx_checks_jumps(tmp_path):
    source, program = tmp_path / "turns.cpp", tmp_path / "turns"
    source.write_text((Path(__file__).parent / "emulation.h").read_text() + TAKE_TURNS)
    flags = ["-std=c++20", "-O1", "-pthread", "-w", "-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2", "-include", "cstdint"]
    subprocess.run(["g++", *flags, str(source), "-o", str(program)], check=True)
    subprocess.run([str(program)], check=True)
