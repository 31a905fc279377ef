"""The facts of this machine's GPUs, and of a machine without any."""

import re
from pathlib import Path

import pytest

from ridgeline.tools.machine.devices import detect_device, same_gpus
from ridgeline.tools.machine.gpus import _cuda_arch, all_gpus, driver_text

has_gpu = Path("/dev/nvidia0").exists()


@pytest.mark.gpu
@pytest.mark.skipif(not has_gpu, reason="needs an NVIDIA GPU")
def test_gpu_device_names_its_uuid_and_architecture() -> None:
    device = detect_device("cuda")
    assert device.uuid.startswith("GPU-")
    assert device.arch.startswith("sm_")
    assert re.fullmatch(r"\d+\.\d+(\.\d+)?, CUDA \d+\.\d+", device.driver)
    assert all_gpus()[0] == device
    assert same_gpus(device)[0] == device


def test_driver_is_named_with_the_newest_cuda_it_knows() -> None:
    assert driver_text("580.159.04", 13000) == "580.159.04, CUDA 13.0"
    assert driver_text("", 12080) == "CUDA 12.8"


@pytest.mark.skipif(has_gpu, reason="this machine has a GPU")
def test_machine_without_a_driver_has_no_gpus() -> None:
    assert all_gpus() == ()


def test_architecture_suffix_is_added_from_hopper_on() -> None:
    assert [_cuda_arch(*v) for v in ((8, 0), (9, 0), (10, 0))] == ["sm_80", "sm_90a", "sm_100a"]
