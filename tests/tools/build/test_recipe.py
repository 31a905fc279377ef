"""What a build's key covers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ridgeline.tools.build.interfaces import ModuleBuild
from ridgeline.tools.build.toolchain import find_toolchain
from ridgeline.tools.engine import CompileTask
from ridgeline.tools.records.problem import DescribedTarget
from ridgeline.tools.records.search import Candidate
from ridgeline.tools.records.vocabulary import DeviceKind


def install(folder: Path, program: str, says: str) -> None:
    (folder / program).write_text(f"#!/bin/sh\necho '{says}'\n")
    (folder / program).chmod(0o755)


async def test_module_on_a_gpu_is_built_again_by_another_host_compiler(
    module_on_gpu: DescribedTarget,
    make_candidate: Callable[..., Candidate],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    candidate = make_candidate("class ModelNew: ...", language="py", interface="module")
    task = CompileTask(problem=module_on_gpu, candidate=candidate)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("importlib.metadata.version", lambda _: "2")
    install(tmp_path, "nvcc", "Build cuda_13.0.r13.0/compiler.36424714_0")
    keys = []
    for version in ("12.2.0", "12.2.0", "13.1.0"):
        install(tmp_path, "g++", f"g++ (Debian) {version}")
        keys.append((await ModuleBuild().recipe(task, find_toolchain(DeviceKind.CUDA), tmp_path)).key)
    assert keys[0] == keys[1] != keys[2]
