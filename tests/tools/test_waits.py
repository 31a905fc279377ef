"""Waiting for a device that another process has is told within two seconds, and only then."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ridgeline.tools.locks import DeviceLock
from ridgeline.tools.waits import Wait, Waits, describe_wait, name_process

HOLDER = """
import asyncio, sys
from pathlib import Path
from ridgeline.tools.locks import DeviceLock

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


async def test_a_wait_for_another_process_is_told_within_two_seconds_and_when_it_is_over(
    holder: subprocess.Popen[str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="ridgeline")
    told: list[tuple[float, Wait | None]] = []
    began = time.monotonic()
    lock = DeviceLock("cpu", tmp_path, waits=Waits(lambda wait: told.append((time.monotonic() - began, wait))))
    waiting = asyncio.create_task(hold(lock))
    await asyncio.sleep(2.0)
    [(after_s, wait)] = told
    assert wait is not None
    assert after_s <= 2.0
    assert wait.holder.startswith(f"pid {holder.pid} ({Path(sys.executable).name} -c")
    assert (wait.device, wait.is_news) == ("cpu", True)
    assert caplog.messages == [f"waiting for cpu, held by {wait.holder}"]
    assert holder.stdin is not None
    holder.stdin.close()
    await waiting
    assert told[1][1] is None


async def test_the_same_holder_is_news_once_a_minute(holder: subprocess.Popen[str], tmp_path: Path) -> None:
    told: list[Wait | None] = []
    lock = DeviceLock("cpu", tmp_path, waits=Waits(told.append))
    for _ in range(2):
        waiting = asyncio.create_task(hold(lock))
        await asyncio.sleep(1.8)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
    assert [wait and wait.is_news for wait in told] == [True, None, False, None]


async def test_a_wait_for_this_process_itself_is_not_told(tmp_path: Path) -> None:
    told: list[Wait | None] = []
    first, second = (DeviceLock("cpu", tmp_path, waits=Waits(told.append)) for _ in range(2))
    async with first.exclusive():
        waiting = asyncio.create_task(hold(second))
        await asyncio.sleep(2.2)
    await waiting
    assert told == []


def test_a_process_is_named_by_its_number_and_command_in_one_short_line() -> None:
    assert name_process(os.getpid()).startswith(f"pid {os.getpid()} ({Path(sys.executable).name} ")
    assert name_process(2**22) == f"pid {2**22}"
    with subprocess.Popen([sys.executable, "-c", "import sys\nsys.stdin.read()"], stdin=subprocess.PIPE) as process:
        named = name_process(process.pid)
    assert named == f"pid {process.pid} ({Path(sys.executable).name} -c import sys sys.stdin.read())"
    assert describe_wait("cpu", named) == f"waiting for cpu: {named} holds it"
