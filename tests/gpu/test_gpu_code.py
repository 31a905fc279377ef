"""What the planted bottlenecks' code tells without running it; builds with nvcc, needs no GPU."""

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from ridgeline.tools.profile.gpu_code import (
    KernelCode,
    find_cuobjdump,
    read_ptxas,
    read_resource_usage,
    read_sass,
    short_name,
)
from ridgeline.tools.profile.gpu_profile import code_notes, read_code
from ridgeline.tools.profile.profiler import profile_candidate
from ridgeline.tools.records.baselines import Floor
from ridgeline.tools.records.results import Timing
from ridgeline.tools.records.vocabulary import Status
from ridgeline.tools.sandbox.sandbox import Sandbox

from .bench import HOPPER
from .conftest import DESCRIPTION, Built

needs_cuobjdump = pytest.mark.skipif(find_cuobjdump() is None, reason="needs cuobjdump (CUDA toolkit)")
FLOOR = Floor(floor_ms=0.002, compute_floor_ms=1e-4, bound="memory", bandwidth_gbps=4300.0, gflops=60e3, unit="fp32")


@pytest.mark.first_case
@pytest.mark.parametrize("name", ["honest", "uncoalesced", "bank_conflicts"])
def test_ptxas_names_the_registers_of_a_kernel_that_does_not_spill(built: Callable[..., Built], name: str) -> None:
    (kernel,) = read_ptxas(built(name).log).values()
    assert kernel.name == name
    assert kernel.registers is not None and 4 < kernel.registers < 64
    assert (kernel.stack_bytes, kernel.spill_store_bytes, kernel.spill_load_bytes) == (0, 0, 0)
    assert kernel.shared_bytes == (4096 if name == "bank_conflicts" else 0)


def test_register_spills_are_named_from_the_build_alone(built: Callable[..., Built]) -> None:
    (kernel,) = read_ptxas(built("register_spills").log).values()
    assert kernel.registers == 32
    assert kernel.spill_store_bytes and kernel.spill_load_bytes
    (note,) = [n for n in code_notes([kernel], device=HOPPER, floor=FLOOR) if "register spills:" in n]
    assert re.match(r"register_spills: register spills: \d+ bytes stored and \d+ bytes loaded a thread", note)


@pytest.mark.any_tier
def test_profile_of_a_cuda_library_never_runs_it_without_a_runner(
    built: Callable[..., Built], sandbox: Sandbox
) -> None:
    found = built("register_spills")
    profile = profile_candidate(
        device=HOPPER,
        description=DESCRIPTION,
        floor=FLOOR,
        timing=Timing(status=Status.OK, median_ms=0.004, samples=10),
        library=found.library,
        sandbox=sandbox,
        build_log=found.log,
    )
    text = "\n".join(profile.notes)
    assert "register spills" in text
    assert "no hardware counters" in text
    assert profile.fraction_of_floor == pytest.approx(0.5)
    assert profile.details["registers"] == 32
    assert profile.details["spill_store_bytes"] > 0


@needs_cuobjdump
def test_listing_shows_how_wide_memory_is_accessed(built: Callable[..., Built], sandbox: Sandbox) -> None:
    widths = {}
    for name in ("honest", "uncoalesced"):
        (kernel,), missing = read_code(built(name).library, build_log=built(name).log, arch="sm_90a", sandbox=sandbox)
        assert missing == []
        widths[name] = kernel.widest("LDG"), kernel.widest("STG")
    assert widths == {"honest": (128, 128), "uncoalesced": (32, 32)}


@needs_cuobjdump
def test_without_the_build_log_cuobjdump_names_the_resources(built: Callable[..., Built], sandbox: Sandbox) -> None:
    for name in ("register_spills", "bank_conflicts"):
        (kernel,), missing = read_code(built(name).library, build_log="", arch="sm_90a", sandbox=sandbox)
        (logged,) = read_ptxas(built(name).log).values()
        assert missing == []
        assert (kernel.name, kernel.registers, kernel.stack_bytes) == (name, logged.registers, logged.stack_bytes)
        assert kernel.shared_bytes in {logged.shared_bytes, max(logged.shared_bytes - 1024, 0)}
        assert kernel.spill_store_bytes is None
        assert (kernel.count("STL") > 0) == (name == "register_spills")


PTXAS = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_ZN12_GLOBAL__N_17softmaxILi64EEEvPKfPf' for 'sm_90a'
ptxas info    : Function properties for _ZN12_GLOBAL__N_17softmaxILi64EEEvPKfPf
    408 bytes stack frame, 800 bytes spill stores, 824 bytes spill loads
ptxas info    : Used 32 registers, used 1 barriers, 408 bytes cumulative stack size, 8192 bytes smem
ptxas info    : Compile time = 16.421 ms
ptxas info    : Function properties for _Z6helperf
    8 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads
