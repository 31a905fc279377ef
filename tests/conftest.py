"""What tests of several rooms share: one torch extension, since stock torch headers take half a minute to compile."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from ridgeline.tools.build.compiler import Compiler
from ridgeline.tools.engine import CompileTask
from ridgeline.tools.records.problem import ArgSpec, DescribedTarget, Device, Signature
from ridgeline.tools.records.vocabulary import ArgKind, DeviceKind, Interface, PrecisionClass, Role, Status
from ridgeline.tools.sandbox.sandbox import Sandbox, probe_sandbox
from tests.candidates import candidate_of
from tests.descriptions import description_of

ROWS, COLS = 4, 8


def _arguments() -> Signature:
    """Return the extension's arguments; it reads every size from its tensors."""
    x = ArgSpec(name="x", role=Role.INPUT, shape=(ROWS, COLS), strides=(COLS, 1))
    mode = ArgSpec(name="mode", role=Role.INPUT, kind=ArgKind.SCALAR, dtype="int64", value=0)
    weight = ArgSpec(name="weight", role=Role.PARAMETER, shape=(COLS,), strides=(1,), source="weight")
    return Signature(args=(x, mode, weight, replace(x, name="out", role=Role.OUTPUT)))


@pytest.fixture(scope="session")
def torch_extension(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library of cheats/torch_extension.cpp: `forward(x, mode, weight)`."""
    device = Device(kind=DeviceKind.CPU, name="t", arch="t", uuid="cpu", cores=2, memory_bytes=1 << 30, cache_bytes=1)
    problem = DescribedTarget(
        name="t",
        reference_source="",
        interface=Interface.TORCH,
        tolerance=PrecisionClass.FP32,
        device=device,
        description=description_of(_arguments()),
    )
    source = (Path(__file__).parent / "cheats" / "torch_extension.cpp").read_text()
    candidate = candidate_of(source, interface="torch")
    compiler = Compiler(Sandbox(probe_sandbox().tier), tmp_path_factory.mktemp("torch-extension"), device)
    with asyncio.Runner() as runner:
        (build,) = runner.run(compiler.compile_batch([CompileTask(problem=problem, candidate=candidate)]))
    assert build.status is Status.OK, build.log
    assert build.library_path is not None
    return Path(build.library_path)
