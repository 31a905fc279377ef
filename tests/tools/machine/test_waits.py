"""Waiting for a device that another process has is told after a while, and only then."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from ridgeline.tools.machine.locks import DeviceLock
from ridgeline.tools.machine.waits import (
    LOOK_EVERY_S,
    TELL_AFTER_S,
    Holders,
    Wait,
    Waits,
    Watch,
    describe_wait,
    name_process,
    name_processes,
)

SOON_S = 0.1

HOLDER = """
import asyncio, sys
from pathlib import Path
from ridgeline.tools.machine.locks import DeviceLock

async def main():
    async with DeviceLock("cpu", Path(sys.argv[1])).exclusive():
        print("held", flush=True)
        await asyncio.to_thread(sys.stdin.read)

asyncio.run(main())
"""


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that has the device until its stdin closes."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process


async def hold(lock: DeviceLock) -> None:
    async with lock.exclusive():
        pass


async def test_a_wait_for_another_process_is_told_after_a_while_and_when_it_is_over(
    holder: subprocess.Popen[str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="ridgeline")
    told: asyncio.Queue[Wait | None] = asyncio.Queue()
    began = time.monotonic()
    lock = DeviceLock("cpu", tmp_path, waits=Waits(told.put_nowait, tell_after_s=SOON_S))
    waiting = asyncio.create_task(hold(lock))
    wait = await told.get()
    assert time.monotonic() - began >= SOON_S
    assert wait is not None
    assert wait.holder.startswith(f"pid {holder.pid} ({Path(sys.executable).name} -c")
    assert (wait.device, wait.is_news) == ("cpu", True)
    assert caplog.messages == [f"waiting for cpu, held by {wait.holder}"]
    assert holder.stdin is not None
    holder.stdin.close()
    await waiting
    over = told.get_nowait()
    assert over is not None and over.is_over and over.device == "cpu"
    assert describe_wait(over.device, over.holder, over.holders) == "cpu is free: going on"
    assert told.empty()


def test_a_wait_is_told_within_two_seconds() -> None:
    assert Waits().tell_after_s == TELL_AFTER_S < 2


async def test_the_same_holder_is_news_once_a_minute(holder: subprocess.Popen[str], tmp_path: Path) -> None:
    told: asyncio.Queue[Wait | None] = asyncio.Queue()
    lock = DeviceLock("cpu", tmp_path, waits=Waits(told.put_nowait, tell_after_s=SOON_S))
    news = []
    for _ in range(2):
        waiting = asyncio.create_task(hold(lock))
        wait = await told.get()
        assert wait is not None
        news.append(wait.is_news)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        assert told.get_nowait() is None
    assert news == [True, False]


async def test_a_wait_for_this_process_itself_is_not_told(tmp_path: Path) -> None:
    told: list[Wait | None] = []
    waits = Waits(told.append, tell_after_s=SOON_S)
    first, second = (DeviceLock("cpu", tmp_path, waits=waits) for _ in range(2))
    async with first.exclusive():
        waiting = asyncio.create_task(hold(second))
        await asyncio.sleep(SOON_S + LOOK_EVERY_S + 0.1)  # two looks: the second is the one that would tell
    await waiting
    assert told == []


def test_a_process_is_named_by_its_number_and_command_in_one_short_line() -> None:
    assert name_process(os.getpid()).startswith(f"pid {os.getpid()} ({Path(sys.executable).name} ")
    assert name_process(2**22) == f"pid {2**22}"
    program = "import sys\nprint(flush=True)\nsys.stdin.read()"
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()  # a process has no command line yet while it is being started
        named = name_process(process.pid)
    assert named == f"pid {process.pid} ({Path(sys.executable).name} -c import sys print(flush=True) sys.stdin.read())"
    assert describe_wait("cpu", named) == f"waiting for cpu: {named} holds it"


def test_several_holders_are_one_name_and_a_count() -> None:
    named = name_processes([2**22, 2**22 + 1, 2**22 + 2])
    assert named is not None
    assert describe_wait("cpu", named.words, named.count) == f"waiting for cpu: pid {2**22} and 2 others hold it"


def test_holders_that_change_quickly_are_news_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 1000.0
    monkeypatch.setattr("ridgeline.tools.machine.waits.time", SimpleNamespace(monotonic=lambda: now_s))
    told: list[Wait | None] = []
    waits = Waits(told.append)
    watch = Watch("cpu", waits)
    for now_s, holder in ((1000, "a"), (1005, "b"), (1010, "c"), (1016, "c"), (1017, "c"), (1040, "c"), (1041, "a")):  # noqa: B007
        waits.set(watch, Holders(words=holder))
    assert [(wait.holder, wait.is_news) for wait in told if wait] == [
        ("a", True),
        ("b", False),
        ("c", False),
        ("c", True),  # it has the device still
        ("a", False),  # told of within the minute
    ]
