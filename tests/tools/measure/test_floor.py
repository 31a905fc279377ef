"""Floors computed from made-up ceilings."""

from dataclasses import replace

import pytest

from ridgeline.tools.machine.devices import detect_device
from ridgeline.tools.measure.ceilings import Bandwidth, Ceilings
from ridgeline.tools.measure.floor import floor_for
from ridgeline.tools.records.baselines import Floor
from ridgeline.tools.records.problem import ArgSpec, Description, Signature
from ridgeline.tools.records.vocabulary import PrecisionClass, Role


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
        (PrecisionClass.FP32, ("float32", "float32"), "fp32"),
        (PrecisionClass.FP64, ("float64", "float64"), "fp32"),  # no unit is faster in float64 than that one
        (PrecisionClass.FP64, ("float32", "float32"), "fp32"),
        (PrecisionClass.TF32, ("float32", "float32"), "tf32"),
        (PrecisionClass.FP16, ("float32", "float32"), "fp16"),
        (PrecisionClass.BF16, ("float32", "float32"), "bf16"),  # the looser class's unit is the faster one here
        (PrecisionClass.CRFM, ("float32", "float32"), "bf16"),
        (PrecisionClass.FP16, ("float16", "float16"), "fp16"),
        (PrecisionClass.FP32, ("float16", "float16"), "fp16"),  # an fp16 output cannot be better than fp16
        (PrecisionClass.FP32, ("float16", "float32"), "fp16"),  # exact products of stored halves, added in fp32
        (PrecisionClass.FP32, ("bfloat16", "float32"), "bf16"),
        (PrecisionClass.FP8, ("float32", "float32"), "fp8"),
    ],
)
def test_compute_floor_is_on_the_fastest_unit_that_the_class_allows(
    tolerance: PrecisionClass, dtypes: tuple[str, str], unit: str
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
    floor = floor_for(_description(rows=64, columns=1024, flops=10**9), _ceilings(1 << 30), PrecisionClass.BF16)
    assert (floor.unit, floor.gflops) == ("fp32", 200.0)
