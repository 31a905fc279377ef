"""Ceilings measured by the real probe, and floors computed from made-up ones."""

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ridgeline.tools.errors import DeviceError, EngineError
from ridgeline.tools.judge.set_count import rotating_limit
from ridgeline.tools.machine.devices import detect_device
from ridgeline.tools.machine.places import home_dir
from ridgeline.tools.measure.roofline import (
    CEILINGS_VERSION,
    Bandwidth,
    Ceilings,
    _read,
    _totals,
    ceilings,
    floor_for,
    measure_ceilings,
)
from ridgeline.tools.records.problem import ArgSpec, Description, Device, Signature
from ridgeline.tools.records.results import Floor
from ridgeline.tools.records.vocabulary import DeviceKind, Role

HAS_GPU = Path("/dev/nvidiactl").exists()
needs_gxx = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    root = tmp_path_factory.mktemp("roofline")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RIDGELINE_CACHE_DIR", str(root / "cache"))
        patch.setenv("RIDGELINE_HOME", str(root / "home"))
        yield root


@pytest.fixture(scope="module")
def measured(folders: Path) -> Ceilings:
    return ceilings(detect_device("cpu"))


@needs_gxx
def test_probe_measures_every_way_at_sizes_up_to_the_rotating_total(measured: Ceilings) -> None:
    device = detect_device("cpu")
    sizes = [b.bytes for b in measured.bandwidth]
    assert sizes == sorted(sizes)
    assert sizes[-1] == pytest.approx(
        rotating_limit(cache_bytes=device.cache_bytes, memory_bytes=device.memory_bytes), rel=0.01
    )
    for row in measured.bandwidth:
        assert min(row.read, row.write, row.write_streaming, row.copy, row.copy_streaming) > 0
    assert measured.threads == device.cores
    assert measured.fma_gflops > measured.bandwidth[-1].fastest / 4  # more operations than loaded numbers


