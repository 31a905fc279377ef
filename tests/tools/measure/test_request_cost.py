"""What a request costs on a CPU, measured as the evaluator does."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from ridgeline.tools.judge.process import JudgeProcess
from ridgeline.tools.machine.devices import detect_device
from ridgeline.tools.measure.request_cost import (
    MANY_CALLS,
    LoopCost,
    empty_plan,
    nothing_library,
    usual_cost,
    usual_ticket_s,
)
from ridgeline.tools.records.problem import Target
from ridgeline.tools.records.results import Build
from ridgeline.tools.records.vocabulary import DeviceKind, Interface, PrecisionClass, Status
from ridgeline.tools.runner.loop_time import LoopTime
from ridgeline.tools.runner.plan import runner_plan
from ridgeline.tools.sandbox.sandbox import Sandbox

pytestmark = [pytest.mark.sandboxed, pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")]

REFERENCE = """import torch
from torch import nn
class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)
def get_inputs():
    return [torch.randn(64, 64)]
def get_init_inputs():
    return []
"""


@pytest.mark.timing
@pytest.mark.usefixtures("warm_judge")
@pytest.mark.parametrize("interface", [Interface.C, Interface.TORCH])
def test_a_request_costs_something_and_less_than_the_start_of_python(
    sandbox: Sandbox, tmp_path: Path, hosts: Path, interface: Interface
) -> None:
    shutil.copytree(hosts, tmp_path / "host")
    device = detect_device("cpu")
    problem = Target(
        name="p", reference_source=REFERENCE, interface=interface, tolerance=PrecisionClass.FP32, device=device
    )
    build = Build(key="nothing", status=Status.OK, library_path=str(tmp_path / "builds" / "never_built.so"))
    judge = JudgeProcess(problem, os.urandom(16), tmp_path)
    try:
        described = problem.described(judge.problem.description)
        plan = empty_plan(runner_plan(described, build, tmp_path), tmp_path, device)
        was_true = any(_is_believable(usual_cost(sandbox, plan, judge)) for _ in range(3))
    finally:
        judge.close()
    assert was_true, "not once in three times"  # a busy machine makes a measurement too long now and then


def _is_believable(cost: LoopCost) -> bool:
    """Say whether a request costs something and less than the start of Python, and a ticket less: it is one read of a pipe."""
    assert cost.request_s > 0
    assert cost.ticket_s > 0
    return cost.request_s < min(_start_of_python_s() for _ in range(5)) and cost.ticket_s < cost.request_s


class Judge:
    """A judge that is asked for nothing but fresh contents."""

    def __init__(self, kind: DeviceKind) -> None:
        self.device_kind = kind
        self.asked: list[str] = []

    def ask(self, request: object) -> None:
        self.asked.append(type(request).__name__)

    def stop(self) -> None:
        self.asked.append("stop")


def loop_with(delays_s: Iterator[float], asked: list[str]) -> Callable[[Sequence[int]], LoopTime]:
    """Return a loop whose own clock says so many seconds a call."""

    def loop(sets: Sequence[int]) -> LoopTime:
        asked.append("loop")
        return LoopTime(parent_s=1.0, own_s=len(sets) * next(delays_s))

    return loop


def test_a_ticket_is_weighed_by_the_median_of_loops_on_fresh_contents() -> None:
    judge = Judge(DeviceKind.CPU)
    delays = iter([9.0, 3e-7, 8e-7, 4e-7, 5e-7, 6e-7, 7e-7, 2e-7])  # the first one does not count
    assert usual_ticket_s(loop_with(delays, judge.asked), judge, MANY_CALLS) == pytest.approx(5e-7)  # type: ignore[arg-type]
    assert judge.asked == ["loop", *["Renew", "stop", "loop"] * 7]


@pytest.mark.parametrize(("kind", "calls"), [(DeviceKind.CUDA, 500), (DeviceKind.CPU, MANY_CALLS - 1)])
def test_a_ticket_is_free_where_a_gpu_works_meanwhile_and_beside_long_calls(kind: DeviceKind, calls: int) -> None:
    judge = Judge(kind)
    assert usual_ticket_s(loop_with(iter([]), judge.asked), judge, calls) == 0  # type: ignore[arg-type]
    assert judge.asked == []


def _start_of_python_s() -> float:
    """Return what the start and end of Python take, 10 to 20 ms: a request takes a hundredth of that, alone."""
    began = time.monotonic()
    subprocess.run([sys.executable, "-I", "-c", ""], check=True)
    return time.monotonic() - began


def test_the_empty_library_is_built_once_and_may_be_read_by_its_runner(tmp_path: Path) -> None:
    device = detect_device("cpu")
    library = nothing_library(tmp_path, device)
    built = library.stat().st_mtime_ns
    assert nothing_library(tmp_path, device) == library
    assert library.stat().st_mtime_ns == built
    library.write_bytes(library.read_bytes()[:1000])  # as after the disk was full
    assert nothing_library(tmp_path, device).stat().st_size > 1000
    problem = Target(
        name="p", reference_source=REFERENCE, interface=Interface.C, tolerance=PrecisionClass.FP32, device=device
    )
    elsewhere = Build(key="k", status=Status.OK, library_path=str(tmp_path / "builds" / "kernel.so"))
    plan = empty_plan(runner_plan(problem, elsewhere, tmp_path), tmp_path, device)
    assert plan.library == library
    assert library.parent in plan.confined.readable
