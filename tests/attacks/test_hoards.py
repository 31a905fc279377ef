"""Memory and files count, also where the usual places of /proc do not show who holds them."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ridgeline.tools.sandbox.sandbox import Confined, Limits, Sandbox, Tier

pytestmark = pytest.mark.timeout(60)
Confine = Callable[..., Confined]
MIB = 1 << 20
FILE_MIB = 8
SMALL = {"file_bytes": 10 * MIB, "disk_bytes": 16 * MIB}


@pytest.mark.parametrize("how", ["stays", "turns"])
def test_memory_of_a_process_without_its_first_thread_is_counted(sandbox: Sandbox, confine: Confine, how: str) -> None:
    hoard = confine("hoard-memory", how, 160, memory_bytes=96 * MIB)
    beside_a_device = replace(hoard, devices=("/dev/null",))  # no RLIMIT_DATA then
    ended, printed = sandbox.run(beside_a_device)
    assert ended.limit == "memory", (ended, printed)


def test_a_process_without_its_first_thread_may_use_its_memory(sandbox: Sandbox, confine: Confine) -> None:
    ended, printed = sandbox.run(confine("hoard-memory", "stays", 32, memory_bytes=96 * MIB, wall_s=2.0))
    assert (ended.limit, printed) == ("wall", "holds memory\n")


@pytest.mark.parametrize("processes", [False, True], ids=["runner", "builder"])
@pytest.mark.parametrize("how", ["opened", "mapped", "opened and mapped", "hidden"])
def test_files_that_nobody_can_name_are_counted(
    sandbox: Sandbox, confine: Confine, workdir: Path, how: str, processes: bool
) -> None:
    ended, printed = sandbox.run(confine("hoard-files", how, workdir, 4, FILE_MIB, processes=processes, **SMALL))
    assert ended.limit == "disk", (ended, printed)


@pytest.mark.parametrize("how", ["opened", "mapped", "opened and mapped"])
def test_one_such_file_within_the_limits_is_allowed(
    sandbox: Sandbox, confine: Confine, workdir: Path, how: str
) -> None:
    ended, printed = sandbox.run(confine("hoard-files", how, workdir, 1, FILE_MIB, wall_s=2.0, **SMALL))
    assert (ended.limit, printed) == ("wall", "holds files\n")


def test_a_stopped_runner_keeps_its_guard_from_no_core(sandbox: Sandbox, confine: Confine, workdir: Path) -> None:
    """What it left behind is walked through while another process is timed."""
    with sandbox.start(confine("crowd", workdir), stdout=subprocess.PIPE) as process:
        assert process.stdout and process.stdout.readline() == b"holds a crowd\n"
        os.kill(process.host_pid, signal.SIGSTOP)
        guard = int(stat_of(process.host_pid)[1])
        began, used = time.monotonic(), cpu_s(guard)
        time.sleep(4)
        assert (cpu_s(guard) - used) / (time.monotonic() - began) < 0.06
        assert process.poll() is None


def stat_of(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def cpu_s(pid: int) -> float:
    return sum(int(ticks) for ticks in stat_of(pid)[11:13]) / os.sysconf("SC_CLK_TCK")


def test_more_files_than_can_be_looked_through_in_time_are_too_many(sandbox: Sandbox, workdir: Path) -> None:
    """While the guard walks through a folder nobody looks: a long walk must not buy time for more files."""
    script = "i=0; while [ $i -lt 30000 ]; do : > f$i; i=$((i+1)); done; echo all; sleep 3"
    filling = Confined(
        command=("/bin/sh", "-c", script),
        workdir=workdir,
        allow_processes=True,
        limits=Limits(disk_bytes=512 * MIB, wall_s=60),
    )
    ended, _ = sandbox.run(filling)
    assert ended.limit == "disk", ended


def test_a_folder_that_tells_the_names_of_its_files_alone_counts_as_full(sandbox: Sandbox, workdir: Path) -> None:
    if sandbox.tier is not Tier.BUBBLEWRAP:
        pytest.skip("tier B lets nobody change a folder's mode")
    hiding = Confined(
        command=("/bin/sh", "-c", "mkdir names && : > names/file && chmod 0400 names && sleep 5"),
        workdir=workdir,
        allow_processes=True,
        limits=Limits(disk_bytes=512 * MIB, wall_s=60),
    )
    ended, _ = sandbox.run(hiding)
    assert ended.limit == "disk", ended
