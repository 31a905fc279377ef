"""The launcher: built once, by nobody else, and what is told where it cannot be."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest

from ridgeline.tools.errors import SandboxError, StorageError
from ridgeline.tools.sandbox import launcher as launcher_module
from ridgeline.tools.sandbox.launcher import build_launcher
from ridgeline.tools.sandbox.sandbox import (
    Tier,
    reason_against,
)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cache folder with the launcher in it, of which each test has a copy. All are built in half the time."""
    folder = tmp_path_factory.mktemp("built")
    quicker = [flag.replace("-O2", "-O0") for flag in launcher_module._FLAGS]
    with mock.patch.object(launcher_module, "_FLAGS", quicker):
        build_launcher(folder)
        yield folder


def copied(built: Path, folder: Path) -> Path:
    """Return the launcher of a copy of the cache, which is taken as it is."""
    shutil.copytree(built, folder)
    (launcher,) = folder.iterdir()
    assert build_launcher(folder) == launcher
    return launcher


def test_the_launcher_is_built_once_and_not_taken_from_others(built: Path, tmp_path: Path) -> None:
    first = copied(built, tmp_path / "cache")
    stamp = first.stat().st_mtime_ns
    assert build_launcher(tmp_path / "cache").stat().st_mtime_ns == stamp
    first.chmod(0o777)  # somebody else could have written it
    assert build_launcher(tmp_path / "cache").stat().st_mode & 0o022 == 0


@pytest.mark.first_case
@pytest.mark.parametrize(
    "kept", [pytest.param(0, marks=pytest.mark.slow), 100, pytest.param(-1000, marks=pytest.mark.slow)]
)
def test_a_launcher_that_was_cut_is_built_again(built: Path, tmp_path: Path, kept: int) -> None:
    launcher = copied(built, tmp_path / "cache")
    whole = launcher.stat().st_size
    os.truncate(launcher, kept % whole)
    assert build_launcher(tmp_path / "cache").stat().st_size == whole


def test_a_cache_that_cannot_hold_the_launcher_is_told_and_no_tier_blamed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("RIDGELINE_CACHE_DIR", str(tmp_path / "file" / "cache"))
    with pytest.raises(StorageError, match=r"file/cache/sandbox: the sandbox's launcher .* set RIDGELINE_CACHE_DIR"):
        reason_against(Tier.LANDLOCK)


def test_a_machine_without_a_compiler_is_told_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SandboxError, match=r"apt-get install g\+\+"):
        build_launcher(tmp_path / "cache")


def test_a_compiler_that_hangs_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "g++").write_text("#!/bin/sh\nexec /bin/sleep 5\n")
    (tmp_path / "g++").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("ridgeline.tools.sandbox.launcher._BUILD_LIMIT_S", 0.1)
    with pytest.raises(SandboxError, match="did not build the sandbox's launcher"):
        build_launcher(tmp_path / "cache")
