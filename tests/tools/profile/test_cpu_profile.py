"""The loops of real shared objects, built here from trusted sources and read without loading them."""

import platform
import shutil
import subprocess
from pathlib import Path

import pytest

from ridgeline.tools.build.flags import profile_flags
from ridgeline.tools.machine import vectors
from ridgeline.tools.machine.devices import detect_device
from ridgeline.tools.profile.cpu_code import LoopFacts, read_listing
from ridgeline.tools.profile.cpu_profile import loop_notes
from ridgeline.tools.records.vocabulary import DeviceKind

pytestmark = [
    pytest.mark.skipif(
        platform.machine() != "x86_64" or not shutil.which("objdump") or not shutil.which("g++"),
        reason="needs x86-64, g++ and objdump",
    ),
]

FLAGS = ("-O3", "-march=x86-64-v3", "-fopenmp", "-ffast-math", "-fno-finite-math-only", "-shared", "-fPIC")
SOURCES = {
    "plain": "void run(const float* x, float* out) { for (int i = 0; i < 4096; ++i) out[i] = 2 * x[i] + x[i] * x[i]; }",
    "libm": "#include <cmath>\nvoid run(const float* x, float* out) { for (int i = 0; i < 4096; ++i) out[i] = erff(x[i]); }",
    "streaming": "#include <immintrin.h>\nvoid run(const float* x, float* out) { for (int i = 0; i < 4096; i += 8)"
    " _mm256_stream_ps(out + i, _mm256_mul_ps(_mm256_loadu_ps(x + i), _mm256_loadu_ps(x + i))); }",
    "scalar": "void run(const float* x, float* out) { float a = 0; for (int i = 0; i < 4096; ++i)"
    " { a = a / (x[i] + a); out[i] = a; } }",
    "both": "void run(const float* __restrict__ x, float* __restrict__ out) {\n"
    "for (int i = 0; i < 4095; ++i)\n out[i] = 2 * x[i] + x[i] * x[i];\n"
    "float a = 0;\nfor (int i = 0; i < 4096; ++i) {\n  a = a / (x[i] + a);\n  out[i] += a;\n}\n}",
    "divides": "void run(const float* __restrict__ x, float* __restrict__ out) {"
    " for (int i = 0; i < 4096; ++i) out[i] = (x[i] + 2) / (x[i] + 1); }",
    "normalises": "void run(const float* __restrict__ x, float* __restrict__ out) {"
    " for (int i = 0; i < 512; ++i, x += 32, out += 32) { float s = 0;\n#pragma GCC unroll 32\n"
    " for (int j = 0; j < 32; ++j) s += x[j] * x[j];\n const float r = 1.0f / s;\n#pragma GCC unroll 32\n"
    " for (int j = 0; j < 32; ++j) out[j] = x[j] * r + x[j] * x[j]; } }",
    "threads": "void run(const float* x, float* out) {\n#pragma omp parallel for\n"
    "for (int i = 0; i < 4096; ++i) out[i] = x[i] * x[i]; }",
    "gather": "#include <immintrin.h>\nvoid run(const float* x, const int* k, float* out) {"
    " for (int i = 0; i < 4096; i += 8) { __m256i at = _mm256_loadu_si256((const __m256i*)(k + i));"
    " _mm256_storeu_ps(out + i, _mm256_add_ps(_mm256_set1_ps(1), _mm256_i32gather_ps(x, at, 4))); } }",
}


def build(folder: Path, name: str) -> Path:
    source, library = folder / f"{name}.cpp", folder / f"{name}.so"
    source.write_text(f'extern "C" {SOURCES[name]}' if "#include" not in SOURCES[name] else SOURCES[name])
    subprocess.run(["g++", *FLAGS, "-o", str(library), str(source)], check=True)
    return library


