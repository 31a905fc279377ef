"""compute-sanitizer's reports as findings of one line each, and the verdict they make."""

import time

import pytest

from ridgeline.tools.profile.sanitizer import (
    FOUND_EXIT_CODE,
    NOT_INSTALLED,
    Examination,
    SanitizerReport,
    conclude,
    examine,
    read_findings,
    sanitizer_options,
)
from ridgeline.tools.records.vocabulary import ReasonCode, Status
from ridgeline.tools.sandbox.process import ExitStatus

FOUND = ExitStatus(code=FOUND_EXIT_CODE)
FINE = ExitStatus(code=0)

MEMCHECK = """========= COMPUTE-SANITIZER
========= Invalid __global__ write of size 4 bytes
=========     at void scale<(int)4>(const float *, float *)+0x130 in /build/kernel.cu:9
=========     by thread (0,0,0) in block (4096,0,0)
=========     Access to 0x7f0400000000 is out of bounds
=========     and is 17,179,869,185 bytes after the nearest allocation at 0x7f0000000000 of size 4,194,304 bytes
=========         Host Frame: main [0x1754] in host
=========
========= Invalid __global__ write of size 4 bytes
=========     at void scale<(int)4>(const float *, float *)+0x130 in /build/kernel.cu:9
=========     by thread (1,0,0) in block (4096,0,0)
=========     Access to 0x7f0400000004 is out of bounds
=========
========= Program hit cudaErrorLaunchFailure (error 719) on CUDA API call to cudaStreamSynchronize.
=========
========= Target application returned an error
========= ERROR SUMMARY: 3 errors
"""
RACE = """========= COMPUTE-SANITIZER
========= Warning: Race reported between Write access at fold(float *)+0x550
=========     and Read access at fold(float *)+0x580 [64 hazards]
=========
========= Error: Race reported between Write access at race(const float *, float *)+0x90 in /build/kernel.cu:6
=========     and Read access at race(const float *, float *)+0x100 in /build/kernel.cu:8 [508 hazards]
=========
========= RACECHECK SUMMARY: 2 hazards displayed (1 error, 1 warning)
"""
INIT = """========= COMPUTE-SANITIZER
========= Uninitialized __global__ memory read of size 4 bytes
=========     at 0x70 in uninitialised(const float *, float *, const float *)
=========     by thread (31,0,0) in block (1,0,0)
=========     Address 0x7f3c7ec000fc
=========
========= ERROR SUMMARY: 1 error
"""
SYNC = """========= COMPUTE-SANITIZER
========= Barrier error detected. Divergent thread(s) in warp.
=========     at halves(float *)+0xa0
=========     by thread (19,0,0) in block (0,0,0)
=========
========= ERROR SUMMARY: 1 error
"""
CLEAN = "========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n"
CLEAN_RACE = "========= COMPUTE-SANITIZER\n========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)\n"


def test_out_of_bounds_write_is_one_line_with_its_place_and_count() -> None:
    first, second = read_findings(MEMCHECK)
    assert first == "Invalid __global__ write of size 4 bytes at scale() in kernel.cu:9 out of bounds (2 times)"
    assert second.startswith("Program hit cudaErrorLaunchFailure")


def test_race_names_both_accesses_and_a_warning_is_none() -> None:
    assert read_findings(RACE) == (
        "Race reported between Write access at race() in kernel.cu:6 and Read access at race() in kernel.cu:8 [508 hazards]",
    )


@pytest.mark.parametrize(
    ("output", "line"),
    [
        (INIT, "Uninitialized __global__ memory read of size 4 bytes at uninitialised()"),
        (SYNC, "Barrier error detected. Divergent thread(s) in warp. at halves()"),
    ],
)
def test_other_tools_findings_name_the_kernel(output: str, line: str) -> None:
    assert read_findings(output) == (line,)


@pytest.mark.parametrize("output", [CLEAN, CLEAN_RACE])
def test_clean_report_is_clean(output: str) -> None:
    assert conclude("memcheck", FINE, output) == Examination(tool="memcheck")


@pytest.mark.parametrize(
    "output",
    [
        "",
        '========= COMPUTE-SANITIZER\n========= Error: Device not supported. Please refer to the "Supported Devices"\n',
        "========= COMPUTE-SANITIZER\n",
    ],
)
def test_tool_that_does_not_work_is_skipped_and_never_clean(output: str) -> None:
    found = conclude("memcheck", ExitStatus(code=1, message="exited with status 1"), output)
    assert found.findings == ()
    assert found.skipped.startswith("memcheck did not finish: ")


def test_summary_before_a_candidate_that_failed_otherwise_is_not_clean() -> None:
    assert conclude("memcheck", ExitStatus(code=3), CLEAN).skipped


def test_verdict_is_ok_refused_or_runtime_error() -> None:
    clean = tuple(Examination(tool=tool) for tool in ("memcheck", "racecheck"))
    assert SanitizerReport(examinations=clean).verdict(sandbox_tier="A").status is Status.OK
    assert SanitizerReport(examinations=clean).clean_tools == ("memcheck", "racecheck")
    partly = (clean[0], Examination(tool="racecheck", skipped="timed out"))
    assert SanitizerReport(examinations=partly).verdict(sandbox_tier="A").reason == "without racecheck: timed out"
    found = (conclude("memcheck", FOUND, MEMCHECK), conclude("racecheck", FOUND, RACE))
    verdict = SanitizerReport(examinations=found).verdict(sandbox_tier="A")
    assert (verdict.status, verdict.reason_code) == (Status.RUNTIME_ERROR, ReasonCode.CRASHED)
    assert verdict.reason.startswith("memcheck: Invalid __global__ write") and "; racecheck: Race" in verdict.reason
    refused = SanitizerReport(skipped="compute-sanitizer is not installed").verdict(sandbox_tier="B")
    assert (refused.status, refused.reason_code) == (Status.REFUSED, ReasonCode.INTERFACE_UNSUPPORTED)


def test_without_compute_sanitizer_the_step_is_skipped_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ridgeline.tools.profile.sanitizer.find_tool", lambda _: None)
    report = examine(None, signature=None, library=None, sandbox=None)  # type: ignore[arg-type]  # nothing is run
    assert report.skipped == NOT_INSTALLED


def test_each_tool_is_asked_for_by_name() -> None:
    assert sanitizer_options("initcheck")[:2] == ("--tool", "initcheck")
    assert "--racecheck-report" in sanitizer_options("racecheck")


@pytest.mark.parametrize("piece", ["<", "(", "<(", " /", " /a/", "+0x1"])
def test_a_program_that_prints_findings_of_its_own_is_read_in_time_by_their_length(piece: str) -> None:
    line = f"=========     at {piece * 2000}\n"
    output = f"========= Invalid __global__ write of size 4 bytes\n{line}=========\n" * 500
    started = time.process_time()
    assert read_findings(output)
    assert time.process_time() - started < 5.0


def test_a_place_that_is_all_brackets_is_read_as_fast_as_one_without() -> None:
    def seconds(piece: str) -> float:
        place = f"=========     at {piece * 160}\n"
        began = time.process_time()
        read_findings("========= Invalid __global__ write of size 4 bytes\n" + place * 1000)
        return time.process_time() - began

    brackets_s, words_s = (min(seconds(piece) for _ in range(5)) for piece in ("<>(", "abc"))
    assert brackets_s < 5 * words_s, "an expression that tries each bracket takes eighty times as long"
