"""What the compiler refuses before anything is built, and the flags that it takes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.tools.build.tasks import EMPTY_RUN, MakeProblem, MakeTask

from ridgeline.tools.build.compiler import Compiler
from ridgeline.tools.build.flags import refused_flags, requested_flags
from ridgeline.tools.records.vocabulary import DeviceKind, ReasonCode, Status

pytestmark = pytest.mark.sandboxed


async def test_a_torch_candidate_has_no_sanitizer_build(
    compiler: Compiler, make_task: MakeTask, make_problem: MakeProblem, exp_source: str
) -> None:
    task = make_task(exp_source, make_problem(interface="torch"), sanitized=True)
    (build,) = await compiler.compile_batch([task])
    assert (build.status, build.reason_code) == (Status.REFUSED, ReasonCode.INTERFACE_UNSUPPORTED)
    assert build.reason == "sanitizer builds exist for interface c only"


@pytest.mark.parametrize(
    "flag",
    [
        "-fplugin=/tmp/x.so",
        "-I/root",
        "-Wl,-rpath,/",
        "@file",
        "-o",
        "-lcublas",
        "-funroll-loops;id",
        "-fuse-ld=x",
        "$HOME",
    ],
)
async def test_a_flag_that_is_not_listed_is_refused(compiler: Compiler, make_task: MakeTask, flag: str) -> None:
    (build,) = await compiler.compile_batch([make_task(f"// flags: -O2 {flag}\n" + EMPTY_RUN)])
    assert (build.status, build.reason_code) == (Status.REFUSED, ReasonCode.FLAG_NOT_ALLOWED)
    assert flag in build.reason


async def test_listed_flags_are_used_and_recorded(compiler: Compiler, make_task: MakeTask) -> None:
    flags = (
        "-funroll-loops",
        "-fno-tree-vectorize",
        "-mprefer-vector-width=256",
        "-fno-math-errno",
        "-O2",
        "-ffp-contract=off",
    )
    (build,) = await compiler.compile_batch([make_task(f"// flags: {' '.join(flags)}\n" + EMPTY_RUN)])
    assert build.status is Status.OK
    assert [flag for flag in build.flags if flag in flags] == list(flags)


async def test_flags_too_long_for_a_command_are_their_sources_error_and_stop_no_batch(
    compiler: Compiler, make_task: MakeTask
) -> None:
    lines = "// flags: -O3 -funroll-loops\n" * 8_000
    long, good = await compiler.compile_batch([make_task(lines + EMPTY_RUN), make_task(EMPTY_RUN)])
    assert (long.status, long.reason_code) == (Status.REFUSED, ReasonCode.FLAG_NOT_ALLOWED)
    assert long.reason == "the `// flags:` have 151999 characters together, the limit is 4000: name each once"
    assert good.status is Status.OK


def test_a_kernels_own_architecture_is_dropped() -> None:
    asked = requested_flags(
        "// flags: -arch=sm_70 --use_fast_math -gencode=arch=compute_80,code=sm_80 -maxrregcount=64\n"
    )
    assert asked == ("--use_fast_math", "-maxrregcount=64")
    assert refused_flags(asked, DeviceKind.CUDA) == ()
    assert refused_flags(asked, DeviceKind.CPU) == asked


async def test_sources_too_large_or_of_another_language_are_refused(
    compiler: Compiler, make_task: MakeTask, make_problem: MakeProblem
) -> None:
    other = make_task(EMPTY_RUN)
    large, binary, cuda, torch = await compiler.compile_batch(
        [
            make_task(EMPTY_RUN + "//" + "x" * (1 << 20)),
            make_task(EMPTY_RUN + "\0"),
            replace(other, candidate=replace(other.candidate, language="cu")),
            replace(other, problem=make_problem("torch")),
        ]
    )
    assert (large.reason_code, binary.reason_code) == (ReasonCode.SOURCE_REJECTED, ReasonCode.SOURCE_REJECTED)
    assert (cuda.reason_code, torch.reason_code) == (ReasonCode.INTERFACE_UNSUPPORTED, ReasonCode.INTERFACE_UNSUPPORTED)
