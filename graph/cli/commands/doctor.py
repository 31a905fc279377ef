"""`ridgeline doctor`: what works on this machine, what does not, and what to install."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from rich.table import Table

from ridgeline.graph.cli.console import make_console
from ridgeline.graph.session.options import RUNS
from ridgeline.problems.folders import why_refused
from ridgeline.tools.build.cache import MAKE_ROOM, remedy_for_cache
from ridgeline.tools.build.toolchain import installed_version, toolchain_for
from ridgeline.tools.errors import DeviceError, RidgelineError
from ridgeline.tools.machine.devices import detect_device
from ridgeline.tools.machine.gpu_state import GpuMonitor
from ridgeline.tools.machine.places import default_cache_dir, home_dir, lock_dir, why_unwritable
from ridgeline.tools.machine.python_env import python_path
from ridgeline.tools.records.problem import Device
from ridgeline.tools.records.vocabulary import DeviceKind
from ridgeline.tools.sandbox.advice import TIER_WORDS, python_advice
from ridgeline.tools.sandbox.python import package_paths, python_paths
from ridgeline.tools.sandbox.sandbox import Confined, Limits, Sandbox, Tier, limit_too_low, probe_sandbox
from ridgeline.tools.wording import counted, remedy_for

KEYS = {"OPENAI_API_KEY": "openai:…", "GOOGLE_API_KEY": "google_genai:…"}
LOW_DISK_BYTES = 2 << 30
IMPORTS_S = 90.0  # torch on a busy machine
SAY_INSIDE = "print('inside', flush=True)"
IMPORT_A_RUNNER = "import ridgeline.tools.runner.worker.__main__"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One part of the machine that was checked; `remedy` is empty when there is nothing to do."""

    item: str
    is_fine: bool
    detail: str
    remedy: str = ""
    is_needed: bool = True  # for a search on the CPU


def execute(args: argparse.Namespace) -> int:
    """Print the checks; exit code 0 when a search on the CPU can run, else 2."""
    checks = [check for look in LOOKS for check in look()]
    if args.json:
        rows = [
            {"item": check.item, "ok": check.is_fine, "detail": check.detail, "remedy": check.remedy}
            for check in checks
        ]
        sys.stdout.write(json.dumps({"schema_version": 1, "findings": rows}, indent=2) + "\n")
    else:
        _print(checks)
    return 0 if all(check.is_fine for check in checks if check.is_needed) else 2


def _print(checks: list[Check]) -> None:
    table = Table.grid(padding=(0, 2))
    for check in checks:
        mark = "[green]ok[/]" if check.is_fine else "[red]missing[/]" if check.is_needed else "[yellow]none[/]"
        table.add_row(mark, check.item, check.detail + (f"\n[dim]{check.remedy}[/]" if check.remedy else ""))
    make_console().print(table)


def _python() -> Iterator[Check]:
    version = ".".join(map(str, sys.version_info[:3]))
    yield Check(item="Python", is_fine=sys.version_info >= (3, 11), detail=version, remedy="")
    has_torch = importlib.util.find_spec("torch") is not None
    torch = metadata.version("torch") if has_torch else "not installed"
    yield Check(item="torch", is_fine=has_torch, detail=torch, remedy="" if has_torch else "pip install torch")


def _compilers() -> Iterator[Check]:
    gxx, nvcc = installed_version(DeviceKind.CPU), installed_version(DeviceKind.CUDA)
    yield Check(
        item="g++",
        is_fine=gxx is not None,
        detail=gxx or "not found",
        remedy="" if gxx else "apt-get install g++",
    )
    yield Check(
        item="nvcc",
        is_fine=nvcc is not None,
        detail=nvcc or "not found",
        remedy="" if nvcc else "only for CUDA: install the CUDA toolkit of your driver's version",
        is_needed=False,
    )
    has_objdump = shutil.which("objdump") is not None
    yield Check(
        item="objdump",
        is_fine=has_objdump,
        detail="found" if has_objdump else "not found: profiles lack the instruction mix",
        remedy="" if has_objdump else "apt-get install binutils",
        is_needed=False,
    )


def _devices() -> Iterator[Check]:
    cpu = detect_device("cpu")
    detail = f"{cpu.name}, {counted(cpu.cores, 'core')}, {cpu.memory_bytes >> 30} GiB"
    yield Check(item="CPU", is_fine=True, detail=detail)
    try:
        gpu = detect_device("cuda")
    except DeviceError as error:
        yield Check(item="GPU", is_fine=False, detail=str(error), is_needed=False)
    else:
        detail = f"{gpu.name}, {gpu.arch}, {gpu.memory_bytes >> 30} GiB, {gpu.driver}"
        remedy = _against_gpu(gpu)
        yield Check(item="GPU", is_fine=not remedy, detail=detail, remedy=remedy, is_needed=False)


