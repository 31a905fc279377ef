"""Nsight Compute's hardware counters of a candidate that runs alone.

A profiler that does not work here (not installed, counters for administrators only, refused by the sandbox) costs the
counters, never the profile: the reason becomes a note.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ridgeline.tools.errors import EngineError
from ridgeline.tools.profile.under_tool import CALLS, find_tool, reason_against, watched
from ridgeline.tools.records.codec import Record
from ridgeline.tools.records.problem import Signature
from ridgeline.tools.sandbox.rules import Confined, temporary_workdir
from ridgeline.tools.sandbox.sandbox import Sandbox

MOST_LAUNCHES = 48
"""Each launch is replayed a few times, 10 to 100 ms each: enough for three calls of 16 kernels."""
MOST_ATTEMPTS = 8
"""An attempt that fails for a metric that does not exist ends within 2 s and names the metric."""
GLOBAL_OF = "l1tex__t_{}_pipe_lsu_mem_global_op_{}.sum"
EFFICIENCY_OF = "smsp__sass_average_data_bytes_per_sector_mem_global_op_{}.pct"
LOCAL_OF = "l1tex__t_bytes_pipe_lsu_mem_local_op_{}.sum"
WAVEFRONTS_OF = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{}.sum"
CONFLICTS_OF = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{}.sum"
STALL_OF = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
DURATION_NS = "gpu__time_duration.sum"
DRAM_BYTES = ("dram__bytes_read.sum", "dram__bytes_write.sum")
TENSOR_PIPES = tuple(
    f"{metric}.avg.pct_of_peak_sustained_active"
    for metric in (
        "sm__pipe_tensor_cycles_active",
        "sm__pipe_tensor_op_hmma_cycles_active",
        "sm__inst_executed_pipe_tensor_op_gmma",
        "sm__inst_executed_pipe_tensor",
    )
)
"""How busy the tensor cores are, of which the largest that a GPU has counts.

