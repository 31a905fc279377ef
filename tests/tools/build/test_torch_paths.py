"""Torch's own folders are asked once of a process that imports nothing of the host's folder, and then read from disk."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest

from ridgeline.tools.build.torch_paths import TorchPaths, find_torch_paths
from ridgeline.tools.errors import EngineError
from ridgeline.tools.records.vocabulary import DeviceKind

PATHS = TorchPaths(version="9", include=("/i",), library_folders=("/l",), libraries=("c10",), flags=("-std=c++20",))


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in for Python that answers at once and notes its arguments, folder and PYTHONPATH, one line each time."""
    log, python = tmp_path / "asked", tmp_path / "python"
    answer = json.dumps(PATHS.to_json())
    python.write_text(f'#!/bin/sh\necho "$* | $PWD | $PYTHONPATH" >> {log}\ncat <<END\n{answer}\nEND\n')
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    return log


def found(cache_dir: Path) -> TorchPaths:
    with asyncio.Runner() as runner:
        return runner.run(find_torch_paths(cache_dir, DeviceKind.CPU))


def test_torch_is_asked_for_its_folders_once(tmp_path: Path, asked: Path) -> None:
    assert [found(tmp_path / "cache") for _ in range(2)] == [PATHS, PATHS]
    assert len(asked.read_text().splitlines()) == 1


def test_nothing_in_the_current_folder_is_imported_in_torchs_place(
    tmp_path: Path, asked: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("relative")
    (tmp_path / "relative").mkdir()
    found(tmp_path / "cache")
    arguments, folder, python_path = asked.read_text().strip().split(" | ")
    assert arguments == "-P -m ridgeline.tools.build.worker cpu"
    assert folder == "/"
    assert all(os.path.isabs(path) for path in python_path.split(os.pathsep))


def test_folders_that_cannot_be_kept_are_asked_for_again(tmp_path: Path, asked: Path) -> None:
    (tmp_path / "cache").write_text("no folder")
    assert [found(tmp_path / "cache") for _ in range(2)] == [PATHS, PATHS]
    assert len(asked.read_text().splitlines()) == 2


def test_a_torch_that_does_not_import_is_named_with_its_last_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho 'ImportError: libc10.so' >&2\nexit 1\n")
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    with pytest.raises(EngineError, match=r"torch does not import: ImportError: libc10\.so"):
        found(tmp_path / "cache")
