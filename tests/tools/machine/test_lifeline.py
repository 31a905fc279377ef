"""Processes that a reference starts: none outlives the process that runs it, nor Ridgeline's own, whichever way that ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.tools.conftest import exp_problem

from ridgeline.tools.errors import BadReferenceError, EngineError
from ridgeline.tools.judge import outline_process, process
from ridgeline.tools.machine.lifeline import GroupProcess, continue_stopped
from ridgeline.tools.machine.python_env import python_path

STARTS = ("/bin/sh", "-c", "sleep 600 & echo $!; exec sleep 600")
PARENT = f"""
import subprocess, sys
from ridgeline.tools.machine.lifeline import GroupProcess
process = GroupProcess({STARTS!r}, stdout=subprocess.PIPE, text=True)
print(process.pid, process.stdout.readline().strip(), flush=True)
sys.stdin.read()
"""
FORKS = """
import os, sys
if pid := os.fork():
    print(pid, file=open(sys.argv[1], "w"))
else:
    os.closerange(0, 100)
    os.execv("/bin/sleep", ["sleep", "600"])
"""
STOPS = """
import os, signal, sys
request = sys.stdin.readline()
for _ in range(int(sys.argv[1])):
    os.kill(os.getpid(), signal.SIGSTOP)
print('{"code": "raised"}', flush=True)
"""
LIMIT_S = 10.0


def ended(*pids: int) -> bool:
    """Say whether all have ended within the limit; one that nobody waits for yet has."""
    until = time.monotonic() + LIMIT_S
    while any(map(is_live, pids)):
        if time.monotonic() > until:
            return False
        time.sleep(0.005)
    return True


def reached(pid: int, state: str) -> bool:
    """Say whether a process reaches a state of /proc/PID/stat within the limit."""
    until = time.monotonic() + LIMIT_S
    while state_of(pid) != state and time.monotonic() < until:
        time.sleep(0.005)
    return state_of(pid) == state


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def is_live(pid: int) -> bool:
    try:
        return state_of(pid) != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_process_that_a_signal_stopped_goes_on_and_its_stopped_keeper_ends_its_group() -> None:
    started: GroupProcess[str] = GroupProcess(STARTS, stdout=subprocess.PIPE, text=True)
    assert started.stdout is not None
    child = int(started.stdout.readline())
    continue_stopped(started.pid)
    os.killpg(started.pid, signal.SIGSTOP)
    assert reached(started.pid, "T")
    continue_stopped(started.pid)
    assert reached(started.pid, "S"), "the first process sleeps again"
    started.kill()
    started.wait()
    assert ended(child)
    started.stdout.close()
    continue_stopped(started.pid)


def test_what_a_process_started_ends_when_it_has_been_waited_for() -> None:
    started: GroupProcess[str] = GroupProcess(STARTS, stdout=subprocess.PIPE, text=True)
    assert started.stdout is not None
    child = int(started.stdout.readline())
    assert os.getpgid(child) == started.pid
    started.kill()
    assert started.wait() == started.wait() == -signal.SIGKILL
    assert ended(child)
    started.stdout.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("stopped", [False, True], ids=["running", "stopped"])
def test_what_a_process_started_ends_with_ridgeline_s_process(number: signal.Signals, stopped: bool) -> None:
    command = [sys.executable, "-P", "-c", PARENT]
    parent = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={"PYTHONPATH": python_path()}
    )
    assert parent.stdout is not None
    pids = [int(word) for word in parent.stdout.readline().split()]
    assert len(pids) == 2
    if stopped:  # as a judge between two requests
        os.kill(pids[0], signal.SIGSTOP)
    parent.send_signal(number)
    parent.communicate()
    assert ended(*pids)


def test_what_a_reference_started_in_a_judge_ends_with_the_judge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = tmp_path / "pid"
    monkeypatch.setattr(process, "judge_command", lambda *_: (sys.executable, "-S", "-c", FORKS, str(told)))
    with pytest.raises(BadReferenceError, match="ended the process"):
        process.JudgeProcess(exp_problem(), b"secret", tmp_path)
    assert ended(int(told.read_text()))


def test_what_a_reference_started_in_an_outline_ends_with_the_outlines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = tmp_path / "pid"
    monkeypatch.setattr(outline_process, "python_command", lambda *_: (sys.executable, "-S", "-c", FORKS, str(told)))
    with pytest.raises(EngineError), outline_process.OutlineProcess() as outlines:
        outlines.outline("")
    assert ended(int(told.read_text()))


@pytest.mark.parametrize("often", [0, 1, 3])
def test_outlines_that_a_reference_stops_go_on(often: int, monkeypatch: pytest.MonkeyPatch) -> None:
    with outlines_that_stop(often, monkeypatch) as outlines:
        assert outlines.outline("").code == "raised"


def test_outlines_that_are_stopped_without_end_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outline_process, "_GRACE_S", 0.0)
    with outlines_that_stop(10**9, monkeypatch) as outlines, pytest.raises(EngineError, match="again and again"):
        outlines.outline("")


def outlines_that_stop(often: int, monkeypatch: pytest.MonkeyPatch) -> outline_process.OutlineProcess:
    """Return a process that is stopped so often before it answers, as by a reference in a child of it."""
    command = (sys.executable, "-S", "-c", STOPS, str(often))
    monkeypatch.setattr(outline_process, "python_command", lambda *_: command)
    return outline_process.OutlineProcess(limit_s=2.0)