A wgmma is one instruction that keeps the pipe busy for as long as many of `mma`: a kernel at 62 % of an H100's peak has
2.75 % of the last one's. Cycles of wgmma are in the first two.
"""
SPECIAL_PIPES = tuple(
    f"{metric}.avg.pct_of_peak_sustained_active"
    for metric in ("sm__pipe_xu_cycles_active", "sm__inst_executed_pipe_xu")
)
"""How busy the special function unit is: exp2, reciprocals and roots (MUFU), and conversions; the largest counts."""
FMA_PCT = "sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active"
FP32_OPS = {
    "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum": 2,
    "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum": 1,
    "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum": 1,
}
"""Instructions of threads, with the operations of each."""
ACHIEVED_PCT = "sm__warps_active.avg.pct_of_peak_sustained_active"
POSSIBLE_PCT = "sm__maximum_warps_per_active_cycle_pct"
L2_HIT_PCT = "lts__t_sector_hit_rate.pct"
WAVES = "launch__waves_per_multiprocessor"
BLOCK_SIZE = "launch__block_size"
OCCUPANCY_LIMITS = {
    "registers": "launch__occupancy_limit_registers",
    "shared memory": "launch__occupancy_limit_shared_mem",
    "warps": "launch__occupancy_limit_warps",
    "blocks": "launch__occupancy_limit_blocks",
}
STALLS = {
    "long_scoreboard": "loads from global or local memory",
    "short_scoreboard": "shared memory",
    "barrier": "__syncthreads",
    "mio_throttle": "the queue of shared-memory and special-function instructions",
    "lg_throttle": "the queue of global and local memory instructions",
    "math_pipe_throttle": "a busy arithmetic unit",
    "wait": "fixed latencies of their own instructions",
}
METRICS: tuple[str, ...] = (
    DURATION_NS,
    *DRAM_BYTES,
    *(GLOBAL_OF.format(what, op) for what in ("requests", "sectors") for op in ("ld", "st")),
    *(EFFICIENCY_OF.format(op) for op in ("ld", "st")),
    *(pattern.format(op) for pattern in (LOCAL_OF, WAVEFRONTS_OF, CONFLICTS_OF) for op in ("ld", "st")),
    *TENSOR_PIPES,
    *SPECIAL_PIPES,
    FMA_PCT,
    *FP32_OPS,
    ACHIEVED_PCT,
    POSSIBLE_PCT,
    L2_HIT_PCT,
    WAVES,
    BLOCK_SIZE,
    *OCCUPANCY_LIMITS.values(),
    *(STALL_OF.format(reason) for reason in STALLS),
)
"""Few, so that a launch is replayed few times; all from the Kernel Profiling Guide and its table for nvprof users."""

_OPTIONAL = {*TENSOR_PIPES, *SPECIAL_PIPES}
"""What not every GPU and version of ncu has: left out where ncu refuses a metric and does not say which."""

_MISSING_METRIC = re.compile(r"Failed to find metric (?:regex:\^)?([a-z0-9_]+__[a-z0-9_]+)")
_ERROR = re.compile(
    r"^==(?:ERROR|PROF)== .*(?:error|fail|ERR_|permission|not supported).*", re.IGNORECASE | re.MULTILINE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelCounters(Record):
    """One launch of one kernel; a metric that this GPU does not have is absent."""

    name: str
    metrics: dict[str, float] = field(default_factory=dict)

    def get(self, metric: str) -> float:
        """Return a metric, 0.0 when it is absent."""
        return self.metrics.get(metric, 0.0)

    def largest(self, metrics: Sequence[str]) -> float | None:
        """Return the largest of several metrics, None where this GPU has none of them."""
        return max((self.metrics[metric] for metric in metrics if metric in self.metrics), default=None)

    @property
    def tensor_pct(self) -> float:
        """Return how busy the tensor pipe is, of 100."""
        return self.largest(TENSOR_PIPES) or 0.0

    @property
    def special_pct(self) -> float:
        """Return how busy the special function unit is, of 100."""
        return self.largest(SPECIAL_PIPES) or 0.0

    @property
    def dram_bytes(self) -> float:
        """Return the bytes that moved between the GPU and its memory."""
        return sum(self.get(metric) for metric in DRAM_BYTES)


Counted = tuple[tuple[KernelCounters, ...], str]
"""The launches in order and "", or none and why."""


def count_kernels(runner: Confined | None, *, signature: Signature, library: Path, sandbox: Sandbox) -> Counted:
    """Return the counters of every launch of three calls, or none and one line that says why."""
    tool = find_tool("ncu")
    if tool is None:
        return (), "no hardware counters: Nsight Compute (ncu) is not installed"
    reason = reason_against(sandbox, runner)
    if reason or runner is None:
        return (), f"no hardware counters: ncu {reason}"
    wanted = METRICS

    def attempt(metrics: Sequence[str]) -> tuple[bool, str]:
        with temporary_workdir("ridgeline-ncu-") as folder:
            confined = watched(runner, tool, ncu_options(metrics), signature=signature, library=library, folder=folder)
            ended, output = sandbox.run(confined)
            return ended.is_success, output or ended.message

    try:
        return _counted(attempt, wanted)
    except EngineError as error:
        return (), f"no hardware counters: {error}"


def _counted(attempt: Callable[[Sequence[str]], tuple[bool, str]], wanted: Sequence[str]) -> Counted:
    """Ask for the metrics, again without those that this GPU or this version of ncu does not know."""
    output = ""
    for _ in range(MOST_ATTEMPTS):
        _, output = attempt(wanted)
        launches = read_ncu(output)
        if launches:
            return launches, ""
        missing = set(_MISSING_METRIC.findall(output))
        left = [metric for metric in wanted if metric.partition(".")[0] not in missing]
        if not missing and "metric" in output.lower():
            left = [metric for metric in wanted if metric not in _OPTIONAL]
        if len(left) == len(wanted):
            break
        wanted = left
    return (), f"no hardware counters: {ncu_failure(output)}"


def ncu_options(metrics: Sequence[str]) -> tuple[str, ...]:
    """Return ncu's options; the clocks stay as they are, as they do when a kernel is timed."""
    return (
        *("--csv", "--page", "raw", "--print-units", "base", "--print-kernel-base", "function"),
        *("--config-file", "off", "--clock-control", "none", "--target-processes", "all"),
        *("--launch-count", str(MOST_LAUNCHES), "--metrics", ",".join(metrics)),
    )


