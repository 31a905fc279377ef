"""The environments of the processes that are started."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ridgeline.tools.machine.devices import detect_device
from ridgeline.tools.machine.python_env import clean_environment, compute_environment, python_path
from ridgeline.tools.records.problem import Device
from ridgeline.tools.records.vocabulary import DeviceKind

GPU = Device(
    kind=DeviceKind.CUDA,
    name="a GPU",
    arch="sm_90a",
    uuid="GPU-1",
    cores=132,
    memory_bytes=1 << 30,
    cache_bytes=1 << 20,
)


@pytest.mark.parametrize(
    ("on_gpu", "bound", "is_bound"), [(False, True, True), (False, False, False), (True, True, False)]
)
def test_threads_are_bound_on_a_cpu_where_asked(*, on_gpu: bool, bound: bool, is_bound: bool) -> None:
    device = GPU if on_gpu else detect_device("cpu")
    assert ("OMP_PROC_BIND" in compute_environment(device, bound=bound)) is is_bound


def test_a_process_on_a_gpu_sees_that_one_alone() -> None:
    assert compute_environment(GPU)["CUDA_VISIBLE_DEVICES"] == "GPU-1"


def test_a_process_for_a_cpu_sees_no_gpu() -> None:
    assert compute_environment(detect_device("cpu"))["CUDA_VISIBLE_DEVICES"] == ""


def test_an_evaluator_finds_the_package_and_keeps_thread_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    given = {"OMP_NUM_THREADS": "2", "PATH": "/bin", "GOOGLE_API_KEY": "x", "PYTHONPATH": "/mine::its", "TMPDIR": "tmp"}
    kept = clean_environment(given, cache_dir=Path("cache"))
    assert kept["OMP_NUM_THREADS"] == "2"
    assert "GOOGLE_API_KEY" not in kept
    package, *others = kept["PYTHONPATH"].split(os.pathsep)
    assert others == ["/mine", str(tmp_path / "its")]
    assert (Path(package) / "ridgeline" / "__init__.py").exists()
    assert (kept["TMPDIR"], kept["RIDGELINE_CACHE_DIR"]) == (str(tmp_path / "tmp"), str(tmp_path / "cache"))


def test_a_child_imports_what_its_parent_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "modules").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("modules")
    paths = python_path().split(os.pathsep)
    assert paths[1] == str(tmp_path / "modules")
    assert all(Path(path).is_absolute() for path in paths)
    assert len(paths) == len(set(paths))
