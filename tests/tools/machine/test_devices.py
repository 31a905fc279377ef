"""The machine's facts, checked against other ways of asking."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ridgeline.tools.errors import DeviceError
from ridgeline.tools.machine.devices import (
    _cpuinfo,
    _parse_size,
    detect_device,
    measurement_cores,
    same_gpus,
)
from ridgeline.tools.records.problem import Device
from ridgeline.tools.records.vocabulary import DeviceKind

has_gpu = Path("/dev/nvidia0").exists()


def test_cpu_device_names_the_model_and_the_usable_cores() -> None:
    device = detect_device("cpu")
    assert device.kind is DeviceKind.CPU
    assert device.name in Path("/proc/cpuinfo").read_text()
    assert 1 <= device.cores <= len(os.sched_getaffinity(0))
    assert device.uuid == "cpu"
    assert device.cache_bytes > 1 << 18
    assert 1 << 28 < device.memory_bytes <= os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def test_detection_is_stable_and_survives_json() -> None:
    device = detect_device("cpu")
    assert detect_device("cpu") == device
    assert Device.from_json(device.to_json()) == device
    assert "/" not in device.arch  # it names cache files


def test_measurement_cores_follow_the_affinity_mask() -> None:
    allowed = os.sched_getaffinity(0)
    code = "from ridgeline.tools.machine.devices import measurement_cores as m; print(m())"
    command = ["taskset", "-c", str(min(allowed)), sys.executable, "-c", code]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env={"PYTHONPATH": "src", "PATH": "/usr/bin"}
    )
    assert done.stdout.strip() == f"({min(allowed)},)"
    assert set(measurement_cores()) <= allowed


@pytest.mark.parametrize("spec", ["tpu", "cuda:x", "cpu:1", "", "CUDA"])
def test_unknown_device_is_refused_in_one_line(spec: str) -> None:
    with pytest.raises(DeviceError, match="use cpu, cuda or cuda:N") as caught:
        detect_device(spec)
    assert "\n" not in str(caught.value)


@pytest.mark.skipif(has_gpu, reason="this machine has a GPU")
def test_missing_gpu_is_one_clear_line() -> None:
    with pytest.raises(DeviceError, match="use device='cpu'") as caught:
        detect_device("cuda")
    assert "\n" not in str(caught.value)


def test_cpu_is_the_only_one_of_its_kind() -> None:
    device = detect_device("cpu")
    assert same_gpus(device) == (device,)


def test_torch_is_not_imported_for_hardware_facts() -> None:
    code = "import sys; from ridgeline.tools.machine.devices import detect_device as d; d('cpu'); print('torch' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True, text=True, check=True, env={"PYTHONPATH": "src", "PATH": "/usr/bin"},
    )  # fmt: skip
    assert done.stdout.strip() == "False"


def test_another_architecture_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    uname = os.uname()
    monkeypatch.setattr(os, "uname", lambda: os.uname_result((*uname[:4], "aarch64")))
    with pytest.raises(DeviceError, match="this processor is aarch64; kernels are built and measured on x86-64 only"):
        detect_device("cpu")


def test_arm_cpuinfo_and_sizes_are_understood() -> None:
    assert _cpuinfo("processor\t: 0\nFeatures\t: fp asimd\n\nprocessor\t: 1\n")["Features"] == "fp asimd"
    assert [_parse_size(s) for s in ("48K", "32M", "1G", "512")] == [48 << 10, 32 << 20, 1 << 30, 512]