def read_ncu(output: str) -> tuple[KernelCounters, ...]:
    """Return the launches in the output of `ncu --csv`, among other programs' output.

    Both of its forms are read: a row for each launch with a column for each metric (--page raw; its second row names
    the units), and a row for each metric.
    """
    lines = output.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID",') and '"Kernel Name"' in line), None)
    if start is None:
        return ()
    table = csv.DictReader(line for line in lines[start:] if line.startswith('"'))
    rows = [row for row in table if row.get("ID")]  # the row of units has no ID
    if rows and "Metric Name" in rows[0]:
        return _of_long_rows(rows)
    return tuple(KernelCounters(name=row["Kernel Name"], metrics=_numbers(row)) for row in rows)


def _of_long_rows(rows: Sequence[Mapping[str, str]]) -> tuple[KernelCounters, ...]:
    launches: dict[str, tuple[str, dict[str, str]]] = {}
    for row in rows:
        _, metrics = launches.setdefault(row["ID"], (row["Kernel Name"], {}))
        metrics[row["Metric Name"]] = row["Metric Value"]
    return tuple(KernelCounters(name=name, metrics=_numbers(metrics)) for name, metrics in launches.values())


def _numbers(row: Mapping[str, str | None]) -> dict[str, float]:
    found = {}
    for name, text in row.items():
        if "__" not in name or not text:  # columns about the process have no such name
            continue
        try:
            value = float(text.replace(",", ""))
        except ValueError:
            continue  # "n/a", or a list of instances
        if math.isfinite(value):  # "nan" stands for a metric that has no value here
            found[name] = value
    return found


def ncu_failure(output: str) -> str:
    """Return in one line why ncu gave nothing."""
    if "ERR_NVGPUCTRPERM" in output:
        return (
            "this user may not read them (ERR_NVGPUCTRPERM): an administrator allows it with the nvidia module's option "
            "NVreg_RestrictProfilingToAdminUsers=0"
        )
    found = _ERROR.search(output)
    last = next((line for line in reversed(output.splitlines()) if line.strip()), "it printed nothing")
    return f"ncu: {(found[0] if found else last).removeprefix('==ERROR== ').strip()[:200]}"


def last_launches(launches: Sequence[KernelCounters]) -> tuple[KernelCounters, ...]:
    """Return the last launch of each kernel, the longest first."""
    latest = {launch.name: launch for launch in launches}
    return tuple(sorted(latest.values(), key=lambda k: k.get(DURATION_NS), reverse=True))


def bytes_of_a_call(launches: Sequence[KernelCounters]) -> float | None:
    """Return the bytes that one call moves through the GPU's memory, None when not every launch was seen."""
    if not _are_whole_calls(launches):
        return None
    return sum(launch.dram_bytes for launch in launches_of_a_call(launches))


def launches_of_a_call(launches: Sequence[KernelCounters]) -> Sequence[KernelCounters]:
    """Return the last call's launches, or all that were seen where they cannot be told apart."""
    return launches[-(len(launches) // CALLS) :] if _are_whole_calls(launches) else launches


def _are_whole_calls(launches: Sequence[KernelCounters]) -> bool:
    return 0 < len(launches) < MOST_LAUNCHES and len(launches) % CALLS == 0
