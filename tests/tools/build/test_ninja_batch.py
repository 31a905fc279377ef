"""A batch runs each command as it was given, and takes them along when it is cancelled, at whatever moment."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from ridgeline.tools.build.ninja_batch import BuildCommand, run_batch

pytestmark = pytest.mark.any_tier

LIMIT_S = 60


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


async def test_batch_cancelled_while_ninja_starts_leaves_no_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a busy machine a command runs before asyncio has heard of the program that started it."""
    start, written = asyncio.create_subprocess_exec, tmp_path / "pid"
    has_command = asyncio.Event()

    async def start_slowly(*argv: str, **options: Any) -> asyncio.subprocess.Process:
        process = await start(*argv, **options)
        deadline = time.monotonic() + LIMIT_S
        while not (written.exists() and written.read_text()):
            assert time.monotonic() < deadline
            await asyncio.sleep(0.01)
        has_command.set()
        await asyncio.sleep(0.1)  # here it is cancelled
        return process

    monkeypatch.setattr("asyncio.create_subprocess_exec", start_slowly)
    command = BuildCommand(name="c0", argv=("sh", "-c", f"echo $$ > {written}; exec sleep 1000"), pool="compile")
    batch = asyncio.create_task(run_batch(tmp_path, [command], {"compile": 1}))
    await asyncio.wait_for(has_command.wait(), LIMIT_S)
    batch.cancel()
    with pytest.raises(asyncio.CancelledError):
        await batch
    pid, deadline = int(written.read_text()), time.monotonic() + LIMIT_S
    while is_running(pid) and time.monotonic() < deadline:
        await asyncio.sleep(0.05)
    assert not is_running(pid)


async def test_commands_reach_the_shell_as_they_were_given(tmp_path: Path) -> None:
    words = ("$HOME", "$$", "a  b   ", "c: d", "it's", "x" * 400, "y " * 400)
    command = BuildCommand(name="c0", argv=("printf", "%s\\n", *words), pool="compile")
    (outcome,) = await run_batch(tmp_path, [command], {"compile": 1})
    assert outcome.exit_code == 0
    assert outcome.log.decode().splitlines() == list(words)
