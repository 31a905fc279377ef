"""The parent's handles on its two children leave nothing behind when one cannot be started."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ridgeline.tools.engine import ProblemOnDevice
from ridgeline.tools.errors import EngineError
from ridgeline.tools.hardware import detect_device
from ridgeline.tools.judge_process import JudgeProcess, LoadedProblem
from ridgeline.tools.records import ArgSpec, Description, Role, Signature
from ridgeline.tools.runner_process import Place, RunnerPlan, RunnerProcess, describe_offset
from ridgeline.tools.sandbox import Confined, Sandbox


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def children() -> str:
    return Path(f"/proc/self/task/{os.getpid()}/children").read_text()


def test_runner_that_cannot_start_leaves_no_descriptor(sandbox: Sandbox, tmp_path: Path) -> None:
    description = Description(
        signature=Signature(args=()),
        reference_graph=None,
        compulsory_bytes=0,
        flops=0,
        reference_sha256="",
        torch_version="2",
    )
    problem = LoadedProblem(
        description=description, n_sets=3, regions=(), places=(), trials=(), degenerate_code="", degenerate_reason=""
    )
    confined = Confined(command=("/no/such/program",))
    plan = RunnerPlan(confined=confined, library=tmp_path / "kernel.so", workspace_bytes=0, call_timeout_s=1.0)
    before = open_descriptors()
    for _ in range(3):
        with pytest.raises(EngineError):
            RunnerProcess(sandbox, plan, problem)
    assert open_descriptors() == before


@pytest.mark.parametrize("name", ["measurement_cores", "_environment"])
def test_judge_that_cannot_start_leaves_no_descriptor_and_no_process(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(22, "refused")

    monkeypatch.setattr(f"ridgeline.tools.judge_process.{name}", refuse)
    problem = ProblemOnDevice(
        name="p", reference_source="", interface="c", tolerance="fp32", device=detect_device("cpu")
    )
    before, born_before = open_descriptors(), children()
    with pytest.raises(OSError, match="refused"):
        JudgeProcess(problem, b"secret", tmp_path)
    assert (open_descriptors(), children()) == (before, born_before)


def test_offset_in_a_tensor_of_eight_bit_floats_is_placed_by_its_size() -> None:
    spec = ArgSpec(name="x", role=Role.INPUT, dtype="float8_e4m3fn", shape=(64,), strides=(1,))
    places = [Place(spec=spec, region=0, offset=0, set_stride=4096)]
    assert describe_offset(places, 70, 4096) == "7 bytes past the end of `x`"
