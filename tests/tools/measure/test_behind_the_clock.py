"""Real processes that idle, work, and start threads while nobody asks them for anything."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest
from tests.tools.machine.test_process_use import comes_true

from ridgeline.tools.machine.process_use import thread_count
from ridgeline.tools.measure.behind_the_clock import late_threads, work_when_timed, work_when_verified
from ridgeline.tools.records.vocabulary import ReasonCode

WORKER = """
import sys, threading, time
def work():
    while working.is_set():
        pass
working, ending = threading.Event(), threading.Event()
print("ready", flush=True)
for line in sys.stdin:
    if line == "thread\\n":
        threading.Thread(target=ending.wait, daemon=True).start()
    elif line == "work\\n":
        working.set()
        threading.Thread(target=work, daemon=True).start()
    else:
        working.clear()
    print("done", flush=True)
"""


class Process:
    def __init__(self, popen: subprocess.Popen[str]) -> None:
        self._popen = popen
        self.pid = popen.pid

    def ask(self, what: str) -> None:
        assert self._popen.stdin is not None and self._popen.stdout is not None
        self.cont()
        self._popen.stdin.write(f"{what}\n")
        self._popen.stdin.flush()
        assert self._popen.stdout.readline() == "done\n"
        self.stop()

    def cont(self) -> None:
        self._popen.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        self._popen.send_signal(signal.SIGSTOP)


@pytest.fixture
def process() -> Iterator[Process]:
    command = [sys.executable, "-c", WORKER]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as popen:
        assert popen.stdout is not None and popen.stdout.readline() == "ready\n"
        yield Process(popen)
        popen.kill()


def test_a_process_that_waits_for_a_request_works_in_no_look(process: Process) -> None:
    assert work_when_verified(process, lambda: process.ask("rest")) is None
    assert work_when_timed(process, 0.1) is None


def test_work_between_calls_is_found_when_verified_and_when_timed(process: Process) -> None:
    verified = work_when_verified(process, lambda: process.ask("work"))
    timed = work_when_timed(process, 0.5)
    assert verified is not None and timed is not None
    assert verified.code is timed.code is ReasonCode.BACKGROUND_WORK
    assert "idle between calls it uses" in verified.reason
    assert "of a core while no call was running" in timed.reason


def test_a_verification_blames_nobody_for_one_look(process: Process) -> None:
    asked = iter(["work", "rest"])
    assert work_when_verified(process, lambda: process.ask(next(asked))) is None
    assert next(asked, None) is None, "the first look found work"


def test_threads_beyond_those_of_the_first_calls_are_late(process: Process) -> None:
    warm = thread_count(process.pid)
    assert late_threads(process.pid, warm) == 0
    process.ask("thread")
    assert comes_true(lambda: late_threads(process.pid, warm) == 1, 20)
    assert late_threads(process.pid, warm + 5) == 0
