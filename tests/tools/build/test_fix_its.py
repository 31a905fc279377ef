"""A compiler's own fix-its: what of its messages is read, and what is changed in a source."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ridgeline.tools.build.compiler import Compiler
from ridgeline.tools.build.fix_its import MOST_FIX_ITS, apply_fix_its, count_errors, read_fix_its, without_fix_its
from ridgeline.tools.build.messages import error_signature
from ridgeline.tools.build.missing_headers import header_of
from ridgeline.tools.engine import CompileTask
from ridgeline.tools.records.fix_it import FixIt
from ridgeline.tools.records.problem import DescribedTarget
from ridgeline.tools.records.vocabulary import DeviceKind, ReasonCode, Status
from ridgeline.tools.sandbox.sandbox import Sandbox

MakeTask = Callable[..., CompileTask]
MakeProblem = Callable[..., DescribedTarget]
GCC = """\
kernel.cpp:3:13: error: 'INT_MAX' was not declared in this scope
    3 |   float m = INT_MAX;
      |             ^~~~~~~
kernel.cpp:1:1: note: 'INT_MAX' is defined in header '<climits>'; did you forget to '#include <climits>'?
  +++ |+#include <climits>
    1 | // flags: -O2
fix-it:"kernel.cpp":{1:1-1:1}:"#include <climits>\\n"
kernel.cpp:6:32: error: 'totla' was not declared in this scope; did you mean 'tota'?
    6 |   for (int i = 0; i < 10; i++) totla += x[i];
