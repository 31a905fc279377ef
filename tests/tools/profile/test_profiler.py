"""The profiler on real shared objects, built here from trusted sources and looked at without loading them."""

import platform
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from ridgeline.tools.errors import SandboxError
from ridgeline.tools.machine.devices import detect_device
from ridgeline.tools.profile.profiler import profile_candidate
from ridgeline.tools.records.problem import ArgSpec, Description, Signature
from ridgeline.tools.records.results import Floor, Profile, Timing
from ridgeline.tools.records.vocabulary import DeviceKind, Role, Status
from ridgeline.tools.sandbox.sandbox import Sandbox, probe_sandbox

pytestmark = [
    pytest.mark.sandboxed,
    pytest.mark.skipif(
        platform.machine() != "x86_64" or not shutil.which("objdump") or not shutil.which("g++"),
        reason="needs x86-64, g++ and objdump",
    ),
]

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
