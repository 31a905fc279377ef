"""What a request to a runner costs at least: the part of a timed block that no kernel can be blamed for.

Waking the runner, reading the request and answering takes 20 to 60 us of the parent's clock. Measured with a library
of Ridgeline's own that does nothing, in a runner of its own, so that no candidate has a say in what is taken off its
time; the smallest of many requests, so that never more is taken off than a request costs.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

from ridgeline.tools.errors import EngineError
from ridgeline.tools.judge_process import LoadedProblem
from ridgeline.tools.records import DeviceKind
from ridgeline.tools.runner_process import RunnerFailure, RunnerPlan, RunnerProcess
from ridgeline.tools.sandbox import Sandbox
from ridgeline.tools.toolchain import build_trusted, find_toolchain

REQUESTS = 200
_SOURCE = Path(__file__).parent / "native" / "nothing.cpp"
_FLAGS = ("-std=c++17", "-O2", "-shared", "-fPIC")


def nothing_library(cache_dir: Path) -> Path:
    """Return the library that does nothing, compiling it once.

    Raises:
        DeviceError: g++ is missing or fails.
        StorageError: `cache_dir` cannot be written.
    """
    digest = hashlib.sha256(_SOURCE.read_bytes() + " ".join(_FLAGS).encode()).hexdigest()[:16]
    library = cache_dir / "host" / f"nothing-{digest}" / "kernel.so"
    if not library.is_file():
        compiler = find_toolchain(DeviceKind.CPU).compiler
        build_trusted(library, [str(compiler), *_FLAGS, str(_SOURCE)], what="an empty library")
    return library


def least_request_s(sandbox: Sandbox, plan: RunnerPlan, problem: LoadedProblem) -> float:
    """Return the seconds that a request takes at least, in a runner like the plan's (which names the empty library).

    Raises:
        EngineError: the runner failed, which no candidate can cause.
    """
    try:
        with RunnerProcess(sandbox, plan, problem) as runner:
            return min(runner.loop(0, 1).parent_s for _ in range(REQUESTS))
    except RunnerFailure as failure:
        raise EngineError(f"the cost of a request could not be measured: {failure.reason}") from failure


def empty_plan(plan: RunnerPlan, library: Path) -> RunnerPlan:
    """Return a runner's plan with the empty library in the candidate's place."""
    confined = replace(plan.confined, readable=(*plan.confined.readable, library.parent))
    return replace(plan, confined=confined, library=library)
