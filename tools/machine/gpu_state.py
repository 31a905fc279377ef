"""A GPU's state during a measurement: clocks, power, temperature, reasons to slow down, other processes.

The source is NVML, the driver's own library. Without it (no driver, a container that hides it) every figure is None and
every list empty, and a measurement goes on without.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import pynvml

from ridgeline.tools.machine.logs import logger_of
from ridgeline.tools.machine.system_files import text_of
from ridgeline.tools.records.codec import Record

logger = logger_of(__name__)

SLOWED_BY = {
    0x02: "clocks set by an application",
    0x04: "software power cap",
    0x08: "hardware slowdown",
    0x10: "sync boost with other GPUs",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "hardware power brake",
    0x100: "display clock setting",
}
"""nvmlClocksEventReasons of nvml.h; 0x01 is an idle GPU, which slows no measurement down."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuProcess(Record):
    """One process that holds a context on the GPU."""

    pid: int  # as the driver sees it: in a container with process ids of its own it may be the host's
    name: str = ""  # its command, where /proc shows it
    memory_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuState(Record):
    """A GPU at one moment; None is unknown."""

    sm_mhz: float | None = None
    memory_mhz: float | None = None
    power_w: float | None = None
    temperature_c: float | None = None
    slowed_by: tuple[str, ...] = ()  # why its clocks are below the highest, in words
    processes: tuple[GpuProcess, ...] = ()

    def figures(self) -> dict[str, float]:
        """Return the known figures by name."""
        figures = {
            "sm_mhz": self.sm_mhz,
            "memory_mhz": self.memory_mhz,
            "power_w": self.power_w,
            "temperature_c": self.temperature_c,
        }
        return {name: value for name, value in figures.items() if value is not None}


def usual_clocks(states: Sequence[GpuState]) -> dict[str, float]:
    """Return the content of `Timing.clocks`: the median of each known figure, the share of each reason to slow down."""
    figures = [state.figures() for state in states]
    medians = {name: median(f[name] for f in figures if name in f) for name in sorted({n for f in figures for n in f})}
    reasons = Counter(reason for state in states for reason in state.slowed_by)
    return medians | {f"slowed by {reason}": n / len(states) for reason, n in sorted(reasons.items())}


UNCOUNTED = GpuProcess(pid=0, name="an unknown number of processes")
"""In place of the processes when the driver has more than fit its list: the GPU is busy, by processes unknown."""


