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
from ridgeline.tools.judge.messages import Request
from ridgeline.tools.judge.process import JudgeProcess
from ridgeline.tools.measure.block_plan import LEAST_CALLS
from ridgeline.tools.measure.statistics import percentile
from ridgeline.tools.measure.timed_device import TIMED_DEVICES
from ridgeline.tools.records.problem import Device
from ridgeline.tools.runner.failures import RunnerFailure
from ridgeline.tools.runner.process import RunnerProcess
from ridgeline.tools.runner.start import RunnerPlan
from ridgeline.tools.sandbox.sandbox import Sandbox


def nothing_library(cache_dir: Path, device: Device) -> Path:
    """Return the empty library for this kind of device, compiled once.

    Raises:
        DeviceError: the compiler is missing or fails.
        StorageError: `cache_dir` cannot be written.
    """
    blocks = TIMED_DEVICES[device.kind].empty_blocks
    flags = (*blocks.flags, *architecture_flags(device))
    digest = hashlib.sha256(blocks.source.read_bytes() + " ".join(flags).encode()).hexdigest()[:16]
    library = cache_dir / "host" / f"nothing-{digest}" / "kernel.so"
    if not library.is_file():
        compiler = find_toolchain(device.kind).compiler
        build_trusted(library, [str(compiler), *flags, str(blocks.source)], what="an empty library")
    return library


def usual_request_s(sandbox: Sandbox, plan: RunnerPlan, judge: JudgeProcess) -> float:
    """Return the seconds that a block's request usually takes beside the work that it asks for.

    A block's request comes right after the judge was at work; on a GPU, which then changes over to a process whose
    caches have gone cold, each sample follows the same work as a block. The plan names the empty library.

    Raises:
        EngineError: the runner failed, which no candidate can cause.
    """
    blocks = TIMED_DEVICES[judge.device_kind].empty_blocks
    try:
        with RunnerProcess(sandbox, plan, judge.problem) as runner:
            costs = [_block_s(runner, judge, blocks.work) for _ in range(blocks.samples)]
            return percentile(costs, blocks.percent)
    except RunnerFailure as failure:
        raise EngineError(f"the cost of a request could not be measured: {failure}") from failure


def _block_s(runner: RunnerProcess, judge: JudgeProcess, work: Request[Any]) -> float:
    """Time an empty block after the same steps as a real one: see benchmark.py."""
    runner.stop()
    judge.ask(work)
    judge.stop()
    return runner.loop(range(LEAST_CALLS)).parent_s


def empty_plan(plan: RunnerPlan, library: Path) -> RunnerPlan:
    """Return a runner's plan with the empty library in the candidate's place."""
    confined = replace(plan.confined, readable=(*plan.confined.readable, library.parent))
    return replace(plan, confined=confined, library=library)
