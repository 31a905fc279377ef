"""Real ninja, g++ and nvcc, each compile command in the sandbox."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from shutil import which
from typing import Any

import pytest
from tests.folders import nest_folders
from tests.live_processes import processes_naming
from tests.tools.build.tasks import EMPTY_RUN, MakeProblem, MakeTask, needs_nvcc

from ridgeline.tools.build import cache
from ridgeline.tools.build import compiler as compiler_module
from ridgeline.tools.build.compiler import Compiler
from ridgeline.tools.build.interfaces import BUILDS, CBuild
from ridgeline.tools.build.ninja_batch import BuildOutcome
from ridgeline.tools.build.recipe import Recipe
from ridgeline.tools.errors import EngineError, SandboxError, StorageError
from ridgeline.tools.records.vocabulary import DeviceKind, Interface, ReasonCode, Status
from ridgeline.tools.sandbox.sandbox import Sandbox, Tier

pytestmark = pytest.mark.sandboxed
SPIN = "constexpr int spin(int n) { for (long i = 0; i < 250000; i++) n ^= i; return n; }\n"
SLOW = SPIN + "".join(f"constexpr int v{i} = spin({i});\n" for i in range(400))  # keeps g++ busy for a minute


def dynamic_symbols(library: str | None) -> set[str]:
    assert library is not None
    printed = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True)
    return {line.split()[-1] for line in printed.stdout.splitlines()}


def needed_libraries(library: str | None) -> set[str]:
    printed = subprocess.run(["objdump", "-p", str(library)], capture_output=True, text=True, check=True)
    return set(re.findall(r"NEEDED\s+(\S+?)\.so", printed.stdout))


async def test_a_batch_builds_good_sources_beside_broken_ones(
    compiler: Compiler, make_task: MakeTask, exp_source: str
) -> None:
    good, broken, unlinked = await compiler.compile_batch(
        [make_task(exp_source), make_task("void run(int) {"), make_task(EMPTY_RUN.replace("run", "walk"))]
    )
    assert (good.status, broken.status, unlinked.status) == (Status.OK, Status.COMPILE_ERROR, Status.COMPILE_ERROR)
    assert (broken.reason_code, unlinked.reason_code) == (ReasonCode.COMPILER_FAILED, ReasonCode.LINK_FAILED)
    assert "defines no `run`" in unlinked.reason
    assert good.build_s > 0


async def test_a_library_exports_its_entry_points_and_needs_the_standard_libraries_only(
    compiler: Compiler, make_task: MakeTask, exp_source: str
) -> None:
    source = exp_source + "size_t workspace_bytes() { return 64; }\nint own_helper() { return 1; }\n"
    (build,) = await compiler.compile_batch([make_task(source)])
    assert dynamic_symbols(build.library_path) == {"run", "ridgeline_call", "workspace_bytes"}
    assert needed_libraries(build.library_path) <= {
        "libstdc++",
        "libm",
        "libmvec",
        "libgomp",
        "libgcc_s",
        "libc",
        "libpthread",
        "ld-linux-x86-64",
    }


async def test_equal_sources_are_built_once_and_then_taken_from_the_cache(
    compiler: Compiler, make_task: MakeTask, exp_source: str
) -> None:
    first, second = await compiler.compile_batch([make_task(exp_source), make_task(exp_source)])
    (third,) = await compiler.compile_batch([make_task(exp_source)])
    assert first == second
    assert not first.cached
    assert third.cached
    assert third.library_path == first.library_path


async def test_everything_that_decides_the_code_is_in_the_key(
    compiler: Compiler, make_task: MakeTask, make_problem: MakeProblem, exp_source: str
) -> None:
    problem = make_problem()
    other_arch = replace(problem, device=replace(problem.device, arch="another-cpu"))
    out = replace(problem.description.signature.args[1], shape=(16, 64), strides=(64, 1))
    reshaped = replace(problem.description.signature, args=(problem.description.signature.args[0], out))
    other_header = replace(problem, description=replace(problem.description, signature=reshaped))
    builds = await compiler.compile_batch(
        [
            make_task(exp_source),
            make_task(exp_source + "// flags: -funroll-loops\n"),
            make_task(exp_source, other_arch),
            make_task(exp_source, other_header),
            make_task(exp_source, sanitized=True),
        ]
    )
    assert all(build.status is Status.OK for build in builds)
    assert len({build.key for build in builds}) == len(builds)


async def test_a_cache_that_cannot_be_written_says_so(
    sandbox: Sandbox, make_task: MakeTask, make_problem: MakeProblem, exp_source: str, tmp_path: Path
) -> None:
    compiler = Compiler(sandbox, tmp_path / "cache", make_problem().device)
    (tmp_path / "cache" / "tmp").rmdir()
    (tmp_path / "cache" / "tmp").write_text("no folder")
    with pytest.raises(StorageError, match="set RIDGELINE_CACHE_DIR"):
        await compiler.compile_batch([make_task(exp_source)])


async def test_a_log_holds_errors_first_short_and_without_our_paths(
    compiler: Compiler, make_task: MakeTask, tmp_path: Path
) -> None:
    noise = "".join(f"#warning number {i} of many warnings in front of the error\n" for i in range(200))
    (build,) = await compiler.compile_batch([make_task(noise + "void run(const float*, float*, void*) { missing(); }")])
    assert build.log.startswith("kernel.cpp:201:41: error: ")
    assert "missing" in build.reason
    assert len(build.log.encode()) <= 4000
    assert str(tmp_path) not in build.log
    assert "\x1b" not in build.log


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ('{ asm volatile("bogus %eax"); }', "kernel.cpp:1: Error: no such instruction: `bogus %eax'"),
        ("{ std::map<int, int> found; }", "write `#include <map>`"),
    ],
)
async def test_the_assemblers_error_and_a_missing_include_are_told(
    compiler: Compiler, make_task: MakeTask, source: str, reason: str
) -> None:
    (build,) = await compiler.compile_batch([make_task(EMPTY_RUN.replace("{}", source))])
    assert (build.status, build.reason_code) == (Status.COMPILE_ERROR, ReasonCode.COMPILER_FAILED)
    assert reason in build.reason


async def test_a_build_cannot_read_files_outside_its_folder(
    compiler: Compiler, make_task: MakeTask, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("THE-SECRET\n")
    incbin = f'asm(".incbin \\"{secret}\\"");\n' + EMPTY_RUN
    embedded, included = await compiler.compile_batch(
        [make_task(incbin), make_task(f'#include "{secret}"\n' + EMPTY_RUN)]
    )
    assert (embedded.status, included.status) == (Status.COMPILE_ERROR, Status.COMPILE_ERROR)
    assert "THE-SECRET" not in embedded.log + included.log


async def test_a_compiler_bomb_is_stopped_and_its_neighbour_is_built(
    compiler: Compiler, make_task: MakeTask, exp_source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ridgeline.tools.build.interfaces.C_CPU_S", 2)
    bomb, good = await compiler.compile_batch([make_task(SLOW + EMPTY_RUN), make_task(exp_source)])
    assert (bomb.status, bomb.reason_code) == (Status.COMPILE_ERROR, ReasonCode.COMPILER_TIMEOUT)
    assert good.status is Status.OK


async def test_a_library_beyond_the_limit_is_refused_by_its_size(
    compiler: Compiler, make_task: MakeTask, exp_source: str
) -> None:
    table = "__attribute__((used)) static const char table[65 << 20] = {1};\n"
    [build] = await compiler.compile_batch([make_task(table + exp_source)])
    assert (build.status, build.reason_code) == (Status.COMPILE_ERROR, ReasonCode.COMPILER_FAILED)
    assert "it has 65 MiB, the limit is 64 MiB; make the source's tables" in build.reason


@pytest.mark.parametrize("words", ["sandbox: cannot apply Landlock: no", "sandbox: killed: wall limit"])
async def test_a_build_that_imitates_the_sandboxs_words_and_status_is_the_sources_failure(
    compiler: Compiler, make_task: MakeTask, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    class Imitating(CBuild):
        async def recipe(self, *arguments: Any) -> Recipe:
            script = f"echo '{words}' >&2; exit {125 if 'cannot' in words else 124}"
            return replace(await super().recipe(*arguments), command=("/bin/sh", "-c", script))

    monkeypatch.setitem(BUILDS, Interface.C, Imitating())
    (build,) = await compiler.compile_batch([make_task(EMPTY_RUN)])
    assert (build.status, build.reason_code) == (Status.COMPILE_ERROR, ReasonCode.COMPILER_FAILED)


async def test_folders_nested_deeper_than_the_stack_stop_no_batch(
    compiler: Compiler, make_task: MakeTask, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async def nesting(folder: Path, *_: object) -> list[BuildOutcome]:
        nest_folders(folder / "c0" / "deep", 1200)
        return [BuildOutcome(exit_code=1, status=("exit 256 - 0 0",), log=b"", seconds=0.1)]

    monkeypatch.setattr("ridgeline.tools.build.compiler.run_batch", nesting)
    (build,) = await compiler.compile_batch([make_task(EMPTY_RUN)])
    assert (build.status, build.reason_code) == (Status.COMPILE_ERROR, ReasonCode.COMPILER_FAILED)
    assert list((tmp_path / "cache" / "tmp").iterdir()) == []


async def test_a_build_whose_command_is_not_there_is_the_machines_failure(
    compiler: Compiler, make_task: MakeTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Lacking(CBuild):
        async def recipe(self, *arguments: Any) -> Recipe:
            return replace(await super().recipe(*arguments), command=("/no/such/compiler",))

    monkeypatch.setitem(BUILDS, Interface.C, Lacking())
    with pytest.raises(EngineError, match="a build could not be run: sandbox: .*/no/such/compiler"):
        await compiler.compile_batch([make_task(EMPTY_RUN)])


async def test_a_build_whose_sandbox_disappeared_says_what_is_missing_and_how_to_go_on(
    tmp_path: Path, make_task: MakeTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = make_task(EMPTY_RUN)
    compiler = Compiler(Sandbox(Tier.BUBBLEWRAP), tmp_path / "cache", task.problem.device)
    monkeypatch.setattr(
        "shutil.which", lambda program, **options: None if program == "bwrap" else which(program, **options)
    )
    with pytest.raises(SandboxError, match="its program bwrap was here when this began and is gone; .*--resume"):
        await compiler.compile_batch([task])


async def test_a_cancelled_batch_leaves_no_process_and_no_folder(
    compiler: Compiler, make_task: MakeTask, tmp_path: Path
) -> None:
    batch = asyncio.create_task(compiler.compile_batch([make_task(SLOW + EMPTY_RUN)]))
    deadline = time.monotonic() + 60
    while "cc1plus" not in names_below(os.getpid()):
        assert time.monotonic() < deadline and not batch.done()
        await asyncio.sleep(0.02)
    batch.cancel()
    with pytest.raises(asyncio.CancelledError):
        await batch
    deadline = time.monotonic() + 60
    while (left := processes_naming(str(tmp_path))) and time.monotonic() < deadline:
        await asyncio.sleep(0.05)
    assert left == []
    assert list((tmp_path / "cache" / "tmp").iterdir()) == []


def names_below(pid: int) -> set[str]:
    """Return the names of the live processes below one."""
    found: set[str] = set()
    with contextlib.suppress(OSError):  # one that has just ended
        found.add(Path(f"/proc/{pid}/comm").read_text().strip())
        for children in Path(f"/proc/{pid}/task").glob("*/children"):
            found |= {name for child in children.read_text().split() for name in names_below(int(child))}
    return found


@needs_nvcc
async def test_cuda_goes_through_the_same_path(
    tmp_path: Path, sandbox: Sandbox, make_task: MakeTask, make_problem: MakeProblem
) -> None:
    problem = make_problem(kind=DeviceKind.CUDA)
    source = """
