"""A program cannot take more than its limits, nor outlive its supervisor."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ridgeline.tools.sandbox.process import SandboxedProcess
from ridgeline.tools.sandbox.rules import dropped_uid
from ridgeline.tools.sandbox.sandbox import Confined, Sandbox, Tier

from .conftest import gone

pytestmark = pytest.mark.timeout(60)
Confine = Callable[..., Confined]
Live = Callable[[], list[int]]
MIB = 1 << 20

BORN_MEANWHILE = 16
"""Processes that end while the list is read are counted beside those that take their places."""


def are_two(live: Live) -> bool:
    """Wait until the program and its grandchild are there, and what forked the grandchild is gone."""
    time.sleep(0.2)
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if len(live()) >= 2:
            return True
        time.sleep(0.02)
    return False


def guard_of(process: SandboxedProcess) -> int:
    return int(Path(f"/proc/{process.host_pid}/stat").read_text().rpartition(")")[2].split()[1])


def disk_use(folder: Path) -> int:
    return sum(path.lstat().st_blocks * 512 for path in folder.rglob("*"))


def test_a_fork_bomb_is_contained(sandbox: Sandbox, confine: Confine, live: Live) -> None:
    with sandbox.start(confine("fork-bomb", processes=True, wall_s=1.0)) as process:
        most = 0
        while process.poll() is None:
            most = max(most, len(live()))
            time.sleep(0.05)
        ended = process.wait()
    # where the kernel refuses further processes, the watch never sees too many, and the time ends it
    assert ended.limit in ("processes", "wall"), ended
    assert most <= 64 + 2 + BORN_MEANWHILE
    assert gone(live)


@pytest.mark.parametrize("processes", [False, True], ids=["runner", "builder"])
def test_a_program_within_its_limits_works(sandbox: Sandbox, confine: Confine, workdir: Path, processes: bool) -> None:
    """The control of every bomb here: threads, memory, files and processes in ordinary amounts."""
    limits = {"memory_bytes": 128 * MIB, "file_bytes": 16 * MIB, "disk_bytes": 24 * MIB}
    way = "forks" if processes else "stays"
    ended, printed = sandbox.run(confine("modest", workdir, way, processes=processes, **limits))
    assert ended.is_success, (ended, printed)
    assert printed == f"modest: 8 threads, {4 * MIB} bytes, {4 if processes else 0} children\n"
    assert (workdir / "modest").stat().st_size == 4 * MIB


@pytest.mark.parametrize(("number", "name"), [(40, "signal 40"), (int(signal.SIGSEGV), "SIGSEGV")])
def test_every_signal_that_a_program_may_raise_is_told(
    sandbox: Sandbox, confine: Confine, number: int, name: str
) -> None:
    ended, _ = sandbox.run(confine("raise", number))
    assert (ended.code, ended.signal) == (None, number)
    assert name in ended.message


def test_a_runner_neither_forks_nor_executes(sandbox: Sandbox, confine: Confine) -> None:
    _, printed = sandbox.run(confine("fork-once"))
    assert "fork Operation not permitted" in printed
    assert "DONE" not in printed and "EXECUTED" not in printed, printed


def test_threads_are_limited(sandbox: Sandbox, confine: Confine, live: Live) -> None:
    ended, printed = sandbox.run(confine("threads-bomb", wall_s=5.0))
    assert not ended.is_success, ended
    assert "threads 2000" not in printed
    assert gone(live)


@pytest.mark.parametrize("processes", [False, True], ids=["runner", "builder"])
@pytest.mark.parametrize("kind", ["private", "shared"])
def test_a_memory_bomb_is_contained(sandbox: Sandbox, confine: Confine, kind: str, processes: bool) -> None:
    ended, printed = sandbox.run(confine("memory-bomb", kind, memory_bytes=128 * MIB, processes=processes))
    assert "took 8192" not in printed
    assert ended.limit == "memory" or ended.code == 0, ended
    assert ended.peak_memory_bytes < 1024 * MIB


@pytest.mark.parametrize("kind", ["private", "shared"])
def test_a_memory_bomb_beside_a_device_is_contained(sandbox: Sandbox, confine: Confine, kind: str) -> None:
    bomb = replace(confine("memory-bomb", kind, memory_bytes=128 * MIB), devices=("/dev/null",))  # no RLIMIT_DATA then
    ended, _ = sandbox.run(bomb)
    assert ended.limit == "memory"


@pytest.mark.parametrize(("open_files", "processes"), [(0, False), (0, True), (1, True)])
def test_a_guard_that_cannot_open_what_it_looks_at_takes_it_for_full(
    sandbox: Sandbox, confine: Confine, live: Live, open_files: int, processes: bool
) -> None:
    """One open file at a time shows the threads of a process, and the children of none."""
    if sandbox.tier is not Tier.BUBBLEWRAP:
        pytest.skip("tier B's guards end their tree by the same lists, and take long without")
    uid = dropped_uid()
    confined = confine("linger-and-stay" if processes else "sleep", processes=processes)
    with sandbox.start(replace(confined, workdir=None)) as process:
        assert not processes or are_two(live)
        blinded = ["prlimit", f"--pid={guard_of(process)}", f"--nofile={open_files}:{open_files}"]
        subprocess.run(blinded, check=True, user=uid, group=uid, extra_groups=None if uid is None else [])
        assert process.wait(20).limit == "memory"


@pytest.mark.parametrize("how", ["large", "small", "deleted"])
def test_a_full_workdir_is_contained(sandbox: Sandbox, confine: Confine, workdir: Path, how: str) -> None:
    limits = {"file_bytes": 16 * MIB, "disk_bytes": 24 * MIB, "open_files": 5000}
    ended, _ = sandbox.run(confine("fill", workdir, how, **limits))
    assert not ended.is_success, ended
    assert ended.limit == "disk" or ended.signal == signal.SIGXFSZ, ended
    assert disk_use(workdir) < 80 * MIB


@pytest.mark.parametrize("folder", ["/dev/shm", "/tmp", "/dev", "/", "/run", "/var/tmp"])
def test_no_other_folder_fills_up(sandbox: Sandbox, confine: Confine, folder: str, workdir: Path) -> None:
    sandbox.run(replace(confine("fill", folder, "small", file_bytes=16 * MIB), workdir=None))
    assert not list(Path(folder).glob("small*"))


def test_a_spin_is_ended_by_its_cpu_limit(sandbox: Sandbox, confine: Confine) -> None:
    ended, _ = sandbox.run(confine("spin", cpu_s=1))
    assert ended.signal == signal.SIGXCPU
    assert "CPU time" in ended.message


@pytest.mark.parametrize("what", ["spin", "sleep"])
def test_the_wall_limit_ends_a_program(sandbox: Sandbox, confine: Confine, live: Live, what: str) -> None:
    ended, _ = sandbox.run(confine(what, wall_s=0.3))
    assert ended.limit == "wall"
    assert gone(live)


def test_a_detached_grandchild_ends_with_the_program(sandbox: Sandbox, confine: Confine, live: Live) -> None:
    ended, _ = sandbox.run(confine("linger", processes=True))
    assert ended.is_success
    assert gone(live)


def test_kill_ends_the_whole_tree(sandbox: Sandbox, confine: Confine, live: Live) -> None:
    with sandbox.start(confine("linger-and-stay", processes=True)) as process:
        assert are_two(live)
        assert process.kill().limit == "stopped"
        assert gone(live)


def test_nothing_outlives_a_killed_supervisor(sandbox: Sandbox, confine: Confine, live: Live) -> None:
    with sandbox.start(confine("linger-and-stay", processes=True)) as process:
        assert are_two(live)
        os.kill(process.supervisor_pid, signal.SIGKILL)
        assert gone(live)


def test_nothing_outlives_the_killed_inner_guard(sandbox: Sandbox, confine: Confine, live: Live) -> None:
    with sandbox.start(confine("linger-and-stay", processes=True)) as process:
        assert are_two(live)
        os.kill(guard_of(process), signal.SIGKILL)
        assert gone(live)


def test_nothing_outlives_a_signal_to_the_supervisors_group(sandbox: Sandbox, confine: Confine, live: Live) -> None:
    argv = sandbox.argv(confine("linger-and-stay", processes=True))
    with subprocess.Popen(argv, start_new_session=True) as supervisor:
        assert are_two(live)
        os.killpg(supervisor.pid, signal.SIGTERM)  # as ninja stops a command
        assert gone(live)


@pytest.mark.parametrize("way", ["start", "argv"])
def test_nothing_outlives_a_killed_parent(sandbox: Sandbox, confine: Confine, live: Live, way: str) -> None:
    confined = confine("linger-and-stay", processes=True)
    program = (
        "import subprocess, time\nfrom pathlib import Path\nfrom ridgeline.tools.sandbox.sandbox import *\n"
        f"c = Confined(command={confined.command!r}, readable=(Path({confined.command[0]!r}),), allow_processes=True)\n"
        f"s = Sandbox(Tier({str(sandbox.tier)!r}))\n"
        + ("p = s.start(c)\n" if way == "start" else "p = subprocess.Popen(s.argv(c))\n")
        + "print('up', flush=True)\ntime.sleep(60)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, env=environment) as parent:
        assert parent.stdout and parent.stdout.readline() == b"up\n"
        assert are_two(live)
        parent.kill()
        parent.wait()
        assert gone(live)


def test_a_command_line_says_why_it_was_ended(sandbox: Sandbox, confine: Confine, live: Live) -> None:
    argv = sandbox.argv(confine("sleep", wall_s=0.3))
    ended = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=20)
    assert ended.returncode == 124
    assert ended.stderr == "sandbox: killed: wall limit\n"
    assert gone(live)
    assert sandbox.tier in (Tier.BUBBLEWRAP, Tier.LANDLOCK)
