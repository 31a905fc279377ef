"""The environment of the processes that compute."""

from __future__ import annotations

import pytest

from ridgeline.tools.machine.devices import detect_device
from ridgeline.tools.machine.measuring_environment import compute_environment
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
    ("on_gpu", "in_python", "is_bound"), [(False, True, True), (False, False, False), (True, True, False)]
)
def test_threads_are_bound_on_a_cpu_beside_a_python_runner_alone(
    *, on_gpu: bool, in_python: bool, is_bound: bool
) -> None:
    device = GPU if on_gpu else detect_device("cpu")
    assert ("OMP_PROC_BIND" in compute_environment(device, in_python=in_python)) is is_bound


def test_a_process_on_a_gpu_sees_that_one_alone() -> None:
    assert compute_environment(GPU)["CUDA_VISIBLE_DEVICES"] == "GPU-1"
