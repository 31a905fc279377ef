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

from rich.console import Console
from rich.table import Table

from ridgeline.tools.build.toolchain import installed_version, toolchain_for
from ridgeline.tools.errors import DeviceError, RidgelineError
from ridgeline.tools.machine.devices import detect_device
from ridgeline.tools.machine.gpu_state import GpuMonitor
from ridgeline.tools.machine.places import default_cache_dir
from ridgeline.tools.records.problem import Device
from ridgeline.tools.records.vocabulary import DeviceKind
from ridgeline.tools.sandbox.advice import TIER_WORDS, python_advice
from ridgeline.tools.sandbox.python import python_paths
from ridgeline.tools.sandbox.sandbox import Confined, Sandbox, Tier, probe_sandbox
from ridgeline.tools.wording import counted

KEYS = {"OPENAI_API_KEY": "openai:…", "GOOGLE_API_KEY": "google_genai:…"}
LOW_DISK_BYTES = 2 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing looked at; `remedy` is empty when nothing is to be done."""

    item: str
    is_fine: bool
    detail: str
    remedy: str = ""
    is_needed: bool = True  # without it no search runs on the CPU


def execute(args: argparse.Namespace) -> int:
    """Print the findings; exit code 0 when a search on the CPU can run, else 2."""
    findings = [finding for look in LOOKS for finding in look()]
    if args.json:
        rows = [{"item": f.item, "ok": f.is_fine, "detail": f.detail, "remedy": f.remedy} for f in findings]
        sys.stdout.write(json.dumps({"schema_version": 1, "findings": rows}, indent=2) + "\n")
    else:
        _print(findings)
    return 0 if all(f.is_fine for f in findings if f.is_needed) else 2


def _print(findings: list[Finding]) -> None:
    table = Table.grid(padding=(0, 2))
    for f in findings:
        mark = "[green]ok[/]" if f.is_fine else "[red]missing[/]" if f.is_needed else "[yellow]none[/]"
        table.add_row(mark, f.item, f.detail + (f"\n[dim]{f.remedy}[/]" if f.remedy else ""))
    Console(highlight=False).print(table)


def _python() -> Iterator[Finding]:
    version = ".".join(map(str, sys.version_info[:3]))
    yield Finding(item="Python", is_fine=sys.version_info >= (3, 11), detail=version, remedy="")
    has_torch = importlib.util.find_spec("torch") is not None
    torch = metadata.version("torch") if has_torch else "not installed"
    yield Finding(item="torch", is_fine=has_torch, detail=torch, remedy="" if has_torch else "pip install ridgeline")


def _compilers() -> Iterator[Finding]:
    gxx, nvcc = installed_version(DeviceKind.CPU), installed_version(DeviceKind.CUDA)
    yield Finding(
        item="g++",
        is_fine=gxx is not None,
        detail=gxx or "not found",
        remedy="" if gxx else "apt-get install g++",
    )
    yield Finding(
        item="nvcc",
        is_fine=nvcc is not None,
        detail=nvcc or "not found",
        remedy="" if nvcc else "only for CUDA: install the CUDA toolkit of your driver's version",
        is_needed=False,
    )
    has_objdump = shutil.which("objdump") is not None
    yield Finding(
        item="objdump",
        is_fine=has_objdump,
        detail="found" if has_objdump else "not found: profiles lack the instruction mix",
        remedy="" if has_objdump else "apt-get install binutils",
        is_needed=False,
    )


def _devices() -> Iterator[Finding]:
    cpu = detect_device("cpu")
    detail = f"{cpu.name}, {counted(cpu.cores, 'core')}, {cpu.memory_bytes >> 30} GiB"
    yield Finding(item="CPU", is_fine=True, detail=detail)
    try:
        gpu = detect_device("cuda")
    except DeviceError as error:
        yield Finding(item="GPU", is_fine=False, detail=str(error), is_needed=False)
    else:
        detail = f"{gpu.name}, {gpu.arch}, {gpu.memory_bytes >> 30} GiB, {gpu.driver}"
        remedy = _against_gpu(gpu)
        yield Finding(item="GPU", is_fine=not remedy, detail=detail, remedy=remedy, is_needed=False)


def _against_gpu(gpu: Device) -> str:
    """Return why nothing built here would run on this GPU now, "" when it would."""
    try:
        toolchain_for(gpu)
    except DeviceError as error:
        return str(error)
    with GpuMonitor(gpu.uuid) as monitor:
        return monitor.busy_with()


def _sandbox() -> Iterator[Finding]:
    try:
        report = probe_sandbox(allow_unsafe=True)
    except RidgelineError as error:
        yield Finding(item="sandbox", is_fine=False, detail=str(error))
        return
    yield Finding(
        item="sandbox",
        is_fine=report.tier is not Tier.NONE,
        detail=f"tier {report.tier.value}: {TIER_WORDS[report.tier]}",
        remedy=report.advice,
    )
    yield _python_inside(report.tier)


def _python_inside(tier: Tier) -> Finding:
    """Try this very Python in the sandbox, as interfaces torch and module do; interface c needs none."""
    command = (sys.executable, "-I", "-c", "print('inside')")
    try:
        ended, said = Sandbox(tier).run(Confined(command=command, readable=python_paths()))
        fault = "" if ended.is_success and said == "inside\n" else said.strip() or ended.message
    except RidgelineError as error:
        fault = str(error)
    return Finding(
        item="Python inside",
        is_fine=not fault,
        detail=fault or "the sandbox runs it, for interfaces torch and module",
        remedy=python_advice(python_paths()) if fault else "",
        is_needed=False,
    )


def _keys() -> Iterator[Finding]:
    for variable, models in KEYS.items():
        is_set = bool(os.environ.get(variable))
        yield Finding(
            item=variable,
            is_fine=is_set,
            detail="set" if is_set else f"not set: --model {models} needs it, --model offline does not",
            is_needed=False,
        )


def _folders() -> Iterator[Finding]:
    folder = default_cache_dir()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(folder).free
    except OSError as error:
        remedy = "set RIDGELINE_CACHE_DIR to a folder of yours"
        yield Finding(item="build cache", is_fine=False, detail=f"{folder}: {error.strerror}", remedy=remedy)
        return
    is_fine = os.access(folder, os.W_OK) and free >= LOW_DISK_BYTES
    remedy = "" if is_fine else "free some space (ridgeline clean --cache), or set RIDGELINE_CACHE_DIR elsewhere"
    yield Finding(item="build cache", is_fine=is_fine, detail=f"{folder}, {free >> 30} GiB free", remedy=remedy)


LOOKS: tuple[Callable[[], Iterator[Finding]], ...] = (_python, _compilers, _devices, _sandbox, _keys, _folders)