"""
USAGE = """
Resource usage:
 Common:
  GLOBAL:0
 Function _Z5spillILi64EEvPKfPf:
  REG:72 STACK:16 SHARED:9216 LOCAL:0 CONSTANT[0]:544 TEXTURE:0 SURFACE:0 SAMPLER:0
 Function plain:
  REG:18 STACK:0 SHARED:0 LOCAL:0 CONSTANT[0]:544 TEXTURE:0 SURFACE:0 SAMPLER:0
"""
SASS = """
		Function : matmul
	.headerflags	@"EF_CUDA_SM90"
        /*0000*/                   LDC R1, c[0x0][0x28] ;                      /* 0x00000a00ff017b82 */
                                                                               /* 0x000fe20000000800 */
        /*0010*/                   LDG.E.128.CONSTANT R4, desc[UR4][R2.64] ;   /* 0x0 */
        /*0020*/              @!P0 LDG.E R8, desc[UR4][R2.64] ;                /* 0x0 */
        /*0030*/             @!UP0 LDG.E.U16.CONSTANT R8, desc[UR4][R2.64] ;   /* 0x0 */
        /*0040*/                   HGMMA.64x256x16.F32 R24, gdesc[UR8], R24 ;  /* 0x0 */
        /*0050*/                   FFMA R0, R1, R2, R3 ;                       /* 0x0 */
        /*0060*/                   STG.E.64 desc[UR4][R2.64], R4 ;             /* 0x0 */
"""


def test_ptxas_messages_of_a_device_function_are_not_the_kernels() -> None:
    (kernel,) = read_ptxas(PTXAS).values()
    assert kernel == KernelCode(
        name="softmax", registers=32, stack_bytes=408, spill_store_bytes=800, spill_load_bytes=824, shared_bytes=8192
    )


def test_resource_usage_leaves_out_what_hopper_reserves() -> None:
    spill, plain = read_resource_usage(USAGE, "sm_90a").values()
    assert (spill.name, spill.registers, spill.stack_bytes, spill.shared_bytes) == ("spill", 72, 16, 8192)
    assert (plain.name, plain.shared_bytes) == ("plain", 0)
    assert read_resource_usage(USAGE, "sm_80")["_Z5spillILi64EEvPKfPf"].shared_bytes == 9216


def test_sass_is_counted_by_opcode_and_width() -> None:
    counts = read_sass(SASS)["matmul"]
    assert counts == {"LDC": 1, "LDG.128": 1, "LDG.32": 1, "LDG.16": 1, "HGMMA": 1, "FFMA": 1, "STG.64": 1}
    kernel = KernelCode(name="matmul", instructions=dict(counts))
    assert kernel.tensor_cores == ("wgmma",)
    assert (kernel.widest("LDG"), kernel.count("LDG"), kernel.widest("LDS")) == (128, 3, 0)


@pytest.mark.parametrize(
    ("mangled", "name"),
    [
        ("plain", "plain"),
        ("_Z5spillILi64EEvPKfPf", "spill"),
        ("_ZN3abc7softmaxILi64EEEvPKfPf", "softmax"),
        ("_ZN12_GLOBAL__N_17softmaxEPKfPf", "softmax"),
        ("_ZN40_GLOBAL__N__fbf66ec0_11_ceilings_cu_main11burn_tensorILNS_7OperandE3EEEviiPf", "burn_tensor"),
    ],
)
def test_short_name_is_the_functions_own(mangled: str, name: str) -> None:
    assert short_name(mangled) == name


def test_compute_bound_kernel_without_tensor_cores_is_told_so() -> None:
    floor = replace(FLOOR, bound="compute", compute_floor_ms=1.0, unit="tf32")
    ffma = KernelCode(name="matmul", registers=128, instructions={"FFMA": 512, "LDG.128": 4})
    assert any("no tensor core instruction" in n for n in code_notes([ffma], device=HOPPER, floor=floor))
    hmma = replace(ffma, instructions={"HMMA": 64})
    assert any("wgmma is faster" in n for n in code_notes([hmma], device=HOPPER, floor=floor))
    hgmma = replace(ffma, instructions={"HGMMA": 8})
    (note,) = [n for n in code_notes([hgmma], device=HOPPER, floor=floor) if "tensor" in n]
    assert note == "matmul: tensor cores by wgmma"
    exact = replace(floor, unit="fp32")
    assert not any("tensor core" in n for n in code_notes([ffma], device=HOPPER, floor=exact))


def test_registers_are_told_as_warps_of_a_multiprocessor() -> None:
    (note,) = code_notes([KernelCode(name="k", registers=128)], device=HOPPER, floor=None)
    assert note == "k: 128 registers a thread: registers allow 16 of 64 warps a multiprocessor (25%)"
    big = KernelCode(name="k", registers=32, shared_bytes=48 << 10)
    assert any("static shared memory allows 4 blocks" in n for n in code_notes([big], device=HOPPER, floor=None))
