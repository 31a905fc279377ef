"""A device's table: what is known, once and with its unit; what is not, left out."""

import subprocess
from pathlib import Path

import pytest

from ridgeline.tools.machine.device_facts import device_facts, instruction_sets
from ridgeline.tools.machine.devices import cache_instances, cpu_flags, detect_device
from ridgeline.tools.records.baselines import Floor
from ridgeline.tools.records.problem import Device
from ridgeline.tools.records.vocabulary import DeviceKind

HOPPER = Device(
    kind=DeviceKind.CUDA,
    name="NVIDIA H200",
    arch="sm_90a",
    uuid="GPU-0",
    cores=132,
    memory_bytes=141 << 30,
    cache_bytes=60 << 20,
)
FLOOR = Floor(
    floor_ms=1.0,
    compute_floor_ms=1.0,
    bound="memory",
    bandwidth_gbps=4270.0,
    gflops=51000.0,
    unit="fp32",
    class_gflops={"fp32": 51000.0, "tf32": 380000.0},
)


def table(device: Device, floor: Floor | None = None, compiler: str = "") -> dict[str, str]:
    facts = device_facts(device, floor=floor, compiler=compiler)
    assert len({fact.name for fact in facts}) == len(facts)
    return {fact.name: fact.value for fact in facts}


def test_table_of_this_processor_is_what_the_system_says() -> None:
    facts = table(detect_device("cpu"), compiler="g++ 12.2.0")
    flags = cpu_flags()
    assert ("AVX-512 (F" in facts["instruction set"]) == ("avx512f" in flags)
    assert ("512 bits" in facts["vector registers"]) == ("avx512f" in flags)
    assert facts["compiler"] == "g++ 12.2.0"
    said = subprocess.run(["getconf", "LEVEL1_DCACHE_SIZE"], capture_output=True, text=True, check=False).stdout.strip()
    if said.isdigit() and int(said) and Path("/sys/devices/system/cpu/cpu0/cache").is_dir():
        assert facts["L1 data cache"].startswith(f"{int(said) >> 10} KiB")
    assert not any(name.startswith("peak") for name in facts)  # nothing was measured


def test_table_of_a_gpu_follows_its_architecture() -> None:
    facts = table(HOPPER, FLOOR)
    assert facts["shared memory"] == "at most 227 KiB a block, 228 KiB a multiprocessor"
    assert facts["registers"] == "65,536 a multiprocessor, at most 255 a thread"
    assert facts["L2 cache"] == "60 MiB"
    assert "wgmma" in facts["instructions"]
    assert facts["peak fp32"] == "51 TFLOP/s, measured"
    assert facts["peak tf32"] == "380 TFLOP/s, measured"
    assert facts["memory bandwidth"].startswith("4.27 TB/s")


def test_what_is_not_known_of_an_architecture_is_left_out() -> None:
    unknown = Device(**{**HOPPER.to_json(), "kind": DeviceKind.CUDA, "arch": "sm_999"})
    assert "shared memory" not in table(unknown)
    assert "wgmma" not in table(unknown).get("instructions", "")


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"avx512f", "avx512vl", "avx2", "fma"}, "AVX-512 (F, VL), AVX2, FMA"),
        ({"amx_tile", "amx_bf16", "avx"}, "AMX (tile, bf16), AVX"),
        ({"fpu"}, ""),
    ],
)
def test_instruction_sets_are_grouped_with_their_parts(flags: set[str], words: str) -> None:
    assert instruction_sets(flags) == words


def test_shared_cache_names_the_cores_that_share_it(tmp_path: Path) -> None:
    for index, (level, kind, size, shared) in enumerate(
        [("1", "Data", "48K", "0"), ("1", "Instruction", "64K", "0"), ("3", "Unified", "32M", "0-2,5")]
    ):
        folder = tmp_path / "cpu0" / "cache" / f"index{index}"
        folder.mkdir(parents=True)
        for name, text in (("level", level), ("type", kind), ("size", size), ("shared_cpu_list", shared)):
            (folder / name).write_text(text)
    first, last = sorted(cache_instances(tmp_path, 0), key=lambda cache: cache.level)
    assert (first.size_bytes, first.cores) == (48 << 10, {0})
    assert (last.size_bytes, last.cores) == (32 << 20, {0, 1, 2, 5})
    assert cache_instances(tmp_path, 1) == ()