__global__ void exp_kernel(const float* x, float* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < X_NUMEL) out[i] = expf(x[i]);
}
void run(const float* x, float* out, void*, cudaStream_t stream) {
  exp_kernel<<<(X_NUMEL + 255) / 256, 256, 0, stream>>>(x, out);
}
"""
    compiler = Compiler(sandbox, tmp_path / "cache", problem.device)
    good, broken = await compiler.compile_batch(
        [make_task("// flags: --use_fast_math\n" + source, problem), make_task(source.replace("expf", "exqf"), problem)]
    )
    assert good.status is Status.OK
    assert "-gencode=arch=compute_90a,code=sm_90a" in good.flags
    assert {"run", "ridgeline_call"} <= dynamic_symbols(good.library_path)
    assert 'identifier "exqf" is undefined' in broken.reason


@pytest.mark.parametrize("is_full", [True, False])
async def test_a_disk_that_fills_while_a_compiler_runs_is_told_as_that(
    tmp_path: Path, sandbox: Sandbox, make_task: MakeTask, monkeypatch: pytest.MonkeyPatch, is_full: bool
) -> None:
    """Else the failure is ninja's, in the words of a shell."""

    async def run_batch(*_: object) -> list[BuildOutcome]:
        if is_full:
            monkeypatch.setattr(cache, "LEAST_FREE_BYTES", 1 << 60)
        raise EngineError("ninja failed (status 1): /bin/sh: echo: I/O error")

    task = make_task(EMPTY_RUN)
    monkeypatch.setattr(compiler_module, "run_batch", run_batch)
    found = Compiler(sandbox, tmp_path / "cache", task.problem.device)
    with pytest.raises(StorageError if is_full else EngineError, match="MiB free" if is_full else "ninja failed"):
        await found.compile_batch([task])


@pytest.mark.slow
async def test_a_torch_extension_builds_with_the_appended_binding(
    tmp_path: Path, sandbox: Sandbox, make_task: MakeTask, make_problem: MakeProblem
) -> None:
    problem = make_problem("torch")
    compiler = Compiler(sandbox, tmp_path / "cache", problem.device)
    source = "#include <torch/extension.h>\ntorch::Tensor forward(torch::Tensor x) { return torch::exp(x); }"
    (build,) = await compiler.compile_batch([make_task(source, problem)])
    assert build.status is Status.OK, build.log
    assert "PyInit_ridgeline_candidate" in dynamic_symbols(build.library_path)
    (other,) = await compiler.compile_batch([make_task(source.replace("x)", "x, double)", 1), problem)])
    assert other.reason.endswith("it has to be `torch::Tensor forward(torch::Tensor x)`")