fix-it:"kernel.cpp":{6:32-6:37}:"tota"
kernel.cpp:7:17: error: 'sqrt' is not a member of 'std'
"""
INCLUDE = FixIt(line=1, column=1, end_column=1, text="#include <climits>\n")


def fix(line: int, column: int, end_column: int, text: str) -> FixIt:
    return FixIt(line=line, column=column, end_column=end_column, text=text)


def test_the_errors_of_a_log_say_what_to_change() -> None:
    found = read_fix_its(GCC, "kernel.cpp")
    assert found == (INCLUDE, fix(6, 32, 37, "tota"), fix(1, 1, 1, "#include <cmath>\n"))
    assert count_errors(GCC) == 3
    assert "fix-it:" not in without_fix_its(GCC) and "did you mean 'tota'" in without_fix_its(GCC)


@pytest.mark.parametrize(
    "line",
    [
        'fix-it:"problem.h":{1:1-1:1}:"#include <climits>\\n"',  # another file
        'fix-it:"kernel.cpp":{6:1-7:1}:"x"',  # several lines
        'fix-it:"kernel.cpp":{6:1-6:1}:"#include \\"/etc/passwd\\"\\n"',
        'fix-it:"kernel.cpp":{6:3-6:3}:"#include <climits>\\n"',  # within a line
        'fix-it:"kernel.cpp":{6:1-6:200}:"x"',
        'fix-it:"kernel.cpp":{0:1-0:1}:"x"',
        'fix-it:"kernel.cpp":{6:5-6:1}:"x"',
        'fix-it:"kernel.cpp":{6:1-6:1}:"a\\nb"',
        'fix-it:"kernel.cpp":{6:1-6:1}:"#define x"',
        f'fix-it:"kernel.cpp":{{6:1-6:1}}:"{"x" * 100}"',
        'fix-it:"kernel.cpp":{6:1-6:1',
    ],
)
def test_a_change_beyond_the_limits_is_not_read(line: str) -> None:
    assert read_fix_its(f"kernel.cpp:6:1: error: no\n{line}\n", "kernel.cpp") == ()


def test_a_warnings_change_is_not_made() -> None:
    assert read_fix_its(GCC.replace("error:", "warning:"), "kernel.cpp") == ()
    assert read_fix_its("kernel.o: undefined reference to `run'\n", "kernel.cpp") == ()


def test_no_log_asks_for_more_than_a_few_changes() -> None:
    log = "".join(f'kernel.cpp:{n}:1: error: no\nfix-it:"kernel.cpp":{{{n}:1-{n}:2}}:"y"\n' for n in range(1, 99))
    assert len(read_fix_its(log, "kernel.cpp")) == MOST_FIX_ITS


def test_changes_are_made_at_their_places_whatever_their_order() -> None:
    source = "int a = totla;\nint é = totla, b = totla;"
    changed, words = apply_fix_its(
        source, (fix(1, 9, 14, "tota"), fix(2, 10, 15, "tota"), INCLUDE, fix(2, 21, 26, "x"))
    )
    assert changed == "#include <climits>\nint a = tota;\nint é = tota, b = x;"
    assert words[0] == "line 1: `totla` becomes `tota`" and len(words) == 4


@pytest.mark.parametrize(
    "change",
    [
        fix(9, 1, 1, "x"),  # no such line
        fix(1, 30, 31, "x"),  # behind its end
        fix(2, 9, 10, "x"),  # within a character
        fix(1, 1, 4, "int"),  # nothing
        fix(3, 1, 5, "x"),  # a directive
        fix(1, 9, 14, "int"),  # a keyword in the place of a name
    ],
)
def test_a_change_that_is_none_of_this_source_leaves_it(change: FixIt) -> None:
    source = "int a = totla;\nint b = é;\n#if 1\n#endif\n"
    assert apply_fix_its(source, (change,)) == (source, ())


def test_a_keyword_takes_the_place_of_another_keyword_or_of_nothing_and_of_no_name() -> None:
    source = "struct A;\nA::b c = inv * sqr(d);"
    asked = (fix(1, 1, 7, "class"), fix(2, 1, 1, "typename "), fix(2, 10, 13, "int"), fix(2, 16, 19, "sqrt"))
    changed, words = apply_fix_its(source, asked)
    assert changed == "class A;\ntypename A::b c = inv * sqrt(d);" and len(words) == 3


@pytest.mark.parametrize(
    ("line", "change", "changed"),
    [
        ("  x[0] = helpr;", fix(4, 10, 15, "helper"), ""),  # a function in the place of a value
        ("  x[0] = totl (x[1]);", fix(4, 10, 14, "total"), ""),  # a value in the place of a function
        ("  helpr(x);", fix(4, 3, 8, "helper"), "  helper(x);"),
        ("  x[0] = totl < 3;", fix(4, 10, 14, "total"), "  x[0] = total < 3;"),
        ("  x[0] = sqr(x[1]);", fix(4, 10, 13, "sqrt"), "  x[0] = sqrt(x[1]);"),  # the source does not use it
    ],
)
def test_a_name_takes_the_place_of_one_of_its_own_kind_alone(line: str, change: FixIt, changed: str) -> None:
    head = "void helper(float*);\nfloat total;\nvoid run(float* x) {\n"
    assert (
        apply_fix_its(f"{head}{line}\n  total = 1;\n}}", (change,))[0] == f"{head}{changed or line}\n  total = 1;\n}}"
    )


def test_a_header_is_included_once_and_of_overlapping_changes_the_first_is_made() -> None:
    assert apply_fix_its("#include <climits> // here\n", (INCLUDE,))[0] == "#include <climits> // here\n"
    changed, words = apply_fix_its("a\nbcd\n", (INCLUDE, INCLUDE, fix(2, 1, 3, "x"), fix(2, 2, 4, "y")))
    assert (changed, len(words)) == ("#include <climits>\na\nxd\n", 2)


@pytest.mark.parametrize(
    ("name", "language", "header"),
    [
        ("std::sqrt", "cpp", "cmath"),
        ("FLT_MAX", "cu", "cfloat"),
        ("_mm512_exp2a23_pd", "cpp", "immintrin.h"),
        ("omp_get_max_threads", "cpp", "omp.h"),
        ("__half2float", "cu", "cuda_fp16.h"),
        ("__half", "cpp", ""),
        ("half", "cu", "cuda_fp16.h"),
        ("mine", "cpp", ""),
        ("std::mine", "cpp", ""),
        ("vector", "cpp", ""),
        ("cub", "cu", "cub/cub.cuh"),
        ("cub::BlockReduce", "cu", "cub/cub.cuh"),
        ("cubic_root", "cu", ""),
        ("cub_sum", "cu", ""),
        ("wmma", "cu", "mma.h"),
        ("wmmaTile", "cu", ""),
        ("half2", "cu", "cuda_fp16.h"),
        ("half2float", "cu", ""),
        ("__hadd2", "cu", "cuda_fp16.h"),
        ("__hfma2_sat", "cu", "cuda_fp16.h"),
        ("__hmulti", "cu", ""),
        ("__nv_bfloat162", "cu", "cuda_bf16.h"),
        ("__nv_fp8x4_e4m3", "cu", "cuda_fp8.h"),
        ("cuda::barrier", "cu", "cuda/barrier"),
        ("cuda::barriers", "cu", ""),
        ("__m512i", "cpp", "immintrin.h"),
        ("__m512bh", "cpp", "immintrin.h"),
        ("__mmask16", "cpp", "immintrin.h"),
        ("_mmap_rows", "cpp", ""),
        ("omp_lock_t", "cpp", "omp.h"),
    ],
)
def test_the_header_of_a_well_known_name_is_known(name: str, language: str, header: str) -> None:
    assert header_of(name, language) == header


def test_the_same_error_at_other_places_has_one_signature() -> None:
    def signature(reason: str) -> str:
        return error_signature(ReasonCode.COMPILER_FAILED, reason)

    one = "kernel.cpp:3:13: error: 'lost' was not declared in this scope"
    assert signature(one) == signature(one.replace("3:13", "41:7"))
    assert signature(one) != signature(one.replace("lost", "other"))
    assert signature('kernel.cu(3): error: identifier "v12" is undefined') == signature(
        'kernel.cu(14): error: identifier "v3" is undefined'
    )
    assert error_signature(ReasonCode.LINK_FAILED, one) != signature(one)


@pytest.fixture
def compiler(tmp_path: Path, sandbox: Sandbox, make_problem: MakeProblem) -> Compiler:
    return Compiler(sandbox, tmp_path / "cache", make_problem().device)


HOST = """\
void run(const float* x, float* out, void*) {
  std::vector<float> rows(4);
  float total = std::sqrt(FLT_MAX);
  for (int32_t i = 0; i < 2; i++) totla += std::max(x[i], rows[i]);
  out[0] = total;
}
"""


@pytest.mark.sandboxed
async def test_what_gxx_lacks_is_mended_by_its_fix_its(compiler: Compiler, make_task: MakeTask) -> None:
    sources, errors = [HOST], []
    for _ in range(3):
        (build,) = await compiler.compile_batch([make_task(sources[-1])])
        if build.status is Status.OK:
            break
        errors.append(build.errors)
        assert "fix-it:" not in build.log
        sources.append(apply_fix_its(sources[-1], build.fix_its)[0])
    assert build.status is Status.OK, build.log
    assert errors == sorted(errors, reverse=True) and len(errors) <= 2
    assert "+= std::max(x[i], rows[i])" in sources[-1] and "totla" not in sources[-1]


@pytest.mark.sandboxed
async def test_a_name_that_gxx_takes_for_a_keyword_is_left_as_it_is(compiler: Compiler, make_task: MakeTask) -> None:
    source = "void run(const float* x, float* out, void*) {\n  const float inverse = 2;\n  out[0] = x[0] * inv;\n}\n"
    (build,) = await compiler.compile_batch([make_task(source)])
    assert [change.text for change in build.fix_its] == ["int"], build.log
    assert apply_fix_its(source, build.fix_its) == (source, ())


@pytest.mark.sandboxed
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")
async def test_what_nvcc_lacks_is_mended_by_the_headers_of_well_known_names(
    tmp_path: Path, sandbox: Sandbox, make_problem: MakeProblem, make_task: MakeTask
) -> None:
    device = replace(make_problem().device, kind=DeviceKind.CUDA, arch="sm_90", name="a GPU")
    task = make_task("__global__ void k(float* o) { __half h = __float2half(FLT_MAX); o[0] = __half2float(h); }\n")
    problem = replace(task.problem, device=device)
    task = replace(task, problem=problem, candidate=replace(task.candidate, language="cu"))
    compiler = Compiler(sandbox, tmp_path / "cuda", device)
    (build,) = await compiler.compile_batch([task])
    assert {f.text for f in build.fix_its} == {"#include <cuda_fp16.h>\n", "#include <cfloat>\n"}
    source, _ = apply_fix_its(task.candidate.source, build.fix_its)
    (mended,) = await compiler.compile_batch([replace(task, candidate=replace(task.candidate, source=source))])
    assert (mended.reason_code, mended.errors) == (ReasonCode.LINK_FAILED, 1), "only `run` itself is missing then"
