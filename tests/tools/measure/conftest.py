"""Sides of a timing that are real processes, the judge of their sets, and a folder of a module's own."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.tools.measure.process_side import FileJudge, ProcessSide


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = Path(__file__).parent / "native" / "side.cpp"
    out = tmp_path_factory.mktemp("side") / "side"
    subprocess.run(["g++", "-O2", "-pthread", "-o", str(out), str(source)], check=True)
    return out


@pytest.fixture
def judge(tmp_path: Path) -> FileJudge:
    return FileJudge(tmp_path / "sets")


@pytest.fixture
def start(program: Path, judge: FileJudge) -> Iterator[Callable[..., ProcessSide]]:
    sides: list[ProcessSide] = []

    def start_side(mode: str = "honest", *, work: int = 4, of: FileJudge = judge) -> ProcessSide:
        sides.append(ProcessSide(program, of, work, mode))
        return sides[-1]

    yield start_side
    for side in sides:
        side.close()


@pytest.fixture(scope="module")
def folder(hosts: Path) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="ridgeline-verify-", dir="/tmp") as name:
        os.chmod(name, 0o755)  # confined code may become another user
        shutil.copytree(hosts, Path(name, "host"))
        yield Path(name)
