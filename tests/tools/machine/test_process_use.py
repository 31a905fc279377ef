"""What /proc says of a process: whether its threads are at rest, and what they have used of the cores."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.live_processes import open_files

from ridgeline.tools.machine.process_use import (
    ProcessorTime,
    Threads,
    process_clock_s,
    thread_count,
    thread_waited_s,
)

COMES_AND_GOES = """
import sys, threading
for line in sys.stdin:
    thread = threading.Thread(target=lambda: None)
    thread.start()
    thread.join()
    print("ended", flush=True)
"""


def comes_true(is_so: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if is_so():
            return True
    return False


def rests_within(threads: Threads, seconds: float) -> bool:
    return comes_true(threads.are_at_rest, seconds)


def test_threads_that_come_and_go_leave_neither_a_wrong_state_nor_an_open_file() -> None:
    open_before = open_files()
    command = [sys.executable, "-c", COMES_AND_GOES]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        threads = Threads(process.pid)
        for _ in range(5):
            process.stdin.write("go\n")
            process.stdin.flush()
            process.stdout.readline()
            assert not threads.are_at_rest()
            process.send_signal(signal.SIGSTOP)
            assert rests_within(threads, 20)
            process.send_signal(signal.SIGCONT)
        assert comes_true(lambda: thread_count(process.pid) == 1, 20)  # joined is before the kernel's end of it
        process.kill()
        process.wait()
        assert threads.are_at_rest()
        threads.close()
    assert open_files() <= open_before


REPLACES_ITS_THREAD = """
import sys, threading
end = threading.Event()
for line in sys.stdin:
    end.set()
    end = threading.Event()
    threading.Thread(target=end.wait, daemon=True).start()
    print("replaced", flush=True)
"""


def test_a_program_that_replaces_its_threads_holds_no_more_files_of_ours_than_it_has_threads() -> None:
    open_before = open_files()
    command = [sys.executable, "-c", REPLACES_ITS_THREAD]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        threads = Threads(process.pid)
        for _ in range(20):
            process.stdin.write("go\n")
            process.stdin.flush()
            process.stdout.readline()
            process.send_signal(signal.SIGSTOP)
            assert rests_within(threads, 20)
            process.send_signal(signal.SIGCONT)
        pipes, threads_at_most = 2, 3
        assert len(open_files() - open_before) <= pipes + threads_at_most
        threads.close()
        process.kill()


WORKS_IN_THREADS = """
import sys, threading, time
never = threading.Event()
def work(worked, stays):
    end = time.thread_time() + 0.1
    while time.thread_time() < end:
        pass
    worked.set()
    if stays:
        never.wait()
for line in sys.stdin:
    worked, stays = threading.Event(), line.strip() == "stay"
    thread = threading.Thread(target=work, args=(worked, stays), daemon=True)
    thread.start()
    worked.wait() if stays else thread.join()
    time.sleep(0.05)
    print("worked", flush=True)
"""


@pytest.mark.parametrize("thread", ["end", "stay"])
def test_processor_time_counts_threads_that_ended_and_those_that_live(thread: str) -> None:
    command = [sys.executable, "-c", WORKS_IN_THREADS]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write("end\n")
        process.stdin.flush()
        process.stdout.readline()
        used, before_s = ProcessorTime(process.pid), process_clock_s(process.pid)
        process.stdin.write(f"{thread}\n")
        process.stdin.flush()
        process.stdout.readline()
        assert used.seconds() >= 0.05
        assert process_clock_s(process.pid) - before_s >= 0.1, "to the nanosecond, of threads that ended too"
        process.kill()
    assert used.seconds() >= 0


def test_an_idle_process_uses_no_time() -> None:
    with subprocess.Popen(["/bin/sleep", "60"]) as process:
        while Path(f"/proc/{process.pid}/stat").read_text().split()[1:3] != ["(sleep)", "S"]:
            time.sleep(0.01)
        # a thread's state says that it sleeps a moment before it leaves the core, a long one on a busy machine
        assert comes_true(lambda: used_within(process.pid, 0.05) == 0, 20)
        process.kill()


def used_within(pid: int, seconds: float) -> float:
    used = ProcessorTime(pid)
    time.sleep(seconds)
    return used.seconds()


def test_a_thread_that_sleeps_waits_for_no_core() -> None:
    """Once it has slept it waits for as long as the machine is busy: the least of some."""

    def waited_beside_sleep_s() -> float:
        before_s = thread_waited_s()
        time.sleep(0.05)
        return thread_waited_s() - before_s

    assert 0 <= min(waited_beside_sleep_s() for _ in range(10)) < 0.05


def test_a_process_that_is_gone_is_at_rest() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    assert Threads(process.pid).are_at_rest()
    assert process_clock_s(process.pid) == 0