class GpuMonitor:
    """One GPU as NVML sees it. NVML is open until `close`, and safe to share between threads."""

    def __init__(self, uuid: str) -> None:
        self.uuid = uuid
        self._is_open = _opened()
        self._handle = _told(pynvml.nvmlDeviceGetHandleByUUID, uuid) if self._is_open else None
        if self._handle is None:
            self.close()

    def sample(self) -> GpuState:
        """Return the GPU's state now (about 1 ms)."""
        if not self._is_open:
            return GpuState()
        power_mw = self._number(pynvml.nvmlDeviceGetPowerUsage)
        return GpuState(
            sm_mhz=self._number(pynvml.nvmlDeviceGetClockInfo, pynvml.NVML_CLOCK_SM),
            memory_mhz=self._number(pynvml.nvmlDeviceGetClockInfo, pynvml.NVML_CLOCK_MEM),
            power_w=None if power_mw is None else power_mw / 1e3,
            temperature_c=self._number(pynvml.nvmlDeviceGetTemperature, pynvml.NVML_TEMPERATURE_GPU),
            slowed_by=reasons_in_words(self._reasons()),
            processes=self.processes(),
        )

    def processes(self) -> tuple[GpuProcess, ...]:
        """Return the processes that hold a context on this GPU; none where the driver does not say.

        When more start than there was room for, the list has one entry, `UNCOUNTED`, that stands for them all.
        """
        if not self._is_open:
            return ()
        for ask in (pynvml.nvmlDeviceGetComputeRunningProcesses_v3, pynvml.nvmlDeviceGetComputeRunningProcesses_v2):
            try:
                return tuple(_process(info) for info in ask(self._handle))
            except pynvml.NVMLError_InsufficientSize:
                return (UNCOUNTED,)
            except pynvml.NVMLError as error:
                logger.debug("%s: %s", ask.__name__, error)
        return ()

    def other_processes(self, own_pids: Iterable[int] = ()) -> tuple[GpuProcess, ...]:
        """Return the processes on this GPU other than this process, `own_pids` and their descendants.

        A driver that gives a container the host's process ids cannot be matched with /proc: ask before any process of
        Ridgeline's runs on the GPU.
        """
        ours = descendants({os.getpid(), *own_pids})
        return tuple(process for process in self.processes() if process.pid not in ours)

    def busy_with(self, own_pids: Iterable[int] = ()) -> str:
        """Return one line that names the other processes on the GPU, "" when there is none."""
        others = self.other_processes(own_pids)
        if not others:
            return ""
        named = ", ".join(_in_words(process) for process in others[:4])
        more = f" and {len(others) - 4} more" if len(others) > 4 else ""
        return f"GPU {self.uuid} is busy with another process: {named}{more}; end it, or choose another GPU with cuda:N"

    def close(self) -> None:
        """Let go of NVML."""
        if self._is_open:
            self._is_open = False
            _told(pynvml.nvmlShutdown)

    def __enter__(self) -> GpuMonitor:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _number(self, ask: Callable[..., int], *arguments: int) -> float | None:
        value = _told(ask, self._handle, *arguments)
        return None if value is None else float(value)

    def _reasons(self) -> int:
        # renamed in driver 535
        for ask in (pynvml.nvmlDeviceGetCurrentClocksEventReasons, pynvml.nvmlDeviceGetCurrentClocksThrottleReasons):
            mask = _told(ask, self._handle)
            if mask is not None:
                return int(mask)
        return 0


def installed_driver() -> str:
    """Return the version of this machine's driver, "580.159.04"; "" when unknown."""
    if not _opened():
        return ""
    try:
        return _driver_version()
    finally:
        _told(pynvml.nvmlShutdown)


def reasons_in_words(mask: int) -> tuple[str, ...]:
    """Return why a GPU's clocks are below the highest, from NVML's bits; unknown bits are given as numbers."""
    known = tuple(words for bit, words in SLOWED_BY.items() if mask & bit)
    unknown = mask & ~(sum(SLOWED_BY) | 1)
    return (*known, f"reason {unknown:#x}") if unknown else known


def descendants(pids: Iterable[int]) -> set[int]:
    """Return these processes and everything that descends from them, by /proc."""
    parents = {int(entry.name): _parent(entry) for entry in Path("/proc").iterdir() if entry.name.isdigit()}
    found = set(pids)
    while grown := {pid for pid, parent in parents.items() if parent in found and pid not in found}:
        found |= grown
    return found


def _opened() -> bool:
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        logger.debug("NVML: %s", error)
        return False
    return True


def _driver_version() -> str:
    return str(_told(pynvml.nvmlSystemGetDriverVersion) or "")


def _told(ask: Callable[..., Any], *arguments: object) -> Any:
    """Return NVML's answer, None where NVML lacks the function or the GPU the figure."""
    try:
        return ask(*arguments)
    except pynvml.NVMLError as error:
        logger.debug("%s: %s", ask.__name__, error)
        return None


def _process(info: Any) -> GpuProcess:
    return GpuProcess(pid=int(info.pid), name=_command(int(info.pid)), memory_bytes=info.usedGpuMemory)


def _command(pid: int) -> str:
    return text_of(Path(f"/proc/{pid}/comm")).strip()


def _parent(entry: Path) -> int:
    text = text_of(entry / "stat")
    return int(text[text.rindex(")") + 2 :].split()[1]) if text else 0


def _in_words(process: GpuProcess) -> str:
    if process == UNCOUNTED:
        return process.name
    name = f" ({process.name})" if process.name else ""
    used = f", {process.memory_bytes / 2**20:.0f} MiB" if process.memory_bytes else ""
    return f"pid {process.pid}{name}{used}"
