"""A search's device and reference as prompts show them."""

from __future__ import annotations

import pytest

from ridgeline.graph.models.showing.subject_rows import device_rows, reference_lines
from ridgeline.tools.records.problem import DeviceFact


def rows(**facts: str) -> list[str]:
    return device_rows([DeviceFact(name=name.replace("_", " "), value=value) for name, value in facts.items()])


def test_caches_share_a_row_and_so_do_peaks_of_one_unit() -> None:
    assert rows(
        registers="65,536",
        L1_data_cache="48 KiB a core",
        L2_cache="1 MiB a core",
        peak_fp32="65.7 TFLOP/s, measured",
        peak_fp8="1.79e+03 TFLOP/s, measured",
    ) == [
        "registers: 65,536",
        "caches: L1 data 48 KiB a core, L2 1 MiB a core",
        "peak TFLOP/s, measured: fp32 65.7, fp8 1790",
    ]


def test_one_cache_one_peak_and_peaks_of_several_units_keep_their_rows() -> None:
    assert rows(L2_cache="50 MiB", peak_fp32="572 GFLOP/s, measured") == [
        "L2 cache: 50 MiB", "peak fp32: 572 GFLOP/s, measured"
    ]  # fmt: skip
    assert len(rows(peak_fp32="900 GFLOP/s, measured", peak_fp16="1.2 TFLOP/s, measured")) == 2


@pytest.mark.parametrize(
    ("compiler", "told"),
    [
        ("g++ (Debian 12.2.0-14+deb12u1) 12.2.0", "g++ 12.2.0"),
        ("Build cuda_13.0.r13.0/compiler.36424714_0", "nvcc 13.0"),
        ("clang 17", "clang 17"),
    ],
)
def test_of_a_compiler_its_name_and_version_are_told(compiler: str, told: str) -> None:
    assert rows(compiler=compiler) == [f"compiler: {told}"]


def test_several_hardware_threads_a_core_are_told_and_a_single_one_is_not() -> None:
    assert rows(hardware_threads="2 a core") == ["hardware threads: 2 a core"]
    assert rows(hardware_threads="1 a core") == []


def test_a_reference_is_shown_without_empty_arguments_and_blank_lines() -> None:
    body = "class Model:\n    pass\n\n\ndef get_inputs():\n    return [x]\n"
    shown = "class Model:\n    pass\n\ndef get_inputs():\n    return [x]"
    assert reference_lines(f"{body}\n\ndef get_init_inputs() -> list[int]:\n    return []\n") == shown
    with_arguments = f"{body}\n\ndef get_init_inputs():\n    return [1e-6]\n"
    assert reference_lines(with_arguments) == f"{shown}\n\ndef get_init_inputs():\n    return [1e-6]"
