"""Reading kernels' files: what is none is refused in one line."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.graph.conftest import write_problem
from tests.graph.memory_engine import MemoryEngine

from ridgeline.graph.library.evaluation import aevaluate
from ridgeline.graph.library.judged_files import read_sources
from ridgeline.tools.engine import BaselineTask, Task
from ridgeline.tools.errors import ProblemError


def test_a_kernels_file_is_read(tmp_path: Path) -> None:
    file = tmp_path / "kernel.cpp"
    file.write_text("void run() {}")
    assert read_sources([file], "cpp") == [(file, "void run() {}")]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("kernel.cu", "this device takes .cpp files here"),
        ("kernel.c", "rename it to .*/kernel.cpp: it is compiled as cpp"),
        ("folder", "is a folder; give a kernel's"),
    ],
)
def test_what_is_no_kernel_of_this_device_is_refused(tmp_path: Path, name: str, reason: str) -> None:
    for kernel in ("kernel.cu", "kernel.c"):
        (tmp_path / kernel).write_text("void run() {}")
    (tmp_path / "folder").mkdir()
    with pytest.raises(ProblemError, match=f"{name}: {reason}"):
        read_sources([tmp_path / name], "cpp")


async def test_a_cancelled_evaluation_ends_after_what_the_engine_cleans_up(tmp_path: Path) -> None:
    begun, steps = asyncio.Event(), list[str]()

    class CleansUp(MemoryEngine):
        async def submit(self, task: Task[Any]) -> Any:
            if not isinstance(task, BaselineTask):
                return await super().submit(task)
            begun.set()
            try:
                await asyncio.sleep(60)
            finally:
                await asyncio.sleep(0.05)
                steps.append("cleaned up")

    problem = write_problem(tmp_path / "problem")
    judging = asyncio.ensure_future(aevaluate(problem, ["// speed 2.0\n"], engine=CleansUp()))
    await begun.wait()
    judging.cancel()
    with pytest.raises(asyncio.CancelledError):
        await judging
    assert steps == ["cleaned up"]
