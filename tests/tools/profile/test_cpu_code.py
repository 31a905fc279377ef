"""The loops of a library's code, from a listing that its source can shape."""

from __future__ import annotations

import time

from ridgeline.tools.profile.cpu_code import read_listing


def listing(lines: list[tuple[int, str]]) -> str:
    """Return objdump's listing of one function from (address, instruction)."""
    return "\n".join(["0000 <run>:", *(f"  {address:x}:\t{text}" for address, text in lines)]) + "\n"


def test_only_the_innermost_of_nested_loops_counts() -> None:
    code = [
        (0x10, "mulps %xmm0,%xmm1"),
        (0x14, "addps %ymm0,%ymm1"),
        (0x18, "jne 14 <run+0x4>"),
        (0x1C, "jne 10 <run>"),
        (0x20, "addss %xmm0,%xmm1"),
        (0x24, "jne 20 <run+0x10>"),
    ]
    facts = read_listing(listing(code))
    assert facts.loops == 2
    assert facts.arithmetic == {256: 1, 32: 1}


def test_of_loops_that_overlap_the_first_counts() -> None:
    code = [(0x10, "addps %xmm0,%xmm1"), (0x14, "nop"), (0x18, "jne 10 <run>"), (0x1C, "jne 14 <run+0x4>")]
    assert read_listing(listing(code)).loops == 1


def test_a_library_of_many_loops_is_read_in_time_by_its_length() -> None:
    half = 30_000
    code = [(2 * i + 2, "nop") for i in range(half)]
    code += [(2 * (half + i) + 2, f"jne {2 * i + 2:x} <run+0x1>") for i in range(half)]
    started = time.process_time()
    read_listing(listing(code))
    assert time.process_time() - started < 10.0


def test_a_long_file_name_of_a_line_directive_is_read_at_once() -> None:
    began = time.process_time()
    read_listing(f"0 <run>:\n{'/a:1' * 30_000}!\n{'//' * 10_000}!\n")
    assert time.process_time() - began < 0.3
