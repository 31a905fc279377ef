"""The examples of docs/use-the-kernel.md, built and run as they stand there, around the shipped seed kernel.

The seed stands for a kernel that was found, so what is built of it runs in the sandbox.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ridgeline.graph.cli.summary import HOW_TO_CALL
from ridgeline.graph.session.on_device import on_device
from ridgeline.problems.spec import load_problem
from ridgeline.tools.build.flags import CPU_FLAGS, base_flags
from ridgeline.tools.build.interfaces import problem_header
from ridgeline.tools.engine import DescribeTask
from ridgeline.tools.local.evaluator import Evaluator
from ridgeline.tools.machine.devices import detect_device
from ridgeline.tools.records.vocabulary import DeviceKind
from ridgeline.tools.sandbox.python import python_paths
from ridgeline.tools.sandbox.sandbox import Confined, Limits, Sandbox, claim_workdir, probe_sandbox

pytestmark = pytest.mark.sandboxed

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "use-the-kernel.md").read_text(encoding="utf-8")
QUICKSTART = ROOT / "problems" / "quickstart"
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
FILES = {text.split("\n", 1)[0].lstrip("/# "): text for language, text in BLOCKS if language in ("cpp", "python")}
COMMANDS = [line for language, text in BLOCKS if language == "bash" for line in text.splitlines()]


@pytest.fixture(scope="module")
def run_folder(warm_judge: None) -> Iterator[Path]:
    """A folder as a search leaves it, and the page's files in it."""
    with tempfile.TemporaryDirectory(prefix="ridgeline-use-", dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)  # confined code may become another user
        problem = on_device(load_problem(QUICKSTART), detect_device("cpu"))
        evaluator = Evaluator(problem.device, cache_dir=folder / "cache")
        try:
            description = evaluator.describe(DescribeTask(problem=problem))
        finally:
            evaluator.close()
        (folder / "problem.h").write_text(problem_header(description.signature, DeviceKind.CPU))
        shutil.copy(QUICKSTART / "seeds" / "fused.cpp", folder / "best.cpp")
        shutil.copy(QUICKSTART / "reference.py", folder)
        for file, text in FILES.items():
            (folder / file).write_text(text)
        for command in COMMANDS:
            if command.startswith("g++"):
                subprocess.run(shlex.split(command), cwd=folder, check=True)
        yield folder


def run_confined(folder: Path, *command: str, allow_processes: bool = False) -> str:
    """Run a command in the sandbox, in the folder, and return what it printed."""
    claim_workdir(folder)
    confined = Confined(
        command=command,
        workdir=folder,
        readable=python_paths(),
        env={
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HOME": str(folder),
            "TORCH_EXTENSIONS_DIR": str(folder / "extensions"),
        },
        limits=Limits(wall_s=280.0, memory_bytes=6 << 30, file_bytes=1 << 30),
        allow_processes=allow_processes,
    )
    ended, said = Sandbox(probe_sandbox().tier).run(confined)
    assert ended.code == 0, said + ended.message
    return said


def test_a_search_and_the_readme_lead_to_the_page() -> None:
    assert (ROOT / HOW_TO_CALL).read_text(encoding="utf-8") == PAGE
    assert f"({HOW_TO_CALL})" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_page_builds_with_the_flags_that_kernels_are_measured_with() -> None:
    assert set(CPU_FLAGS) <= set(shlex.split(COMMANDS[0]))
    assert set(CPU_FLAGS) <= set(re.findall(r"[-\w=+]+", FILES["load_kernel.py"]))


def test_the_cuda_command_has_the_flags_that_a_hopper_kernel_is_measured_with() -> None:
    (command,) = [shlex.split(line) for line in COMMANDS if line.startswith("nvcc")]
    hopper = replace(detect_device("cpu"), kind=DeviceKind.CUDA, arch="sm_90a")
    assert {*base_flags(hopper), "-shared", "-Xcompiler=-fPIC,-fvisibility=hidden"} <= set(command)


@pytest.mark.thorough
def test_kernel_is_called_from_cpp(run_folder: Path) -> None:
    assert "./demo" in COMMANDS
    assert run_confined(run_folder, str(run_folder / "demo")).strip() in PAGE


def test_kernel_is_called_from_python_with_ctypes(run_folder: Path) -> None:
    said = run_confined(run_folder, sys.executable, "call_kernel.py")
    assert re.fullmatch(r"largest difference to PyTorch: \d\.\de-0[67]\n", said)


@pytest.mark.slow
def test_kernel_is_called_from_python_as_an_extension(run_folder: Path) -> None:
    said = run_confined(run_folder, sys.executable, "load_kernel.py", allow_processes=True)
    assert "largest difference to PyTorch" in said
