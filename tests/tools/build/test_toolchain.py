"""Which compiler builds, and what is said when compiler, GPU and driver do not fit each other."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ridgeline.tools.build.toolchain import (
    check_architecture,
    check_driver,
    compiler_path,
    find_toolchain,
    installed_version,
    toolchain_for,
)
from ridgeline.tools.errors import DeviceError
from ridgeline.tools.machine.devices import detect_device
from ridgeline.tools.records.problem import Device
from ridgeline.tools.records.vocabulary import DeviceKind

needs_nvcc = pytest.mark.skipif(compiler_path(DeviceKind.CUDA) is None, reason="needs nvcc")


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


def _gpu(driver: str, arch: str = "sm_90a") -> Device:
    return Device(
        kind=DeviceKind.CUDA, name="NVIDIA H200", arch=arch, uuid="GPU-1", cores=132, memory_bytes=1, cache_bytes=1,
        driver=driver,
    )  # fmt: skip


NVCC_13 = "Build cuda_13.0.r13.0/compiler.36424714_0"


def test_driver_older_than_the_toolkit_is_one_line_with_the_remedy() -> None:
    with pytest.raises(
        DeviceError, match=r"\(535.104.05, CUDA 12.2\) is older than the toolkit \(CUDA 13.0\)"
    ) as caught:
        check_driver(_gpu("535.104.05, CUDA 12.2"), NVCC_13)
    assert "\n" not in str(caught.value)
    assert "install a driver for CUDA 13" in str(caught.value)


@pytest.mark.parametrize(
    ("driver", "nvcc"),
    [
        ("580.95.05, CUDA 13.0", NVCC_13),
        ("CUDA 13.0", "Cuda compilation tools, release 13.2, V13.2.1"),  # one major version: compatible
        ("590.1, CUDA 14.1", NVCC_13),
        ("CUDA 13.0", "unknown version"),
    ],
)
def test_driver_of_the_same_major_version_or_a_newer_one_runs_what_nvcc_builds(driver: str, nvcc: str) -> None:
    check_driver(_gpu(driver), nvcc)


@needs_nvcc
def test_the_compiler_found_here_builds_for_a_present_gpu_with_a_present_driver() -> None:
    found = toolchain_for(_gpu("999.1, CUDA 99.0"))
    assert "cuda" in found.version
    with pytest.raises(DeviceError, match="is older than the toolkit"):
        toolchain_for(_gpu("470.1, CUDA 11.4"))


@needs_nvcc
@pytest.mark.parametrize(("arch", "remedy"), [("sm_20", "an earlier"), ("sm_990a", "a later")])
def test_gpu_that_the_toolkit_does_not_build_for_is_one_line_with_the_remedy(arch: str, remedy: str) -> None:
    line = (
        rf"NVIDIA H200: the toolkit \(CUDA \d+\.\d+\) does not build for {arch}: put the nvcc of {remedy} one first in"
    )
    with pytest.raises(DeviceError, match=line) as caught:
        toolchain_for(_gpu("999.1, CUDA 99.0", arch))
    assert "\n" not in str(caught.value)


def test_accelerated_architecture_is_built_where_its_plain_one_is_listed() -> None:
    check_architecture(_gpu("", "sm_90a"), NVCC_13, frozenset({"sm_80", "sm_90"}))
    check_architecture(_gpu("", "sm_90a"), NVCC_13, frozenset())  # an nvcc that lists nothing


def test_without_nvcc_a_gpu_is_refused_with_the_remedy_and_a_cpu_is_not(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("g++", "sh"):
        (tmp_path / name).symlink_to(Path("/usr/bin") / name)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("ridgeline.tools.build.toolchain._Nvcc.folder", str(tmp_path))
    with pytest.raises(
        DeviceError, match="no nvcc on this machine: install the CUDA toolkit, put its bin folder into PATH, or"
    ):
        toolchain_for(_gpu("580.1, CUDA 13.0"))
    assert toolchain_for(detect_device("cpu")).compiler == tmp_path / "g++"


def test_a_version_that_no_driver_has_is_not_read_as_one() -> None:
    check_driver(_gpu(f"CUDA {'9' * 5000}.1"), NVCC_13)
