"""Whose work a candidate is: from a profile's launches, and from what a shared object links."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from ridgeline.tools.errors import SandboxError
from ridgeline.tools.profile.gpu_counters import CALLS, DURATION_NS, KernelCounters
from ridgeline.tools.profile.vendor_code import (
    Links,
    cpu_work,
    foreign_code,
    gpu_work,
    parse_links,
    read_links,
    with_links,
)
from ridgeline.tools.sandbox.sandbox import Sandbox, probe_sandbox

pytestmark = pytest.mark.sandboxed


def launch(name: str, ns: float) -> KernelCounters:
    return KernelCounters(name=name, metrics={DURATION_NS: ns})


def test_share_is_the_own_kernels_part_of_one_call() -> None:
    call = [launch("reduce", 100.0), launch("nvjet_tst_128x64", 300.0)]
    first = [launch("set_up", 1e6), *call[1:]]  # what happens once is not a call's
    work = gpu_work([*first, *call, *call], {"reduce", "set_up"}, "")
    assert work.share == pytest.approx(0.25)
    assert work.others == ("nvjet_tst_128x64",)
    assert work.kernels_ns == {"reduce": 100.0, "nvjet_tst_128x64": 300.0}


def test_kernel_that_is_not_in_the_library_is_not_its_own_whatever_it_is_called() -> None:
    assert gpu_work([launch("softmax", 5.0)] * CALLS, {"softmax_rows"}, "").others == ("softmax",)


def test_library_without_a_kernel_of_its_own_does_no_work() -> None:
    work = gpu_work([launch("geam", 5.0)] * CALLS, (), "")
    assert (work.share, work.others) == (0.0, ("geam",))


def test_vendor_kernels_are_told_by_name_where_the_own_ones_are_unknown() -> None:
    launches = [launch(n, 50.0) for n in ("my_tiles", "sm90_xmma_gemm_f32f32")] * CALLS
    work = gpu_work(launches, None, "")
    assert (work.share, work.others) == (pytest.approx(0.5), ("sm90_xmma_gemm_f32f32",))


def test_without_a_profile_the_share_is_unknown_and_said() -> None:
    work = gpu_work([], {"softmax"}, "no hardware counters: ncu is not installed")
    assert work.share is None
    assert "ncu is not installed" in work.how


def test_library_of_system_runtimes_alone_is_all_own_work() -> None:
    work = cpu_work(
        Links(libraries=("libm.so.6", "libgomp.so.1", "libc.so.6"), functions=("expf", "GOMP_parallel")), ""
    )
    assert (work.share, work.others) == (1.0, ())


@pytest.mark.parametrize(
    ("came", "in_python", "named"),
    [
        ({"/opt/x/libopenblas.so.0", "/usr/lib/libm.so.6", "/c/kernel.so", "/c/host-1"}, False, ("libopenblas.so.0",)),
        (
            {"/usr/lib/libcuda.so.1", "/lib/libnvidia-ptxjitcompiler.so.1", "/d/libcublas.so.12"},
            False,
            ("libcublas.so.12",),
        ),
        ({"/gcc/lib64/libgomp.so.1"}, False, ()),  # libstdc++ was there before, of the same compiler
        ({"/tmp/libm.so.6", "/tmp/libcuda.so.1"}, False, ("/tmp/libcuda.so.1", "/tmp/libm.so.6")),
        ({"/tmp/kernel.so"}, False, ("/tmp/kernel.so",)),
        ({"/memfd:libm.so.6", "/tmp/a\x1b[31m\x0bb"}, False, ("/memfd:libm.so.6", "a [31m b")),
        ({f"/tmp/{'a' * 255}"}, False, ("a" * 80,)),
        ({"code of no file"}, False, ("code of no file",)),
        ({"/p/_struct.cpython-312.so", "code of no file", "/p/libcudnn_cnn.so.9"}, True, ("libcudnn_cnn.so.9",)),
        ({"/p/libtorch_cpu.so"}, True, ()),
    ],
)
def test_code_that_came_along_with_a_candidate_is_named(
    came: set[str], in_python: bool, named: tuple[str, ...]
) -> None:
    before = frozenset({"/usr/lib/libc.so.6", "/gcc/lib64/libstdc++.so.6", "/p/libtorch_cpu.so"})
    now = before | came
    assert foreign_code(before, now, own=("/c/kernel.so", "/c/host-1"), in_python=in_python) == named
    assert foreign_code(None, now, own=(), in_python=in_python) is None


def test_a_library_in_the_process_makes_the_share_unknown_whatever_is_linked() -> None:
    links = Links(libraries=("libc.so.6",), functions=("dl_iterate_phdr",))
    assert cpu_work(links, "", ()).share == 1.0
    work = cpu_work(links, "", ("libopenblas.so.0",))
    assert (work.share, work.others) == (None, ("libopenblas.so.0",))
    assert "may not be read" in cpu_work(links, "", None).how


@pytest.mark.parametrize(
    ("links", "named"),
    [
        (Links(libraries=("libopenblas.so.0", "libc.so.6"), functions=("cblas_sgemm",)), "libopenblas.so.0"),
        (Links(libraries=("libc.so.6",), functions=("dlopen",)), "dlopen"),
        (Links(libraries=("libc.so.6",), functions=("_ZN2at4_ops6matmul4callERKNS_6TensorES4_",)), "at::_ops::matmul"),
    ],
)
def test_other_code_within_reach_is_named_and_the_share_unknown(links: Links, named: str) -> None:
    work = cpu_work(links, "")
    assert work.share is None
    assert named in work.others


def test_gpu_kernel_that_no_profile_could_watch_is_told_by_what_it_links() -> None:
    links = Links(
        libraries=("libtorch_cuda.so", "libc.so.6"), functions=("dlopen", "_ZN2at4_ops2mm4callERKNS_6TensorES4_")
    )
    unknown = gpu_work([], None, "ncu is not installed")
    assert with_links(unknown, links).others == ("libtorch_cuda.so", "at::_ops::mm")
    assert with_links(gpu_work([launch("mine", 1.0)] * CALLS, {"mine"}, ""), links).others == ()


@pytest.mark.skipif(not shutil.which("objdump") or not shutil.which("g++"), reason="needs g++ and objdump")
def test_links_of_a_real_library_are_read_in_the_sandbox(tmp_path: Path) -> None:
    source, library = tmp_path / "k.cpp", tmp_path / "k.so"
    source.write_text(
        '#include <cmath>\n#include <dlfcn.h>\nextern "C" float run(float x) '
        '{ return std::exp(x) + (dlopen("libcblas.so", 1) ? 1 : 0); }\n'
    )
    subprocess.run(["g++", "-O2", "-shared", "-fPIC", str(source), "-o", str(library)], check=True)
    try:
        sandbox = Sandbox(probe_sandbox().tier)
    except SandboxError as missing:
        pytest.skip(str(missing))
    links, missing = read_links(library, sandbox)
    assert links is not None, missing
    assert {"expf", "dlopen"} <= set(links.functions)
    assert "libm.so.6" in links.libraries
    assert cpu_work(links, "").share is None


def test_listing_without_dynamic_symbols_links_nothing() -> None:
    assert parse_links("no symbols\n") == Links(libraries=(), functions=())
