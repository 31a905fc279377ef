"""The cost of a block beside its calls: a request to a runner, and each call's ticket.

Waking the runner, reading the request and answering takes about 0.1 ms of the parent's clock. On a GPU, which changes
over from the judge's work to the runner's, it takes up to four times that. The cost is measured in a runner of its own,
a native one with an empty library of Ridgeline's, a Python one without any, so that no candidate has a say in what is
taken off its time.

A loop takes a ticket for each call, and a Python runner holds and notes its result: 0.3 to 1 us, which nobody's own loop
would take. On a GPU that happens while the GPU works, so nothing is taken off there.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from ridgeline.tools.build.flags import architecture_flags
from ridgeline.tools.build.toolchain import build_trusted, find_toolchain
from ridgeline.tools.errors import EngineError
from ridgeline.tools.judge.messages import Renew
from ridgeline.tools.judge.process import JudgeProcess
from ridgeline.tools.machine.programs import is_whole_program
from ridgeline.tools.measure.block_plan import LEAST_CALLS, most_calls_on
from ridgeline.tools.measure.room import with_room
from ridgeline.tools.measure.statistics import percentile
from ridgeline.tools.measure.timed_device import TIMED_DEVICES
from ridgeline.tools.records.problem import Device
from ridgeline.tools.runner.failures import RunnerFailure
from ridgeline.tools.runner.loop_time import LoopTime
from ridgeline.tools.runner.process import RunnerProcess
from ridgeline.tools.runner.start import RunnerPlan
from ridgeline.tools.sandbox.sandbox import Sandbox

_FIRST_ONES = 2  # samples that do not count: the runner does things for the first time
_SAMPLING_S = 1.0
_TICKET_SAMPLES = 7
MANY_CALLS = 32
"""In a block of fewer calls a ticket is less than a thousandth of a call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopCost:
    """The cost of a block beside its calls, in seconds."""

    request_s: float = 0.0  # of the block, usually: going on, reading the request, answering
    least_s: float = 0.0  # of the block, at least: see expect_consistent
    ticket_s: float = 0.0  # of each call: taking its ticket; in Python also holding and noting its result


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
    if not is_whole_program(library):
        compiler = find_toolchain(device.kind).compiler
        build_trusted(library, [str(compiler), *flags, str(blocks.source)], what="an empty library")
    return library


def usual_cost(sandbox: Sandbox, plan: RunnerPlan, judge: JudgeProcess) -> LoopCost:
    """Return what a block usually costs beside the work that its request asks for.

    A block's request comes right after the judge has renewed all sets, which leaves the caches cold for whoever reads the
    request, and a GPU with the judge's process. So does each sample. Renewing sets of a gigabyte takes half a second:
    there are fewer samples then. The plan is an `empty_plan`.

    Raises:
        EngineError: the runner failed, which no candidate can cause.
    """
    blocks = TIMED_DEVICES[judge.device_kind].empty_blocks
    try:
        with with_room(judge, lambda: RunnerProcess(sandbox, plan, judge.problem)) as runner:
            for _ in range(_FIRST_ONES):
                _block_s(runner, judge)
            ends_at = time.monotonic() + _SAMPLING_S
            costs = [_block_s(runner, judge) for _ in range(blocks.fewest_samples)]
            while len(costs) < blocks.most_samples and time.monotonic() < ends_at:
                costs.append(_block_s(runner, judge))
            ticket_s = usual_ticket_s(runner.loop, judge, most_calls_on(judge.problem.n_sets))
            return LoopCost(request_s=percentile(costs, blocks.percent), least_s=min(costs), ticket_s=ticket_s)
    except RunnerFailure as failure:
        raise EngineError(f"the cost of a request could not be measured: {failure}") from failure


def usual_ticket_s(loop: Callable[[Sequence[int]], LoopTime], judge: JudgeProcess, calls: int) -> float:
    """Return the seconds of a call that does nothing in a trusted loop of so many, right after all sets were renewed.

    It is 0 where tickets are taken while the device works, and where blocks have few calls.
    """
    if TIMED_DEVICES[judge.device_kind].is_asynchronous or calls < MANY_CALLS:
        return 0.0
    sets = range(calls)
    loop(sets)  # does things for the first time
    return median(_ticket_s(loop, sets, judge) for _ in range(_TICKET_SAMPLES))


def _ticket_s(loop: Callable[[Sequence[int]], LoopTime], sets: Sequence[int], judge: JudgeProcess) -> float:
    judge.ask(Renew())
    judge.stop()
    return loop(sets).own_s / len(sets)


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
