"""The generated problem.h, through the real compilers."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from ridgeline.tools.build.interfaces import problem_header
from ridgeline.tools.errors import ProblemError
from ridgeline.tools.records.problem import ArgSpec, Signature
from ridgeline.tools.records.vocabulary import ArgKind, DeviceKind, Interface, Role

CPU_FLAGS = ["-O3", "-march=native", "-fopenmp", "-mprefer-vector-width=512", "-ffast-math", "-fno-finite-math-only"]
DTYPES = {
    "float32": "float",
    "float64": "double",
    "float16": "fp16",
    "bfloat16": "bf16",
    "int8": "int8_t",
    "int16": "int16_t",
    "int32": "int32_t",
    "int64": "int64_t",
    "uint8": "uint8_t",
    "bool": "bool",
}
needs_nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")


def tensor(
    name: str, shape: tuple[int, ...], role: Role = Role.INPUT, dtype: str = "float32", source: str = ""
) -> ArgSpec:
    strides: list[int] = []
    for _ in shape:
        strides.insert(0, strides[0] * shape[len(shape) - len(strides)] if strides else 1)
    return ArgSpec(name=name, role=role, dtype=dtype, shape=shape, strides=tuple(strides), source=source)


def scalar(name: str, dtype: str, value: float) -> ArgSpec:
    return ArgSpec(name=name, role=Role.INPUT, kind=ArgKind.SCALAR, dtype=dtype, value=value)


def everything() -> Signature:
    return Signature(
        args=(
            *(tensor(f"t_{dtype}", (3, 5), dtype=dtype) for dtype in DTYPES),
            tensor("zero_dim", ()),
            tensor("five_dim", (1, 2, 3, 4, 5)),
            ArgSpec(name="expanded", role=Role.INPUT, shape=(4, 8), strides=(0, 1)),
            ArgSpec(name="mask", role=Role.INPUT, kind=ArgKind.NONE),
            scalar("temperature", "float64", 0.5),
            scalar("limit", "float64", float("-inf")),
            scalar("axis", "int64", -1),
            scalar("causal", "bool", 1),
            tensor("xs_0", (4,), source="xs[0]"),
            tensor("xs_1", (6,), source="xs[1]"),
            tensor("class", (2,)),
            tensor("ln_weight", (8,), Role.PARAMETER, source="ln.weight"),
            tensor("running_mean", (8,), Role.BUFFER, source="bn.running_mean"),
            tensor("out_0", (4, 8), Role.OUTPUT),
            tensor("out_1", (4,), Role.OUTPUT, dtype="int64"),
        )
    )


EVERYTHING_RUN = """
extern "C" void run({tensors}, const float* z, const float* f, const float* e, double temperature, double limit,
    int64_t axis, bool causal, const float* xs_0, const float* xs_1, const float* c, const float* w, const float* m,
    float* out_0, int64_t* out_1, void* workspace{stream}) {{
  static_assert(MASK_IS_NONE && XS_COUNT == 2 && OUT_COUNT == 2 && ZERO_DIM_NDIM == 0 && ZERO_DIM_NUMEL == 1);
  static_assert(FIVE_DIM_STRIDE_0 == 120 && FIVE_DIM_NUMEL == 120 && EXPANDED_STRIDE_0 == 0 && OUT_1_SHAPE_0 == 4);
  static_assert(TEMPERATURE_VALUE == 0.5 && AXIS_VALUE == -1 && CAUSAL_VALUE && RIDGELINE_ALIGNMENT == 64);
  static_assert(LIMIT_VALUE < -1e308);
  out_0[0] = RIDGELINE_ALIGNED(z)[0];
}}
"""


def compile_source(folder: Path, signature: Signature, source: str, *, kind: DeviceKind = DeviceKind.CPU) -> str:
    """Compile `source` against the header of `signature`; return the compiler's messages, "" when it has none."""
    header = folder / "problem.h"
    header.write_text(problem_header(signature, kind))
    is_cuda = kind is DeviceKind.CUDA
    path = folder / ("k.cu" if is_cuda else "k.cpp")
    path.write_text(source)
    command = (
        ["nvcc", "-std=c++17", "-arch=sm_90a"] if is_cuda else ["g++", "-std=c++20", "-Wall", "-Wextra", *CPU_FLAGS]
    )
    command += ["-I", str(folder), "-include", str(header), "-c", str(path), "-o", str(folder / "k.o")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stderr if is_cuda is False or done.returncode else ""


def everything_source(kind: DeviceKind) -> str:
    tensors = ", ".join(f"const {c_type}* t_{name}" for name, c_type in DTYPES.items())
    stream = ", cudaStream_t stream" if kind is DeviceKind.CUDA else ""
    return '#include "problem.h"\n' + EVERYTHING_RUN.format(tensors=tensors, stream=stream)


def test_header_covers_every_kind_of_argument_on_the_cpu(tmp_path: Path) -> None:
    messages = compile_source(tmp_path, everything(), everything_source(DeviceKind.CPU))
    assert "error" not in messages, messages


@needs_nvcc
def test_header_covers_every_kind_of_argument_on_cuda(tmp_path: Path) -> None:
    messages = compile_source(tmp_path, everything(), everything_source(DeviceKind.CUDA), kind=DeviceKind.CUDA)
    assert not messages, messages


@pytest.mark.parametrize("dtype", DTYPES)
def test_each_dtype_compiles_without_a_warning(tmp_path: Path, dtype: str) -> None:
    signature = Signature(args=(tensor("x", (16,), dtype=dtype), tensor("out", (16,), Role.OUTPUT, dtype=dtype)))
    source = f"void run(const {DTYPES[dtype]}* x, {DTYPES[dtype]}* out, void*) {{ out[0] = x[X_NUMEL - 1]; }}"
    assert compile_source(tmp_path, signature, source) == ""


def test_a_run_of_another_signature_is_a_compile_error(tmp_path: Path) -> None:
    signature = Signature(args=(tensor("x", (16,)), tensor("out", (16,), Role.OUTPUT)))
    source = 'extern "C" void run(const double* x, float* out, void* workspace) {}'
    assert "conflicting declaration" in compile_source(tmp_path, signature, source)


def test_writing_through_an_input_is_a_compile_error(tmp_path: Path) -> None:
    signature = Signature(args=(tensor("x", (16,)), tensor("out", (16,), Role.OUTPUT)))
    source = "void run(const float* x, float* out, void* workspace) { x[0] = 1; }"
    assert "read-only location" in compile_source(tmp_path, signature, source)


def test_the_torch_form_declares_forward_and_no_run() -> None:
    header = problem_header(everything(), DeviceKind.CPU, Interface.TORCH)
    assert "std::vector<torch::Tensor> forward(torch::Tensor t_float32," in header
    assert "double temperature" in header
    assert "void run(" not in header


def test_a_source_name_cannot_end_its_comment() -> None:
    signature = Signature(args=(tensor("x", (1,), source="a\n#include </etc/passwd>"),))
    lines = problem_header(signature, DeviceKind.CPU).splitlines()
    assert not [line for line in lines if line.startswith("#include </etc")]


def test_an_integer_beyond_2_to_the_53_is_refused() -> None:
    signature = Signature(args=(scalar("n", "int64", 2**53 + 2),))
    with pytest.raises(ProblemError, match="exceeds 2\\^53"):
        problem_header(signature, DeviceKind.CPU)


def test_a_dtype_without_a_c_form_is_refused() -> None:
    with pytest.raises(ProblemError, match="complex64"):
        problem_header(Signature(args=(tensor("x", (1,), dtype="complex64"),)), DeviceKind.CPU)


def test_names_that_differ_only_in_case_are_refused() -> None:
    with pytest.raises(ProblemError, match="differ only in case"):
        problem_header(Signature(args=(tensor("x", (1,)), tensor("X", (1,)))), DeviceKind.CPU)


def test_names_that_the_reserved_words_rule_would_make_equal_are_refused() -> None:
    with pytest.raises(ProblemError, match="would both be `int_`"):
        problem_header(Signature(args=(tensor("int_", (1,)), tensor("int", (1,)))), DeviceKind.CPU)


@pytest.mark.parametrize("name", ["wchar_t", "static_cast", "not_eq", "NULL", "errno", "size_t", "größe", "unix"])
def test_every_argument_name_of_python_compiles(name: str, tmp_path: Path) -> None:
    source = tmp_path / "kernel.cpp"
    signature = Signature(args=(tensor(name, (4,)), scalar("n", "int64", 1), tensor("out", (4,), Role.OUTPUT)))
    source.write_text("#include <cstdio>\n" + problem_header(signature, DeviceKind.CPU), encoding="utf-8")
    subprocess.run(["g++", "-std=c++17", "-fsyntax-only", str(source)], check=True, capture_output=True)


def test_half_conversion_loops_vectorise_with_the_documented_flags(tmp_path: Path) -> None:
    for dtype in ("fp16", "bf16"):
        signature = Signature(
            args=(
                tensor("x", (4096,), dtype={"fp16": "float16", "bf16": "bfloat16"}[dtype]),
                tensor("out", (4096,), Role.OUTPUT, dtype={"fp16": "float16", "bf16": "bfloat16"}[dtype]),
            )
        )
        source = (
            '#pragma GCC optimize("O3")\n'
            f"void run(const {dtype}* __restrict__ x, {dtype}* __restrict__ out, void*) {{\n"
            "  for (int64_t i = 0; i < X_NUMEL; i++) out[i] = 2.f * x[i];\n}\n"
        )
        (tmp_path / "problem.h").write_text(problem_header(signature, DeviceKind.CPU))
        (tmp_path / "k.cpp").write_text(source)
        command = [
            "g++",
            "-std=c++20",
            *CPU_FLAGS,
            "-fopt-info-vec",
            "-include",
            "problem.h",
            "-c",
            "k.cpp",
            "-o",
            "k.o",
        ]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        assert "loop vectorized" in done.stderr


def test_half_conversions_equal_the_compilers_own(tmp_path: Path) -> None:
    program = """
#include <cmath>
int main() {
  int wrong = 0;
  for (uint32_t i = 0; i < 65536; i++) {
    fp16 mine; mine.bits = static_cast<uint16_t>(i);
    _Float16 theirs; __builtin_memcpy(&theirs, &mine.bits, 2);
    float a = mine, b = theirs;
    wrong += __builtin_bit_cast(uint32_t, a) != __builtin_bit_cast(uint32_t, b) && !(std::isnan(a) && std::isnan(b));
    bf16 brain; brain.bits = static_cast<uint16_t>(i);
    float c = brain;
    wrong += bf16(c).bits != brain.bits && !(std::isnan(c) && std::isnan(static_cast<float>(bf16(c))));
  }
  for (uint64_t i = 0; i < (1ull << 32); i += 997) {
    float value = __builtin_bit_cast(float, static_cast<uint32_t>(i));
    _Float16 theirs = static_cast<_Float16>(value);
    uint16_t bits; __builtin_memcpy(&bits, &theirs, 2);
    wrong += fp16(value).bits != bits && !std::isnan(value);
  }
  return wrong ? 1 : 0;
}
"""
    (tmp_path / "problem.h").write_text(
        problem_header(Signature(args=()), DeviceKind.CPU).split("// Optional")[0].split("extern")[0] + "#endif\n"
    )
    (tmp_path / "main.cpp").write_text(program)
    for flags in (["-O2"], CPU_FLAGS):
        command = ["g++", "-std=c++20", *flags, "-march=native", "-include", "problem.h", "main.cpp", "-o", "main"]
        subprocess.run(command, cwd=tmp_path, check=True)
        assert subprocess.run([tmp_path / "main"], check=False).returncode == 0


STAGED_CUDA = """
template <int N> __global__ void work(const float* x, float* out) {
  RIDGELINE_STAGE(load);
  float sum = x[threadIdx.x];
  RIDGELINE_STAGE("add up")
  for (int k = 0; k < N; ++k) {
    RIDGELINE_STAGE(inner);
    if (sum > 1e30f) return;
    sum += x[k];
  }
  out[threadIdx.x] = sum;
}
void run(const float* x, float* out, void*, cudaStream_t stream) {
  RIDGELINE_STAGE(first);
  work<8><<<1, 16, 0, stream>>>(x, out);
  RIDGELINE_STAGE(second);
  work<64><<<1, 16, 0, stream>>>(x, out);
}
"""


@needs_nvcc
def test_stages_of_cuda_are_clocks_in_a_profile_and_nothing_in_a_judged_build(tmp_path: Path) -> None:
    signature = Signature(args=(tensor("x", (64,)), tensor("out", (16,), Role.OUTPUT)))

    def code(name: str, source: str, *, with_clocks: bool = False) -> bytes:
        folder = tmp_path / name
        folder.mkdir()
        (folder / "problem.h").write_text(problem_header(signature, DeviceKind.CUDA, with_clocks=with_clocks))
        (folder / "kernel.cu").write_text(source)
        command = ["nvcc", "-std=c++17", "-O3", "-arch=sm_90a", "-include", "problem.h", "kernel.cu"]
        subprocess.run([*command, "-cubin", "-o", "kernel.cubin"], check=True, cwd=folder)
        subprocess.run([*command, "-c", "-o", "kernel.o"], check=True, cwd=folder)  # the host's part too
        return (folder / "kernel.cubin").read_bytes()

    without = re.sub(r"RIDGELINE_STAGE\([^)]*\);?", "", STAGED_CUDA)
    assert code("judged", STAGED_CUDA) == code("without", without)
    assert b"g_cycles" in code("clocked", STAGED_CUDA, with_clocks=True)


def test_header_of_a_torch_extension_has_stages_that_are_nothing() -> None:
    signature = Signature(args=(tensor("x", (16,)), tensor("out", (16,), Role.OUTPUT)))
    assert "#define RIDGELINE_STAGE(name)\n" in problem_header(signature, DeviceKind.CPU, Interface.TORCH)