def facts_of(folder: Path, name: str) -> LoopFacts:
    command = ["objdump", "-d", "--no-show-raw-insn", "-w", str(build(folder, name))]
    return read_listing(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def notes_of(folder: Path, name: str) -> str:
    return " | ".join(loop_notes(facts_of(folder, name), device=detect_device("cpu"), is_memory_bound=True))


def test_packed_loop_is_seen_with_its_register_width(tmp_path: Path) -> None:
    facts = facts_of(tmp_path, "plain")
    assert facts.widest_bits == 256
    assert facts.plain_vector_stores > 0
    assert facts.streaming_stores == 0
    assert not facts.uses_openmp


def test_plain_stores_of_a_memory_bound_kernel_suggest_streaming(tmp_path: Path) -> None:
    assert "streaming stores" in notes_of(tmp_path, "plain")


@pytest.mark.parametrize(
    ("flags", "store"),
    [
        (("sse2", "avx", "avx512f"), "(_mm512_stream_ps on 64-byte"),
        (("sse2", "avx", "avx2"), "(_mm256_stream_ps on 32-byte"),
        (("sse2",), "(_mm_stream_ps on 16-byte"),
    ],
)
def test_advised_streaming_store_is_one_that_the_processor_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: tuple[str, ...], store: str
) -> None:
    monkeypatch.setattr(vectors, "cpu_flags", lambda: flags)
    notes = notes_of(tmp_path, "plain")
    assert store in notes
    assert ("has 512-bit registers" in notes) is ("avx512f" in flags)


def test_libm_call_per_element_is_named(tmp_path: Path) -> None:
    facts = facts_of(tmp_path, "libm")
    assert "erff" in facts.scalar_math or any("erff" in name for name in facts.vector_math)
    assert "erff" in notes_of(tmp_path, "libm")


def test_streaming_stores_are_counted_and_not_suggested_again(tmp_path: Path) -> None:
    assert facts_of(tmp_path, "streaming").streaming_stores > 0
    assert "read from memory before" not in notes_of(tmp_path, "streaming")


def test_serial_dependence_is_reported_as_not_vectorised(tmp_path: Path) -> None:
    facts = facts_of(tmp_path, "scalar")
    assert facts.widest_bits == 0
    assert (facts.divisions, facts.loops) == (1, 1)
    assert "no floating-point loop is vectorised" in notes_of(tmp_path, "scalar")


def test_openmp_region_is_found_and_its_absence_named(tmp_path: Path) -> None:
    assert facts_of(tmp_path, "threads").uses_openmp
    if detect_device("cpu").cores > 1:
        assert "no OpenMP region" in notes_of(tmp_path, "plain")
    assert "no OpenMP region" not in notes_of(tmp_path, "threads")


def test_divisions_are_told_where_they_are_many_and_not_of_a_reciprocal_once_a_row(tmp_path: Path) -> None:
    assert "division(s)" in notes_of(tmp_path, "divides")
    assert "division(s)" not in notes_of(tmp_path, "normalises")


def test_the_registers_width_is_told_of_what_the_compiler_vectorised_alone(tmp_path: Path) -> None:
    facts = facts_of(tmp_path, "gather")
    told = {"device": detect_device("cpu"), "is_memory_bound": True}
    assert any("vectorised with 256-bit" in note for note in loop_notes(facts, **told))
    assert not any("vectorised with" in note for note in loop_notes(facts, **told, is_by_hand=True))


def test_gathers_are_counted(tmp_path: Path) -> None:
    assert facts_of(tmp_path, "gather").gathers > 0


def test_scalar_loop_is_told_by_its_line_and_a_remainder_is_not(tmp_path: Path) -> None:
    source, library = tmp_path / "kernel.cpp", tmp_path / "kernel.so"
    source.write_text(f'extern "C" {SOURCES["both"]}')
    subprocess.run(["g++", *FLAGS, "-g1", "-o", str(library), str(source)], check=True)
    command = ["objdump", "-d", "-l", "--no-show-raw-insn", "-w", str(library)]
    facts = read_listing(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert facts.never_packed == (6,)
    assert 3 in facts.packed_lines
    notes = loop_notes(facts, device=detect_device("cpu"), is_memory_bound=True, scalar_lines=["line 6 (`a = …`)"])
    assert any("scalar, in no vector version: line 6 (`a = …`)" in note for note in notes)
    none = loop_notes(facts, device=detect_device("cpu"), is_memory_bound=True, scalar_lines=[])
    assert not any("scalar" in note for note in none)


def test_line_tables_leave_the_code_as_it_is(tmp_path: Path) -> None:
    def code(*options: str) -> str:
        source, library = tmp_path / "kernel.cpp", tmp_path / "kernel.so"
        source.write_text(f'extern "C" {SOURCES["both"]}')
        subprocess.run(["g++", *FLAGS, *options, "-o", str(library), str(source)], check=True)
        command = ["objdump", "-d", "-j", ".text", str(library)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    assert code(*profile_flags(DeviceKind.CPU)) == code()
