"""The compiler's figures of a GPU's kernels, from messages that a source can shape."""

from __future__ import annotations

import pytest

from ridgeline.tools.profile.gpu_code import read_ptxas, read_resource_usage, short_name

DIGITS = "9" * 5000
"""More than Python turns into an int."""


@pytest.mark.parametrize(
    "line", [f"Used {DIGITS} registers", f"Used 4 registers, {DIGITS} bytes smem", f"{DIGITS} bytes stack frame"]
)
def test_a_figure_without_end_is_no_figure(line: str) -> None:
    kernels = read_ptxas(f"ptxas info : Compiling entry function 'k' for 'sm_90a'\nptxas info : {line}\n")
    assert kernels["k"].shared_bytes == 0
    assert kernels["k"].stack_bytes == 0


def test_a_listing_s_figure_without_end_is_no_figure() -> None:
    assert read_resource_usage(f"Function k:\n REG:{DIGITS} STACK:0 SHARED:0 LOCAL:0\n", "sm_90a") == {}


def test_a_name_of_digits_is_its_own_short_name() -> None:
    assert short_name(f"_ZN{DIGITS}a") != ""
    assert short_name("_ZN3abc7softmaxILi64EEvPKfPf") == "softmax"
