"""The share of the measurement cores that other programs use: read from /proc/stat while Ridgeline runs nothing."""

from __future__ import annotations

import time
from pathlib import Path

from ridgeline.tools.machine.devices import measurement_cores
from ridgeline.tools.machine.system_files import text_of
from ridgeline.tools.records.problem import Device
from ridgeline.tools.records.vocabulary import DeviceKind
from ridgeline.tools.wording import counted

_STAT = Path("/proc/stat")
_LOOK_S = 0.3
_IDLE_FIELDS = (3, 4)  # proc_stat(5), after the name: idle, and waiting for a disk
BUSY_SHARE = 0.1
"""Share of the cores below which other programs change a timing by less than its own scatter."""


def cores_in_use(look_s: float = _LOOK_S) -> float:
    """Return how many of the measurement cores are busy, watched for `look_s` seconds; 0.0 where /proc does not say."""
    before = _ticks()
    time.sleep(look_s)
    after = _ticks()
    used = 0.0
    for core in before.keys() & after.keys():
        busy, total = (b - a for a, b in zip(before[core], after[core], strict=True))
        used += busy / total if total > 0 else 0.0
    return used


def busy_words(device: Device) -> str:
    """Return a warning when others use the cores that a CPU's kernels are timed on, "" when they are free.

    Ask while no process of Ridgeline's runs. A GPU's kernels wait for no core.
    """
    if device.kind is not DeviceKind.CPU:
        return ""
    cores, used = len(measurement_cores()), cores_in_use()
    if used <= BUSY_SHARE * cores:
        return ""
    return f"other programs use {used:.1f} of {counted(cores, 'core')}: times are unreliable, and intervals wide"


def _ticks() -> dict[str, tuple[int, int]]:
    """Return (busy, all) ticks of each measurement core since the machine started."""
    wanted = {f"cpu{core}" for core in measurement_cores()}
    found = {}
    for line in text_of(_STAT).splitlines():
        name, *fields = line.split()
        if name in wanted:
            ticks = [int(field) for field in fields[:8]]  # guests are counted among users
            found[name] = (sum(ticks) - sum(ticks[i] for i in _IDLE_FIELDS), sum(ticks))
    return found
