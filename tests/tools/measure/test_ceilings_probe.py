"""The ceilings probe of a GPU: it builds without one, and its working sets go beyond the cache."""

import json
import shutil
from pathlib import Path

import pytest
from tests.tools.measure.gpus import gpu_of

from ridgeline.tools.errors import DeviceError, EngineError
from ridgeline.tools.machine.devices import detect_device
from ridgeline.tools.measure.ceilings import measure_ceilings
from ridgeline.tools.measure.ceilings_probe import CudaProbe

HAS_GPU = Path("/dev/nvidiactl").exists()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RIDGELINE_CACHE_DIR", str(tmp_path / "cache"))


@pytest.mark.first_case
@pytest.mark.skipif(shutil.which("nvcc") is None or HAS_GPU, reason="needs nvcc and no GPU")
@pytest.mark.parametrize("arch", [pytest.param("sm_80", marks=pytest.mark.slow), "sm_90a"])
def test_probe_of_a_gpu_builds_here_and_its_cuda_error_is_one_line(cache: None, arch: str) -> None:
    with pytest.raises(
        EngineError, match="NVIDIA H200: the ceilings probe failed with status 3: opening the GPU"
    ) as caught:
        measure_ceilings(gpu_of(arch))
    assert "\n" not in str(caught.value)


def test_missing_nvcc_is_one_clear_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    gxx = shutil.which("g++")
    if gxx is None:
        pytest.skip("needs g++")
    (tmp_path / "g++").symlink_to(gxx)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("ridgeline.tools.build.toolchain._Nvcc.folder", str(tmp_path))
    with pytest.raises(DeviceError, match="no nvcc on this machine: install the CUDA toolkit"):
        measure_ceilings(gpu_of())


@pytest.mark.gpu
@pytest.mark.skipif(not HAS_GPU, reason="needs an NVIDIA GPU")
def test_probe_of_a_gpu_finds_memory_below_the_cache_and_tensor_cores_above_ffma(cache: None) -> None:
    device = detect_device("cuda")
    found = measure_ceilings(device)
    print(json.dumps(found.to_json(), indent=1))
    assert found.threads == device.cores
    beyond, largest = found.bandwidth[-1], found.bandwidth[-1].bytes
    assert largest > 8 * device.cache_bytes
    for row in found.bandwidth:
        assert min(row.read, row.read_streaming, row.write, row.write_streaming, row.copy, row.copy_streaming) > 0
    assert found.fastest_anywhere > beyond.fastest  # the L2 is faster than the memory behind it
    assert found.class_gflops["fp32"] == found.fma_gflops
    assert found.class_gflops["fp16"] > 1.5 * found.class_gflops["tf32"] > 2 * found.fma_gflops
    assert found.class_gflops["bf16"] == pytest.approx(found.class_gflops["fp16"], rel=0.15)


def test_working_sets_of_a_gpu_go_far_beyond_its_cache() -> None:
    assert CudaProbe(gpu_of()).totals() == (2 << 20, 16 << 20, 64 << 20, 120 << 20, 480 << 20, 1920 << 20)
