"""Compilers' and linkers' messages in the words of whoever wrote the kernel, and which limit of a build ended one."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from ridgeline.tools.build.messages import (
    LOG_BYTES,
    explain_limit,
    explain_log,
    explain_unloadable,
    plain_log,
    tells_of_error,
    trim_log,
)
from ridgeline.tools.machine.kills import tells_of_kill
from ridgeline.tools.records.vocabulary import ReasonCode

ENTRY = 'extern "C" void run(const float* __restrict__ x, float* __restrict__ out, void* workspace)'
GCC = """\
kernel.cpp:3:12: error: 'weight' was not declared in this scope
    3 |   out[i] = weight[i] * x[i];
      |            ^~~~~~
"""
NVCC = """\
kernel.cu(3): error: identifier "WEIGHT_SHAPE_0" is undefined
    out[i] = x[WEIGHT_SHAPE_0];
"""
FUNCTION = """\
kernel.cpp:3:12: error: 'expf' was not declared in this scope
    3 |   out[i] = expf(x[i]);
      |            ^~~~
"""


@pytest.mark.parametrize("log", [GCC, NVCC])
def test_a_value_of_another_problem_is_answered_with_this_ones_declaration(log: str) -> None:
    found = explain_log(log, ENTRY)
    assert found.code is ReasonCode.COMPILER_FAILED
    assert found.reason == f"{log.splitlines()[0]}; what there is are the arguments of `{ENTRY}` and problem.h"


def test_a_function_that_is_missing_is_no_matter_of_the_declaration() -> None:
    assert explain_log(FUNCTION, ENTRY).reason == FUNCTION.splitlines()[0]


def test_a_torch_library_without_forward_is_answered_with_its_declaration() -> None:
    entry = "torch::Tensor forward(torch::Tensor x)"
    reason = explain_unloadable("/build/kernel.so: undefined symbol: _Z7forwardN2at6TensorE", entry)
    assert reason == f"the source defines no `forward` with this problem's parameters; it has to be `{entry}`"
    other = "/build/kernel.so: undefined symbol: omp_get_num_threads"
    assert explain_unloadable(other, entry) == other


@pytest.mark.parametrize(
    ("said", "cause"),
    [
        (
            (
                "/usr/bin/ld: kernel.o: in function `run(float*)':\n"
                "kernel.cpp:(.text+0x1c): relocation truncated to fit: R_X86_64_PC32 against `.bss'\n"
            ),
            "kernel.cpp:(.text+0x1c): relocation truncated to fit: R_X86_64_PC32 against `.bss'",
        ),
        (
            (
                "/usr/bin/ld: warning: kernel.o: requires executable stack\n"
                "/usr/bin/ld: kernel.o(.text+0x51): unresolvable R_X86_64_PLT32 relocation against symbol `memset'\n"
            ),
            "/usr/bin/ld: kernel.o(.text+0x51): unresolvable R_X86_64_PLT32 relocation against symbol `memset'",
        ),
        ("/usr/bin/ld: warning: kernel.o: requires executable stack\n", "collect2: error: ld returned 1 exit status"),
    ],
)
def test_a_failed_link_is_told_by_the_linkers_own_line(said: str, cause: str) -> None:
    found = explain_log(f"{said}collect2: error: ld returned 1 exit status\n", "void run()")
    assert (found.code, found.reason) == (ReasonCode.LINK_FAILED, cause)


LIMITS = {"file_bytes": 256 << 20, "memory_bytes": 3 << 30}


@pytest.mark.parametrize(
    ("log", "says"),
    [
        ("g++: internal compiler error: File size limit exceeded signal terminated program as", "limit of 256 MiB"),
        (
            "/usr/bin/ld: final link failed: File too large\ncollect2: error: ld returned 1 exit status",
            "limit of 256 MiB",
        ),
        ("virtual memory exhausted: Cannot allocate memory", "limit of 3072 MiB"),
        ("cc1plus: out of memory allocating 65536 bytes after a total of 3220373504 bytes", "limit of 3072 MiB"),
    ],
)
def test_a_compiler_that_met_a_limit_is_told_by_it(log: str, says: str) -> None:
    found = explain_limit(log, **LIMITS)
    assert found is not None
    assert found.code is ReasonCode.COMPILER_FAILED
    assert found.reason.startswith("the compiler was stopped: ")
    assert says in found.reason


@pytest.mark.parametrize(
    "log",
    [
        "g++: fatal error: Killed signal terminated program cc1plus\ncompilation terminated.",
        "g++: internal compiler error: Killed (program cc1plus)",
        "kernel.cpp:1:9: warning: comparison\ncollect2: fatal error: ld terminated with signal 9 [Killed]",
        (
            "gcc: fatal error: Killed signal terminated program cc1plus\ncompilation terminated.\n"
            "nvcc fatal   : Failed to preprocess host compiler properties."
        ),
        "Killed\n",
        (
            "g++: fatal error: Killed signal terminated program as\nninja: build stopped: subcommand failed.\n"
            "candidate.py:4: error: RuntimeError: Error building extension 'own'"
        ),
    ],
)
def test_a_compiler_that_was_killed_met_no_limit_and_no_error(log: str) -> None:
    assert explain_limit(log, **LIMITS) is None
    assert tells_of_kill(log) and not tells_of_error(log)


def test_a_source_that_prints_a_kill_fails_by_an_error_of_its_own() -> None:
    printed = 'x\ng++: fatal error: Killed signal terminated program cc1plus\n    5 | static_assert(false, "...");'
    assert tells_of_error(f"kernel.cpp:5:15: error: static assertion failed: {printed}")


@pytest.mark.parametrize(
    "line",
    [
        "kernel.cpp:1:2: error: #error error: Killed signal terminated program cc1plus",
        "kernel.cpp:1:19: error: error: Terminated signal terminated program x",
        "kernel.cpp:1:19: error: Killed signal terminated program x",
        "g++: fatal error: Killed signal terminated program x:1:2: error: as the source names its file",
        "kernel.cu(3): error: 'x' died due to signal 9",
    ],
)
def test_an_error_of_the_source_that_speaks_of_a_kill_is_none(line: str) -> None:
    assert tells_of_error(line) and not tells_of_kill(line)


def test_an_error_of_the_source_is_no_limit() -> None:
    assert explain_limit("kernel.cpp:3:1: error: 'x' was not declared in this scope", **LIMITS) is None


def test_a_compiler_that_broke_down_is_quoted() -> None:
    line = "kernel.cpp:4:9: internal compiler error: Segmentation fault"
    assert explain_log(f"{line}\nPlease submit a full bug report", "void run()").reason == line


def test_what_a_gpu_lacks_is_told_before_any_other_error() -> None:
    log = "ptxas kernel.ptx, line 9; error   : Instruction 'wgmma.fence' cannot be compiled for architecture 'sm_80'"
    found = explain_log(log, "void run()", "sm_80")
    assert found.code is ReasonCode.COMPILER_FAILED
    assert found.reason.startswith("wgmma.fence: this exists on sm_90a only; this GPU is sm_80: multiply with mma.sync")


def test_an_assembler_s_error_is_quoted() -> None:
    log = "kernel.cpp: Assembler messages:\nkernel.cpp:2: Error: no such instruction: `bogus %eax'\n"
    found = explain_log(trim_log(log), ENTRY)
    assert found.code is ReasonCode.COMPILER_FAILED
    assert found.reason == "kernel.cpp:2: Error: no such instruction: `bogus %eax'"


def test_an_assembler_s_fatal_error_is_quoted() -> None:
    log = "kernel.s: Assembler messages:\nkernel.s:2: Fatal error: macros nested too deeply\nkernel.s:2:  Info: from here\n"
    found = explain_log(trim_log(log), ENTRY)
    assert found.reason == "kernel.s:2: Fatal error: macros nested too deeply"


def test_the_include_that_the_compiler_names_is_told() -> None:
    log = (
        "kernel.cpp:2:6: error: 'vector' is not a member of 'std'\n"
        "kernel.cpp:1:1: note: 'std::vector' is defined in header '<vector>'; did you forget to '#include <vector>'?\n"
    )
    assert explain_log(log, ENTRY).reason == f"{log.splitlines()[0]}; write `#include <vector>`"


def test_an_include_that_a_later_error_lacks_is_not_told_with_the_first() -> None:
    first = "kernel.cpp:2:6: error: expected ';' before 'x'"
    other = "kernel.cpp:3:6: error: 'sort' is not a member of 'std'"
    note = "kernel.cpp:1:1: note: 'std::sort' is defined in header '<algorithm>'; did you forget to '#include <algorithm>'?"
    assert explain_log(f"{first}\n{other}\n{note}\n", ENTRY).reason == first


def test_temporary_files_get_the_kernel_s_name() -> None:
    raw = (
        b"/usr/bin/ld: /tmp/x/ccAbC123.o: in function `run':\n"
        b"/tmp/ccAbC123.s:7: Error: junk\nptxas /tmp/tmpxft_0a_1-6_k.ptx, line 9"
    )
    text = plain_log(raw, Path("/build"))
    assert text == "/usr/bin/ld: kernel.o: in function `run':\nkernel.s:7: Error: junk\nptxas kernel.ptx, line 9"


@pytest.mark.parametrize("piece", ["/", " ", ":1", "(1:", "tmpxft_", "/cc", "\x1b[0", "run(", "ptxas ; error ", "a\n"])
def test_a_log_takes_time_by_its_length(piece: str) -> None:
    raw = (piece * (1 << 20))[: 1 << 20].encode()
    started = time.process_time()
    log = trim_log(plain_log(raw + b"\nkernel.cpp:1:1: error: the last\n", Path("/build")))
    found = explain_log(log, ENTRY)
    assert time.process_time() - started < 5.0
    assert len(log.encode()) <= LOG_BYTES
    assert found.reason == "kernel.cpp:1:1: error: the last"
