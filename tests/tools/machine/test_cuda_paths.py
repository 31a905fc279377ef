"""Where a confined Python is told that the CUDA driver's library lies."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from ridgeline.tools.machine import cuda_paths as driver_place
from ridgeline.tools.machine.devices import detect_device
from ridgeline.tools.records.problem import Target
from ridgeline.tools.records.vocabulary import DeviceKind, Interface, PrecisionClass
from ridgeline.tools.runner import device_plans
from ridgeline.tools.runner.device_plans import CudaPlans
from ridgeline.tools.runner.plan import python_environment

PROBLEM = Target(
    name="p",
    reference_source="",
    interface=Interface.MODULE,
    tolerance=PrecisionClass.FP32,
    device=replace(detect_device("cpu"), kind=DeviceKind.CUDA, uuid="GPU-0"),
)


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a driver's library, which /proc names by its full version."""
    library = tmp_path / "driver" / "libcuda.so.580.1"
    library.parent.mkdir()
    library.touch()
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    for module in (driver_place, device_plans):
        monkeypatch.setattr(module, "driver_library", lambda: library)
    return library


def linked(library: Path, folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "libcuda.so.1").symlink_to(library)
    return folder


def test_a_folder_of_its_own_is_named_to_loader_and_linker(library: Path) -> None:
    folder = linked(library, library.parent)
    environment = python_environment(PROBLEM)
    assert environment["LD_LIBRARY_PATH"] == environment["TRITON_LIBCUDA_PATH"] == str(folder)


def test_a_folder_that_only_a_variable_names_is_named_to_a_runner_too(
    library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = linked(library, tmp_path / "links")
    monkeypatch.setenv("LD_LIBRARY_PATH", os.pathsep.join(["/nowhere", str(folder)]))
    environment = python_environment(PROBLEM)
    assert environment["LD_LIBRARY_PATH"] == environment["TRITON_LIBCUDA_PATH"] == str(folder)
    assert CudaPlans().driver_folders() == (library.parent, folder)


def test_a_loader_that_finds_the_driver_by_itself_is_told_nothing(
    library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    system = Path("/usr/lib/x86_64-linux-gnu/libcuda.so.580.1")
    for module in (driver_place, device_plans):
        monkeypatch.setattr(module, "driver_library", lambda: system)
    environment = python_environment(PROBLEM)
    assert "LD_LIBRARY_PATH" not in environment
    assert environment["TRITON_LIBCUDA_PATH"] == str(system.parent)
    assert CudaPlans().driver_folders() == ()
