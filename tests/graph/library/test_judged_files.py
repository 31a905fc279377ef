"""Reading kernels' files: what is none is refused in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from ridgeline.graph.library.judged_files import read_sources
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