@needs_gxx
def test_ceilings_are_measured_once_and_kept_with_their_date(
    measured: Ceilings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> Ceilings:
        raise AssertionError("measured again")

    monkeypatch.setattr("ridgeline.tools.measure.roofline.measure_ceilings", refuse)
    assert ceilings(detect_device("cpu")) == measured
    (kept,) = home_dir().glob("ceilings-*.json")
    assert json.loads(kept.read_text())["date"] == measured.date


@needs_gxx
def test_a_cpus_ceilings_are_measured_anew_after_an_hour_and_only_rise(
    measured: Ceilings, monkeypatch: pytest.MonkeyPatch
) -> None:
    (kept,) = home_dir().glob("ceilings-*.json")
    os.utime(kept, (0, 0))
    slower = replace(measured, bandwidth=tuple(replace(b, read=b.read / 2) for b in measured.bandwidth))
    faster = replace(slower, fma_gflops=2 * measured.fma_gflops)
    monkeypatch.setattr("ridgeline.tools.measure.roofline.measure_ceilings", lambda _: faster)
    found = ceilings(detect_device("cpu"))
    assert found.bandwidth == measured.bandwidth
    assert found.fma_gflops == faster.fma_gflops
    kept.write_text(json.dumps(measured.to_json()))


@needs_gxx
def test_measuring_again_never_lowers_a_ceiling(measured: Ceilings) -> None:
    again = ceilings(detect_device("cpu"), again=True)
    for before, after in zip(measured.bandwidth, again.bandwidth, strict=True):
        assert after.fastest >= before.fastest
    assert again.fma_gflops >= measured.fma_gflops


@needs_gxx
def test_damaged_file_is_measured_anew(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ridgeline.tools.measure.roofline.SECONDS_PER_TOTAL", 0.01)
    monkeypatch.setenv("RIDGELINE_HOME", str(folders / "other"))
    device = replace(detect_device("cpu"), cache_bytes=1 << 20)
    first = ceilings(device)
    (path,) = home_dir().glob("*.json")
    path.write_text("{")
    assert [b.bytes for b in ceilings(device).bandwidth] == [b.bytes for b in first.bandwidth]
    assert json.loads(path.read_text())["threads"] == device.cores


@needs_gxx
def test_ceilings_are_kept_in_the_cache_where_the_home_cannot_be_written(
    measured: Ceilings, folders: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("ridgeline.tools.measure.roofline.SECONDS_PER_TOTAL", 0.01)
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("RIDGELINE_HOME", str(tmp_path / "file" / "home"))
    found = ceilings(detect_device("cpu"))
    assert "are not kept in" in caplog.text
    assert ceilings(detect_device("cpu")) == found  # not measured again for every candidate
    (kept,) = (folders / "cache").glob("ceilings-*.json")
    kept.unlink()


@needs_gxx
def test_a_probe_that_hangs_is_an_engine_error(measured: Ceilings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ridgeline.tools.measure.roofline.PROBE_TIMEOUT_S", 0.001)
    with pytest.raises(EngineError, match="could not be run"):
        ceilings(detect_device("cpu"), again=True)


def _gpu(arch: str = "sm_90a") -> Device:
    return Device(
        kind=DeviceKind.CUDA,
        name="NVIDIA H200",
        arch=arch,
        uuid="GPU-00000000-0000-0000-0000-000000000000",
        cores=132,
        memory_bytes=140 << 30,
        cache_bytes=60 << 20,
    )


@pytest.mark.skipif(shutil.which("nvcc") is None or HAS_GPU, reason="needs nvcc and no GPU")
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_probe_of_a_gpu_builds_here_and_its_cuda_error_is_one_line(folders: Path, arch: str) -> None:
    with pytest.raises(
        EngineError, match="NVIDIA H200: the ceilings probe failed with status 3: opening the GPU"
    ) as caught:
        measure_ceilings(_gpu(arch))
    assert "\n" not in str(caught.value)


def test_missing_nvcc_is_one_clear_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    gxx = shutil.which("g++")
    if gxx is None:
        pytest.skip("needs g++")
    (tmp_path / "g++").symlink_to(gxx)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("ridgeline.tools.build.toolchain._NVCC_FOLDER", str(tmp_path))
    with pytest.raises(DeviceError, match="no nvcc on this machine: install the CUDA toolkit"):
        measure_ceilings(_gpu())


@pytest.mark.gpu
@pytest.mark.skipif(not HAS_GPU, reason="needs an NVIDIA GPU")
def test_probe_of_a_gpu_finds_memory_below_the_cache_and_tensor_cores_above_ffma(folders: Path) -> None:
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
    assert _totals(_gpu()) == (2 << 20, 16 << 20, 64 << 20, 120 << 20, 480 << 20, 1920 << 20)


def test_file_of_an_earlier_version_is_measured_anew_and_does_not_stop_anything(tmp_path: Path) -> None:
    row = {"bytes": 1024, "read": 1.0, "write": 1.0, "write_streaming": 1.0, "copy": 1.0, "copy_streaming": 1.0}
    kept = {
        "version": 1, "device": _gpu().to_json(), "date": "2026-01-01", "threads": 2, "fma_gflops": 1.0,
        "bandwidth": [row],
    }  # fmt: skip
    path = tmp_path / "ceilings.json"
    path.write_text(json.dumps(kept))
    assert _read(path, _gpu()) is None
    path.write_text(json.dumps({**kept, "version": CEILINGS_VERSION}))
    known = _read(path, _gpu())
    assert known is not None and known.bandwidth[0].fastest == 1.0


def _ceilings(cache_bytes: int) -> Ceilings:
    device = replace(detect_device("cpu"), cache_bytes=cache_bytes, memory_bytes=64 << 30)
    rows = [(2 << 20, 100.0), (64 << 20, 40.0), (1 << 30, 20.0)]
    bandwidth = tuple(
        Bandwidth(bytes=n, read=rate, write=rate / 2, write_streaming=rate / 2, copy=rate / 2, copy_streaming=rate / 2)
        for n, rate in rows
    )
    return Ceilings(device=device, date="2026-01-01", threads=2, fma_gflops=200.0, bandwidth=bandwidth)


def _description(*, rows: int, columns: int, flops: int = 0, weight: int = 0) -> Description:
    shape = (rows, columns)
    args = [ArgSpec(name=n, role=r, shape=shape, strides=(columns, 1)) for n, r in (("x", Role.INPUT),)]
    if weight:
        args.append(ArgSpec(name="weight", role=Role.PARAMETER, shape=(weight,), strides=(1,)))
    args.append(ArgSpec(name="out", role=Role.OUTPUT, shape=shape, strides=(columns, 1)))
    return Description(
        signature=Signature(args=tuple(args)),
        reference_graph=None,
        compulsory_bytes=4 * (2 * rows * columns + weight),
        flops=flops,
        reference_sha256="",
        torch_version="",
    )


def test_floor_is_bytes_over_the_rate_of_the_rotating_working_set() -> None:
    floor = floor_for(_description(rows=2048, columns=1024), _ceilings(cache_bytes=1 << 30))
    assert floor.bandwidth_gbps == 20.0
    assert floor.floor_ms == pytest.approx(2 * 4 * 2048 * 1024 / 20e9 * 1e3)
    assert floor.bound == "memory"


def test_parameters_that_may_stay_in_a_cache_count_at_the_fastest_rate() -> None:
    without = floor_for(_description(rows=2048, columns=1024), _ceilings(cache_bytes=1 << 30))
    weighted = floor_for(_description(rows=2048, columns=1024, weight=1 << 20), _ceilings(cache_bytes=1 << 30))
    assert weighted.floor_ms - without.floor_ms == pytest.approx((4 << 20) / 100e9 * 1e3)


def test_small_problem_is_held_against_the_cache_it_fits_in() -> None:
    floor = floor_for(_description(rows=8, columns=1024), _ceilings(cache_bytes=1 << 30))
    assert floor.bandwidth_gbps == 100.0  # 512 sets of 64 KiB are 32 MiB: below the second size measured


def test_compute_floor_is_advisory_and_names_the_bound() -> None:
    floor = floor_for(_description(rows=64, columns=1024, flops=10**9), _ceilings(cache_bytes=1 << 30))
    assert floor.compute_floor_ms == pytest.approx(5.0)
    assert floor.bound == "compute"
    assert floor.floor_ms < 5.0


H200_GFLOPS = {"fp32": 60e3, "tf32": 400e3, "fp16": 790e3, "bf16": 800e3, "fp8": 1500e3}


@pytest.mark.parametrize(
    ("tolerance", "dtypes", "unit"),
    [
        ("fp32", ("float32", "float32"), "fp32"),
        ("tf32", ("float32", "float32"), "tf32"),
        ("fp16", ("float32", "float32"), "fp16"),
        ("bf16", ("float32", "float32"), "bf16"),  # the looser class's unit is the faster one here
        ("crfm", ("float32", "float32"), "bf16"),
        ("fp16", ("float16", "float16"), "fp16"),
        ("fp32", ("float16", "float16"), "fp16"),  # an fp16 output cannot be better than fp16
        ("fp32", ("float16", "float32"), "fp16"),  # exact products of stored halves, added in fp32
        ("fp32", ("bfloat16", "float32"), "bf16"),
        ("fp8", ("float32", "float32"), "fp8"),
    ],
)
def test_compute_floor_is_on_the_fastest_unit_that_the_class_allows(
    tolerance: str, dtypes: tuple[str, str], unit: str
) -> None:
    described = _description(rows=64, columns=1024, flops=10**12)
    args = [replace(a, dtype=dtypes[0 if a.name == "x" else 1]) for a in described.signature.args]
    described = replace(described, signature=Signature(args=tuple(args)))
    floor = floor_for(described, replace(_ceilings(1 << 30), fma_gflops=60e3, class_gflops=H200_GFLOPS), tolerance)
    assert (floor.unit, floor.gflops) == (unit, H200_GFLOPS[unit])
    assert floor.compute_floor_ms == pytest.approx(1e12 / H200_GFLOPS[unit] / 1e6)
    assert floor.class_gflops == H200_GFLOPS
    assert Floor.from_json(floor.to_json()) == floor


def test_device_without_tensor_cores_computes_every_class_with_its_multiply_add() -> None:
    floor = floor_for(_description(rows=64, columns=1024, flops=10**9), _ceilings(1 << 30), "bf16")
    assert (floor.unit, floor.gflops) == ("fp32", 200.0)
