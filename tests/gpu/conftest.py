"""The problem of the planted bottlenecks and mistakes: out = 2 x on (1024, 1024), and how its candidates are built."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from ridgeline.tools.build.flags import base_flags, diagnostic_flags, link_flags
from ridgeline.tools.build.interfaces import problem_header
from ridgeline.tools.build.toolchain import find_toolchain
from ridgeline.tools.errors import DeviceError
from ridgeline.tools.machine.devices import detect_device
from ridgeline.tools.records.problem import ArgSpec, Description, Device, Signature, Target
from ridgeline.tools.records.results import Build
from ridgeline.tools.records.vocabulary import DeviceKind, Interface, PrecisionClass, Role, Status
from ridgeline.tools.runner.plan import runner_plan
from ridgeline.tools.sandbox.rules import Confined
from ridgeline.tools.sandbox.sandbox import Sandbox, probe_sandbox

from .bench import HOPPER, Bench, opened

SHAPE = (1024, 1024)
SIGNATURE = Signature(
    args=(
        ArgSpec(name="x", role=Role.INPUT, shape=SHAPE, strides=(1024, 1)),
        ArgSpec(name="out", role=Role.OUTPUT, shape=SHAPE, strides=(1024, 1)),
    )
)
DESCRIPTION = Description(
    signature=SIGNATURE,
    reference_graph=None,
    compulsory_bytes=2 * 4 * 1024 * 1024,
    flops=1024 * 1024,
    reference_sha256="",
    torch_version="",
)


@dataclass(frozen=True)
class Built:
    library: Path
    log: str


@pytest.fixture(scope="session")
def sandbox() -> Sandbox:
    return Sandbox(probe_sandbox().tier)


@pytest.fixture(scope="session")
def nvcc() -> str:
    try:
        return str(find_toolchain(DeviceKind.CUDA).compiler)
    except DeviceError as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def gpu() -> Device:
    try:
        return detect_device("cuda")
    except DeviceError as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def built(nvcc: str, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Built]:
    """Return how a planted source is built: once for an architecture, with the flags of every candidate."""
    folder = opened(tmp_path_factory.mktemp("gpu"))
    known: dict[tuple[str, str], Built] = {}

    def build(name: str, device: Device = HOPPER) -> Built:
        if (name, device.arch) not in known:
            place = folder / f"{name}-{device.arch}"
            place.mkdir()
            (place / "problem.h").write_text(problem_header(SIGNATURE, DeviceKind.CUDA))
            shutil.copyfile(Path(__file__).parent / "sources" / f"{name}.cu", place / "kernel.cu")
            flags = (*base_flags(device), *link_flags(DeviceKind.CUDA), *diagnostic_flags(DeviceKind.CUDA))
            command = [nvcc, *flags, "-I.", "-include", "problem.h", "kernel.cu", "-o", "kernel.so"]
            done = subprocess.run(command, cwd=place, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
            known[name, device.arch] = Built(place / "kernel.so", done.stdout + done.stderr)
        return known[name, device.arch]

    return build


@pytest.fixture(scope="session")
def runner(gpu: Device, tmp_path_factory: pytest.TempPathFactory) -> Confined:
    """Return how a candidate's runner is confined here."""
    folder = opened(tmp_path_factory.mktemp("host"))
    problem = Target(
        name="planted", reference_source="", interface=Interface.C, tolerance=PrecisionClass.FP32, device=gpu
    )
    build = Build(key="planted", status=Status.OK, library_path=str(folder / "kernel.so"))
    return runner_plan(problem, build, folder).confined


@pytest.fixture(scope="session")
def bench(gpu: Device, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    made = Bench(gpu, opened(tmp_path_factory.mktemp("gpu-cache")))
    yield made
    made.evaluator.close()
