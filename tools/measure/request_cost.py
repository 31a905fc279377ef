"""The cost of a request to a runner: the part of a timed block that is no kernel's time.

Waking the runner, reading the request and answering takes about 0.1 ms of the parent's clock. On a GPU, which changes
over from the judge's work to the runner's, it takes up to four times that. The cost is measured in a runner of its own,
a native one with an empty library of Ridgeline's, a Python one without any, so that no candidate has a say in what is
taken off its time.
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import replace
from pathlib import Path

from ridgeline.tools.build.flags import architecture_flags
from ridgeline.tools.build.toolchain import build_trusted, find_toolchain
from ridgeline.tools.errors import EngineError
from ridgeline.tools.judge.messages import Renew
from ridgeline.tools.judge.process import JudgeProcess
from ridgeline.tools.measure.block_plan import LEAST_CALLS
from ridgeline.tools.measure.statistics import percentile
from ridgeline.tools.measure.timed_device import TIMED_DEVICES
from ridgeline.tools.records.problem import Device
from ridgeline.tools.runner.failures import RunnerFailure
from ridgeline.tools.runner.process import RunnerProcess
from ridgeline.tools.runner.start import RunnerPlan
from ridgeline.tools.sandbox.sandbox import Sandbox

_FIRST_ONES = 2  # samples that do not count: the runner does things for the first time
_SAMPLING_S = 1.0


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

    A block's request comes right after the judge has renewed all sets, which leaves the caches cold for whoever reads the
    request, and a GPU with the judge's process. So does each sample. Renewing sets of a gigabyte takes half a second:
    there are fewer samples then. The plan is an `empty_plan`.

    Raises:
        EngineError: the runner failed, which no candidate can cause.
    """
    blocks = TIMED_DEVICES[judge.device_kind].empty_blocks
    try:
        with RunnerProcess(sandbox, plan, judge.problem) as runner:
            for _ in range(_FIRST_ONES):
                _block_s(runner, judge)
            ends_at = time.monotonic() + _SAMPLING_S
            costs = [_block_s(runner, judge) for _ in range(blocks.fewest_samples)]
            while len(costs) < blocks.most_samples and time.monotonic() < ends_at:
                costs.append(_block_s(runner, judge))
            return percentile(costs, blocks.percent)
    except RunnerFailure as failure:
        raise EngineError(f"the cost of a request could not be measured: {failure}") from failure


def _block_s(runner: RunnerProcess, judge: JudgeProcess) -> float:
    """Time an empty block after the same steps as a real one: see benchmark.py."""
    runner.stop()
    judge.ask(Renew())
    judge.stop()
    return runner.loop(range(LEAST_CALLS)).parent_s


def empty_plan(plan: RunnerPlan, cache_dir: Path, device: Device) -> RunnerPlan:
    """Return a runner's plan with nothing in the candidate's place.

    Raises:
        DeviceError: the compiler of the empty library is missing or fails.
        StorageError: `cache_dir` cannot be written.
    """
    if plan.python is not None:
        setup = replace(plan.python.setup, module=None, does_nothing=True)
        return replace(plan, python=replace(plan.python, files=(), setup=setup))
    library = nothing_library(cache_dir, device)
    confined = replace(plan.confined, readable=(*plan.confined.readable, library.parent))
    return replace(plan, confined=confined, library=library)