def _against_gpu(gpu: Device) -> str:
    """Return why no kernel built here can run on this GPU now; "" when kernels can run."""
    try:
        toolchain_for(gpu)
    except DeviceError as error:
        return str(error)
    with GpuMonitor(gpu.uuid) as monitor:
        return monitor.busy_with()


def _sandbox() -> Iterator[Check]:
    try:
        report = probe_sandbox(allow_unsafe=True)
    except RidgelineError as error:
        yield Check(item="sandbox", is_fine=False, detail=str(error))
        return
    yield Check(
        item="sandbox",
        is_fine=report.tier is not Tier.NONE,
        detail=f"tier {report.tier.value}: {TIER_WORDS[report.tier]}",
        remedy=report.advice,
    )
    yield _python_inside(report.tier)
    yield _tools_inside(report.tier)


def _python_inside(tier: Tier) -> Check:
    """Run this Python in the sandbox as a runner of interface torch or module does; interface c needs no Python inside.

    Without torch on this machine, which has a line of its own, only Python is tried.
    """
    if too_low := limit_too_low():
        return Check(item="Python inside", is_fine=False, detail=too_low, is_needed=False)
    imports = IMPORT_A_RUNNER if importlib.util.find_spec("torch") is not None else "pass"
    confined = Confined(
        command=(sys.executable, "-P", "-c", f"{SAY_INSIDE}; {imports}"),
        readable=package_paths(),
        env={"PYTHONPATH": python_path()},
        limits=Limits(wall_s=IMPORTS_S),
    )
    runs = ""
    try:
        ended, said = Sandbox(tier).run(confined)
        before, runs, after = said.partition("inside\n")
        words = after.strip().rpartition("\n")[2] if runs else before.strip()  # a traceback's last line says what it is
        fault = "" if runs and ended.is_success else words or ended.message
    except RidgelineError as error:
        fault = str(error)
    remedy = _torch_advice() if runs else python_advice(package_paths())
    return Check(
        item="Python inside",
        is_fine=not fault,
        detail=fault or "the sandbox runs it, for interfaces torch and module",
        remedy=remedy if fault else "",
        is_needed=False,
    )


def _torch_advice() -> str:
    """Return the remedy for a torch that this Python finds outside of its environment; "" for any other."""
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None or any(map(Path(spec.origin).is_relative_to, python_paths())):
        return ""
    return f"torch lies in {Path(spec.origin).parent}: install it in this Python's own environment, {sys.prefix}"


def _tools_inside(tier: Tier) -> Check:
    """Try what compute-sanitizer and Nsight Compute need of the sandbox; a CPU's problems need neither."""
    try:
        reason = limit_too_low() or Sandbox(tier).reason_against_own_network()
    except RidgelineError as error:
        reason = str(error)
    return Check(
        item="tools inside",
        is_fine=not reason,
        detail=f"a GPU's sanitizer and profiler: {reason}"
        if reason
        else "a GPU's sanitizer and profiler, where there is a GPU, can watch a kernel",
        is_needed=False,
    )


def _keys() -> Iterator[Check]:
    for variable, models in KEYS.items():
        is_set = bool(os.environ.get(variable))
        yield Check(
            item=variable,
            is_fine=is_set,
            detail="set" if is_set else f"not set: --model {models} needs it, --model offline does not",
            is_needed=False,
        )


def _folders() -> Iterator[Check]:
    home, cache = home_dir(), default_cache_dir()
    why = why_unwritable(home)
    yield Check(
        item="home",
        is_fine=not why,
        detail=f"{home}: {why}; a search keeps no kernels there" if why else str(home),
        remedy=remedy_for(why, "set RIDGELINE_HOME to a folder of yours") if why else "",
        is_needed=False,
    )
    why = why_refused(RUNS.absolute())
    yield Check(
        item="runs",
        is_fine=not why,
        detail=f"{RUNS.absolute()}{f': {why}' if why else ', below the current folder'}",
        remedy="change to a folder of yours, or name one with --run-dir" if why else "",
        is_needed=False,
    )
    yield _cache(cache)
    try:
        yield Check(item="locks", is_fine=True, detail=str(lock_dir()))
    except DeviceError as error:
        fault, _, remedy = str(error).partition(": ")
        yield Check(item="locks", is_fine=False, detail=fault, remedy=remedy)


def _cache(folder: Path) -> Check:
    if why := why_unwritable(folder):
        return Check(item="build cache", is_fine=False, detail=f"{folder}: {why}", remedy=remedy_for_cache(why))
    free = shutil.disk_usage(folder).free
    is_fine = free >= LOW_DISK_BYTES
    remedy = "" if is_fine else MAKE_ROOM
    return Check(item="build cache", is_fine=is_fine, detail=f"{folder}, {free >> 30} GiB free", remedy=remedy)


LOOKS: tuple[Callable[[], Iterator[Check]], ...] = (_python, _compilers, _devices, _sandbox, _keys, _folders)
