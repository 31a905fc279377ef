"""The profiler on real shared objects, built here from trusted sources and looked at without loading them."""

import asyncio
import platform
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from tests.candidates import candidate_of
from tests.descriptions import description_of

from ridgeline.tools.build.compiler import Compiler
from ridgeline.tools.engine import CompileTask
from ridgeline.tools.errors import SandboxError
from ridgeline.tools.machine.devices import detect_device
from ridgeline.tools.profile.profiler import profile_candidate
from ridgeline.tools.records.baselines import Floor
from ridgeline.tools.records.problem import ArgSpec, DescribedTarget, Description, Signature
from ridgeline.tools.records.results import Build, Profile, Timing
from ridgeline.tools.records.vocabulary import DeviceKind, Interface, PrecisionClass, ReasonCode, Role, Status
from ridgeline.tools.runner.plan import runner_plan
from ridgeline.tools.sandbox.sandbox import Sandbox, probe_sandbox

pytestmark = [
    pytest.mark.sandboxed,
    pytest.mark.skipif(
        platform.machine() != "x86_64" or not shutil.which("objdump") or not shutil.which("g++"),
        reason="needs x86-64, g++ and objdump",
    ),
]

STAGED = """size_t workspace_bytes() { return 1 << 16; }
void run(const float* __restrict__ x, float* __restrict__ out, void* workspace) {
  RIDGELINE_STAGE(scan);
  float a = 0;
  for (int i = 0; i < 4096; ++i) {
    a = a / (x[i] + a);
    out[i] = a;
  }
  RIDGELINE_STAGE(clear);
  __builtin_memset(workspace, 0, 1 << 16);
  RIDGELINE_STAGE(scale);
#pragma omp parallel for
  for (int i = 0; i < 4096; ++i) out[i] = out[i] * 2 + x[i];
}
"""
STAGED_DESCRIPTION = description_of(
    Signature(
        args=(
            ArgSpec(name="x", role=Role.INPUT, shape=(4096,), strides=(1,)),
            ArgSpec(name="out", role=Role.OUTPUT, shape=(4096,), strides=(1,)),
        )
    ),
    compulsory_bytes=32768,
)
FLAGS = ("-O3", "-march=x86-64-v3", "-ffast-math", "-fno-finite-math-only", "-shared", "-fPIC")
SOURCE = """extern "C" void run(const float* x, float* out) {
    for (int i = 0; i < 4096; ++i) out[i] = 2 * x[i] + x[i] * x[i];
}
"""
DESCRIPTION = Description(
    signature=Signature(args=(ArgSpec(name="x", role=Role.INPUT, shape=(4096,), strides=(1,)),)),
    reference_graph=None,
    compulsory_bytes=32768,
    flops=12288,
    reference_sha256="",
    torch_version="",
)
FLOOR = Floor(floor_ms=0.5, compute_floor_ms=0.1, bound="memory", bandwidth_gbps=20.0, gflops=100.0)
TIMING = Timing(status=Status.OK, median_ms=1.0, samples=10)


@pytest.fixture(scope="module")
def sandbox() -> Sandbox:
    try:
        return Sandbox(probe_sandbox().tier)
    except SandboxError as missing:
        pytest.skip(str(missing))


def build(folder: Path) -> Path:
    source, library = folder / "plain.cpp", folder / "plain.so"
    source.write_text(SOURCE)
    subprocess.run(["g++", *FLAGS, "-o", str(library), str(source)], check=True)
    return library


def test_profile_gives_rates_and_fraction_of_the_floor(tmp_path: Path, sandbox: Sandbox) -> None:
    profile = profile_candidate(
        device=detect_device("cpu"),
        description=DESCRIPTION,
        floor=FLOOR,
        timing=TIMING,
        library=build(tmp_path),
        sandbox=sandbox,
    )
    assert profile.fraction_of_floor == pytest.approx(0.5)
    assert profile.achieved_gbps == pytest.approx(32768 / 1e-3 / 1e9)
    assert profile.achieved_gflops == pytest.approx(12288 / 1e-3 / 1e9)
    assert profile.details["widest_vector_bits"] == 256
    assert Profile.from_json(profile.to_json()) == profile


def test_file_that_is_no_object_gives_a_note_instead_of_an_error(tmp_path: Path, sandbox: Sandbox) -> None:
    broken = tmp_path / "kernel.so"
    broken.write_bytes(b"\x7fELF" + b"\0" * 100)
    profile = profile_candidate(
        device=detect_device("cpu"), description=DESCRIPTION, floor=None, timing=None, library=broken, sandbox=sandbox
    )
    assert any("objdump failed" in note for note in profile.notes)
    assert profile.fraction_of_floor is None


def test_allocation_in_every_call_is_named() -> None:
    gpu = replace(detect_device("cpu"), kind=DeviceKind.CUDA)
    profile = profile_candidate(
        device=gpu,
        description=DESCRIPTION,
        floor=FLOOR,
        timing=replace(TIMING, page_faults_per_call=300.0),
        library=None,
        sandbox=None,  # type: ignore[arg-type]  # nothing is disassembled for a GPU
    )
    assert any("300 page faults" in note for note in profile.notes)
    assert "no shared object to look at" in profile.notes


def test_paragraph_holds_the_time_the_stages_and_the_line_of_a_scalar_loop(
    open_path: Path, hosts: Path, sandbox: Sandbox
) -> None:
    shutil.copytree(hosts, open_path / "host")
    device = detect_device("cpu")
    problem = DescribedTarget(
        name="t",
        reference_source="",
        interface=Interface.C,
        tolerance=PrecisionClass.FP32,
        device=device,
        description=STAGED_DESCRIPTION,
    )
    candidate = candidate_of(STAGED)
    compiler = Compiler(sandbox, open_path, device)
    tasks = [CompileTask(problem=problem, candidate=candidate, profiled=profiled) for profiled in (False, True)]
    with asyncio.Runner() as loop:
        judged, clocked = loop.run(compiler.compile_batch(tasks))
    assert judged.status is clocked.status is Status.OK, clocked.log
    profile = profile_candidate(
        device=device,
        description=STAGED_DESCRIPTION,
        floor=replace(FLOOR, floor_ms=0.001),
        timing=replace(TIMING, median_ms=0.02),
        library=Path(judged.library_path or ""),
        sandbox=sandbox,
        source=STAGED,
        profile_build=clocked,
        clocked=runner_plan(problem, clocked, open_path).confined,
    )
    assert [stage.name for stage in profile.stages] == ["scan", "clear", "scale"]
    assert "20 x the memory floor" in profile.paragraph
    assert profile.median_ms == 0.02
    assert "Its stages: " in profile.paragraph
    assert "line 6 (`a = a / (x[i] + a);`);" in profile.paragraph  # and no line beside a clock, which is scalar itself
    assert "scalar_loops" in profile.details and "scalar_loops" not in profile.paragraph


def test_build_with_clocks_that_fails_is_a_note(tmp_path: Path, sandbox: Sandbox) -> None:
    failed = Build(
        key="", status=Status.COMPILE_ERROR, reason_code=ReasonCode.COMPILER_FAILED, reason="jump to case label"
    )
    profile = profile_candidate(
        device=detect_device("cpu"),
        description=DESCRIPTION,
        floor=FLOOR,
        timing=TIMING,
        library=build(tmp_path),
        sandbox=sandbox,
        source="RIDGELINE_STAGE(a);",
        profile_build=failed,
    )
    assert profile.stages == ()
    assert "The stages are unknown: the build with clocks failed (jump to case label)." in profile.paragraph
