"""What is said of a build that left no library."""

from __future__ import annotations

import pytest

from ridgeline.tools.build.failures import find_failure
from ridgeline.tools.build.ninja_batch import BuildOutcome
from ridgeline.tools.build.recipe import Recipe
from ridgeline.tools.records.finding import Finding
from ridgeline.tools.records.vocabulary import ReasonCode


def found(status: str, log: str = "", *, runs_source: bool = True) -> Finding:
    recipe = Recipe(
        key="k",
        entry="ModelNew",
        flags=(),
        files={},
        command=("x",),
        readable=(),
        pool="torch",
        cpu_s=100,
        memory_bytes=1 << 30,
        runs_source=runs_source,
    )
    outcome = BuildOutcome(exit_code=1, status=(status,), log=log.encode(), seconds=1.0)
    return find_failure(outcome, log, log, recipe, "x86-64", file_bytes=1 << 20)


@pytest.mark.parametrize(
    ("status", "how"),
    [
        ("exit 0 - 0 0", "exit status 0"),
        ("exit 6 - 0 0", "killed by SIGABRT"),
        ("exit 11 - 0 0", "killed by SIGSEGV: it touched memory that it may not (segmentation fault)"),
    ],
)
def test_a_file_that_ends_its_builder_is_told_so_with_the_status(status: str, how: str) -> None:
    reason = f"the file ended the process that imports and builds it: {how}"
    assert found(status) == Finding(code=ReasonCode.COMPILER_FAILED, reason=reason)
    assert found(status, runs_source=False).reason == "the compiler failed without a message"
    told = found(status, "candidate.py:3: error: ValueError: no")
    assert told.reason == "candidate.py:3: error: ValueError: no"


def test_a_file_that_sleeps_is_not_told_of_a_compiler() -> None:
    late = found("exit 9 wall 0 0")
    assert late.code is ReasonCode.COMPILER_TIMEOUT
    assert late.reason.startswith("the file did not come to an end within 300 s, in which it is imported")
    slow = found("exit 9 wall 0 0", runs_source=False)
    assert slow.reason == "the compiler was stopped after 300 s: simplify the source"
    of_compiler = found("exit 256 - 0 0", "g++: fatal error: CPU time limit exceeded signal terminated program cc1plus")
    assert of_compiler.reason == "the compiler was stopped after 100 s: simplify the source"
