"""A CUDA runner without bubblewrap: it computes, it ends badly without harm, and reaches its own GPU's nodes alone."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ridgeline.tools.machine.gpus import device_nodes
from ridgeline.tools.profile.gpu_counters import count_kernels
from ridgeline.tools.profile.sanitizer import TOOLS, examine
from ridgeline.tools.profile.under_tool import find_tool
from ridgeline.tools.records.problem import Device
from ridgeline.tools.records.vocabulary import Label
from ridgeline.tools.sandbox.sandbox import Confined, Tier, reason_against

from .affine import REFERENCE, with_defect
from .bench import Bench, opened, report
from .conftest import SIGNATURE, Built
from .test_judge_on_gpu import DEFECTS, R, S

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]

OPENS = r"""
#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <unistd.h>
int main(int count, char** paths) {
  for (int i = 1; i < count; ++i) {
    const int fd = open(paths[i], O_RDONLY | O_NONBLOCK);
    std::printf("%d\n", fd < 0 ? errno : 0);
    if (fd >= 0) close(fd);
  }
}
"""


@pytest.fixture(scope="module")
def tier_b(gpu: Device, bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    reason = reason_against(Tier.LANDLOCK)
    if reason:
        pytest.skip(f"tier B: {reason}")
    bench.rest()
    made = Bench(gpu, opened(tmp_path_factory.mktemp("tier-b")), Tier.LANDLOCK)
    yield made
    made.evaluator.close()


@pytest.fixture
def watched(tier_b: Bench, gpu: Device, built: Callable[..., Built]) -> Callable[..., Built]:
    if reason := tier_b.sandbox.reason_against_own_network():
        pytest.skip(reason)
    if find_tool("compute-sanitizer") is None:
        pytest.skip("needs compute-sanitizer")
    return lambda name: built(name, gpu)


@pytest.fixture(scope="module")
def problem(tier_b):
    return tier_b.problem(REFERENCE)


@pytest.fixture(scope="module")
def judged(tier_b, problem):
    return tier_b.build(problem, {name: with_defect(name) for name in ("HONEST", "ILLEGAL")})


def test_an_honest_kernel_is_verified_and_timed(tier_b, problem, judged) -> None:
    outcome = tier_b.judge(problem, *judged["HONEST"])
    assert outcome.last.status is S.OK, outcome.said()
    assert outcome.verdict is not None and outcome.timing is not None
    assert outcome.verdict.sandbox_tier == "B"
    assert Label.NO_SANDBOX not in outcome.verdict.labels
    report("tier_b_honest", median_ms=outcome.timing.median_ms, reference_ms=outcome.timing.reference_ms)


def test_an_illegal_address_is_told_and_leaves_the_next_kernel_unharmed(tier_b, problem, judged) -> None:
    outcome = tier_b.judge(problem, *judged["ILLEGAL"])
    assert (outcome.last.status, outcome.last.reason_code) == DEFECTS["ILLEGAL"][:2] == (S.RUNTIME_ERROR, R.CUDA_ERROR)
    after = tier_b.judge(problem, *judged["HONEST"], timed=False)
    assert after.last.status is S.OK, after.said()


def test_memcheck_finds_a_planted_write_out_of_bounds(
    tier_b, gpu: Device, runner: Confined, watched: Callable[..., Built]
) -> None:
    library = watched("out_of_bounds").library
    found = examine(runner, signature=SIGNATURE, library=library, sandbox=tier_b.sandbox, tools=("memcheck",))
    report("tier_b_memcheck", reason=found.reason, skipped=found.skipped)
    assert found.reason.startswith("memcheck: Invalid __global__ write of size 4 bytes"), found


def test_an_honest_kernel_passes_every_tool(tier_b, runner: Confined, watched: Callable[..., Built]) -> None:
    found = examine(runner, signature=SIGNATURE, library=watched("honest").library, sandbox=tier_b.sandbox)
    report("tier_b_sanitizers", clean_tools=found.clean_tools, skipped=found.skipped)
    assert found.clean_tools == TOOLS, found


def test_the_counters_come_back(tier_b, runner: Confined, watched: Callable[..., Built]) -> None:
    if find_tool("ncu") is None:
        pytest.skip("needs Nsight Compute (ncu)")
    library = watched("honest").library
    launches, reason = count_kernels(runner, signature=SIGNATURE, library=library, sandbox=tier_b.sandbox)
    report("tier_b_counters", launches=[launch.name for launch in launches], reason=reason)
    assert launches and launches[0].dram_bytes > 0, reason


def test_a_runner_opens_its_gpus_nodes_and_neither_others_nor_the_home_folder(
    tier_b, gpu: Device, runner: Confined, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = opened(tmp_path_factory.mktemp("opens"))
    (folder / "opens.cpp").write_text(OPENS)
    subprocess.run(["g++", "-O1", "opens.cpp", "-o", "opens"], cwd=folder, check=True)
    given = device_nodes(gpu)
    with tempfile.TemporaryDirectory(prefix="ridgeline-open-") as home:
        Path(home).chmod(0o755)
        key = Path(home, "id_rsa")
        key.write_text("swordfish\n")
        key.chmod(0o644)  # open to everyone: only the sandbox protects it
        closed = [*others(given), str(Path.home()), home, str(key)]
        program = folder / "opens"
        confined = replace(
            runner, command=(str(program), *given, *closed), readable=(*runner.readable, program)
        )  # fmt: skip
        ended, printed = tier_b.sandbox.run(confined)
    assert ended.is_success, (ended, printed)
    found = dict(zip((*given, *closed), map(int, printed.split()), strict=True))
    report("tier_b_opens", found={path: errno.errorcode.get(code, code) for path, code in found.items()})
    assert {path: found[path] for path in given} == dict.fromkeys(given, 0)
    assert {path: found[path] for path in closed} == dict.fromkeys(closed, errno.EACCES)


def others(given: tuple[str, ...]) -> list[str]:
    """Return the machine's other GPUs' nodes, and two that every machine has."""
    nodes = [*Path("/dev").glob("nvidia*"), *Path("/dev/dri").glob("*"), Path("/dev/ptmx"), Path("/dev/tty")]
    devices = [str(node) for node in nodes if node.exists() and stat.S_ISCHR(os.stat(node).st_mode)]
    return [node for node in devices if node not in given]
