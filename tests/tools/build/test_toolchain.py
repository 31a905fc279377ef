"""Which compiler builds, and what is said of it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ridgeline.tools.build.toolchain import compiler_path, find_toolchain, installed_version
from ridgeline.tools.records.vocabulary import DeviceKind


def test_the_compiler_that_is_named_is_the_one_that_builds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CXX", "clang++")
    version = installed_version(DeviceKind.CPU)
    if version is None:
        pytest.skip("no g++ here")
    used = find_toolchain(DeviceKind.CPU)
    assert (compiler_path(DeviceKind.CPU), version) == (used.compiler, used.version)
    assert version in subprocess.run([used.compiler, "--version"], capture_output=True, text=True, check=True).stdout
    broken = tmp_path / "g++"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert installed_version(DeviceKind.CPU) is None
