"""The cost of a request to a runner: the part of a timed block that is no kernel's time.

Waking the runner, reading the request and answering takes about 0.1 ms of the parent's clock. On a GPU, which changes
over from the judge's work to the runner's, it takes up to four times that. The cost is measured with an empty library
of Ridgeline's own in a runner of its own, so that no candidate has a say in what is taken off its time.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

from ridgeline.tools.build.flags import architecture_flags
from ridgeline.tools.build.toolchain import build_trusted, find_toolchain
from ridgeline.tools.errors import EngineError
from ridgeline.tools.judge.messages import Idle, Renew, Request
from ridgeline.tools.judge.process import JudgeProcess
from ridgeline.tools.measure.statistics import percentile
from ridgeline.tools.measure.timed_side import LEAST_CALLS
from ridgeline.tools.records.problem import Device
from ridgeline.tools.records.vocabulary import DeviceKind
from ridgeline.tools.runner.failures import RunnerFailure
from ridgeline.tools.runner.process import RunnerProcess
from ridgeline.tools.runner.start import RunnerPlan
from ridgeline.tools.sandbox.sandbox import Sandbox

SAMPLES = {DeviceKind.CPU: 40, DeviceKind.CUDA: 20}
PERCENT = {DeviceKind.CPU: 50, DeviceKind.CUDA: 75}
"""Percentile of the samples that is taken off. On a GPU they have two values, by whether the change of process falls into the
request (0.1 and 0.36 ms on an H200): below the upper one, half of the blocks would look slower than they are. The
difference is what a clock that lies can gain in a block."""
_WORK: dict[DeviceKind, Request[Any]] = {
    DeviceKind.CPU: Idle(),
    DeviceKind.CUDA: Renew(),
}  # a CPU takes half a second to renew all contents
_NATIVE = Path(__file__).parent / "native"
_SOURCES = {DeviceKind.CPU: _NATIVE / "nothing.cpp", DeviceKind.CUDA: _NATIVE / "nothing.cu"}
_FLAGS: dict[DeviceKind, tuple[str, ...]] = {
    DeviceKind.CPU: ("-std=c++17", "-O2", "-shared", "-fPIC"),
    DeviceKind.CUDA: ("-std=c++17", "-O2", "-shared", "-Xcompiler=-fPIC"),
}


def nothing_library(cache_dir: Path, device: Device) -> Path:
    """Return the empty library for this kind of device, compiled once.

    Raises:
        DeviceError: the compiler is missing or fails.
        StorageError: `cache_dir` cannot be written.
    """
    source, flags = _SOURCES[device.kind], _FLAGS[device.kind]
    if device.kind is DeviceKind.CUDA:
        flags = (*flags, *architecture_flags(device))
    digest = hashlib.sha256(source.read_bytes() + " ".join(flags).encode()).hexdigest()[:16]
    library = cache_dir / "host" / f"nothing-{digest}" / "kernel.so"
    if not library.is_file():
        compiler = find_toolchain(device.kind).compiler
        build_trusted(library, [str(compiler), *flags, str(source)], what="an empty library")
    return library


def usual_request_s(sandbox: Sandbox, plan: RunnerPlan, judge: JudgeProcess) -> float:
    """Return the seconds that a block's request usually takes beside the work that it asks for.

    A block's request comes right after the judge was at work; on a GPU, which then changes over to a process whose
    caches have gone cold, each sample follows the same work as a block. The plan names the empty library.

    Raises:
        EngineError: the runner failed, which no candidate can cause.
    """
    try:
        with RunnerProcess(sandbox, plan, judge.problem) as runner:
            costs = [_block_s(runner, judge) for _ in range(SAMPLES[judge.device_kind])]
            return percentile(costs, PERCENT[judge.device_kind])
    except RunnerFailure as failure:
        raise EngineError(f"the cost of a request could not be measured: {failure}") from failure


def _block_s(runner: RunnerProcess, judge: JudgeProcess) -> float:
    """Time an empty block after the same steps as a real one: see benchmark.py."""
    runner.stop()
    judge.ask(_WORK[judge.device_kind])
    judge.stop()
    return runner.loop(0, LEAST_CALLS).parent_s


def empty_plan(plan: RunnerPlan, library: Path) -> RunnerPlan:
    """Return a runner's plan with the empty library in the candidate's place."""
    confined = replace(plan.confined, readable=(*plan.confined.readable, library.parent))
    return replace(plan, confined=confined, library=library)
