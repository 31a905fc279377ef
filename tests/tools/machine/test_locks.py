"""The device lock between real processes."""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from ridgeline.tools.machine.locks import DeviceLock

HOLDER = """
import asyncio, sys
from pathlib import Path
from ridgeline.tools.machine.locks import DeviceLock

async def main():
    lock = DeviceLock("cpu", Path(sys.argv[1]))
    async with getattr(lock, sys.argv[2])():
        print("held", flush=True)
        await asyncio.to_thread(sys.stdin.read)

asyncio.run(main())
"""


def start_holder(folder: Path, mode: str) -> subprocess.Popen[str]:
    """Start a process that holds the lock until its stdin closes, and return once it does."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, "-c", HOLDER, str(folder), mode]
    holder = subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    return holder


def end(holder: subprocess.Popen[str]) -> None:
    holder.communicate("", timeout=20)


async def is_free(lock: DeviceLock, mode: str, *, within_s: float = 20.0) -> bool:
    """Say whether the lock is taken in that time; where it is said to be free, a busy machine may take long."""
    try:
        async with asyncio.timeout(within_s), getattr(lock, mode)():
            return True
    except TimeoutError:
        return False


def is_closed(turnstile: Path) -> bool:
    """Say whether somebody who waits for a lock keeps its turnstile."""
    if turnstile.exists():
        with turnstile.open() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
    return False


@pytest.mark.parametrize(
    ("held", "wanted", "free"),
    [
        ("exclusive", "exclusive", False),
        ("exclusive", "shared", False),
        ("shared", "exclusive", False),
        ("shared", "shared", True),
    ],
)
async def test_a_measurement_is_alone_and_builds_are_not(tmp_path: Path, held: str, wanted: str, free: bool) -> None:
    holder = start_holder(tmp_path, held)
    try:
        assert await is_free(DeviceLock("cpu", tmp_path), wanted, within_s=20.0 if free else 0.15) is free
        assert await is_free(DeviceLock("GPU-1", tmp_path), wanted)
    finally:
        end(holder)
    assert await is_free(DeviceLock("cpu", tmp_path), wanted)


async def test_a_killed_holder_releases_the_device(tmp_path: Path) -> None:
    holder = start_holder(tmp_path, "exclusive")
    holder.send_signal(signal.SIGKILL)
    end(holder)
    assert await is_free(DeviceLock("cpu", tmp_path), "exclusive")


async def test_a_waiting_measurement_stops_new_builds(tmp_path: Path) -> None:
    builder = start_holder(tmp_path, "shared")
    lock = DeviceLock("cpu", tmp_path)
    order: list[str] = []

    async def hold(mode: str) -> None:
        async with getattr(lock, mode)():
            order.append(mode)

    measurement = asyncio.create_task(hold("exclusive"))
    async with asyncio.timeout(20):
        while not is_closed(tmp_path / "cpu.turn"):
            await asyncio.sleep(0.01)
    late_build = asyncio.create_task(hold("shared"))
    await asyncio.sleep(0.1)
    assert order == []
    end(builder)
    await asyncio.gather(measurement, late_build)
    assert order == ["exclusive", "shared"]


async def test_builds_that_keep_coming_do_not_starve_a_measurement(tmp_path: Path) -> None:
    lock = DeviceLock("cpu", tmp_path)
    measured = asyncio.Event()

    async def build_forever() -> None:
        while not measured.is_set():
            async with lock.shared():
                await asyncio.sleep(0.02)

    builders = [asyncio.create_task(build_forever()) for _ in range(4)]
    await asyncio.sleep(0.05)
    async with asyncio.timeout(60), lock.exclusive():
        measured.set()
    await asyncio.gather(*builders)


async def test_a_cancelled_wait_leaves_the_lock_free(tmp_path: Path) -> None:
    holder = start_holder(tmp_path, "shared")
    lock = DeviceLock("cpu", tmp_path)
    assert not await is_free(lock, "exclusive", within_s=0.15)
    assert await is_free(lock, "shared")
    end(holder)


async def test_lock_files_are_shared_by_all_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RIDGELINE_LOCK_DIR", str(tmp_path / "locks"))
    before = os.umask(0o077)
    try:
        async with DeviceLock("GPU-1/../x").exclusive():
            pass
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "locks").stat().st_mode) == 0o1777
    assert {file.name for file in (tmp_path / "locks").iterdir()} == {"GPU-1_.._x.lock", "GPU-1_.._x.turn"}
    assert all(stat.S_IMODE(file.stat().st_mode) == 0o666 for file in (tmp_path / "locks").iterdir())
