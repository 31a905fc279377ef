"""OpenMP's threads have a core each in every tier; tests/attacks show that another process's cores stay its own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.tools.conftest import exp_problem

from ridgeline.tools.records.results import Build
from ridgeline.tools.records.vocabulary import Status
from ridgeline.tools.runner.native_host import fault_watcher
from ridgeline.tools.runner.plan import _bound_by_themselves, runner_plan
from ridgeline.tools.sandbox.sandbox import Confined, Sandbox, Tier, claim_workdir

CORES_OF_EACH_THREAD = r"""
#include <omp.h>
#include <sched.h>
#include <cstdio>
int main() {
  #pragma omp parallel num_threads(2)
  #pragma omp critical
  {
    cpu_set_t cores;
    sched_getaffinity(0, sizeof cores, &cores);
    for (int core = 0; core < CPU_SETSIZE; ++core) if (CPU_ISSET(core, &cores)) std::printf("%d ", core);
    std::printf("\n");
  }
}
"""
TWO_CORES = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core: nothing to choose")


@pytest.fixture
def program(each_tier: Tier, tmp_path: Path) -> Path:
    folder = claim_workdir(tmp_path / "work")
    (folder / "cores.cpp").write_text(CORES_OF_EACH_THREAD)
    command = ("g++", "-O1", "-fopenmp", "cores.cpp", "-o", "cores")
    ended, printed = Sandbox(each_tier).run(Confined(command=command, workdir=folder, allow_processes=True))
    assert ended.is_success, printed
    (folder / "cores").chmod(0o755)
    return folder / "cores"


@pytest.fixture(scope="module")
def watcher(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fault_watcher(tmp_path_factory.mktemp("watcher"))


@TWO_CORES
def test_each_openmp_thread_has_a_core_of_its_own(each_tier: Tier, program: Path, watcher: Path) -> None:
    bound = Confined(
        command=(str(program),),
        readable=(program, watcher),
        env={"OMP_PROC_BIND": "true", "LD_PRELOAD": str(watcher)},
    )
    ended, printed = Sandbox(each_tier).run(bound)
    assert ended.is_success, printed
    first, second = (line.split() for line in printed.splitlines())
    assert (len(first), len(second)) == (1, 1)
    assert first != second


@TWO_CORES
def test_a_thread_that_is_not_bound_may_use_every_core(each_tier: Tier, program: Path, watcher: Path) -> None:
    free = Confined(command=(str(program),), readable=(program, watcher), env={"LD_PRELOAD": str(watcher)})
    ended, printed = Sandbox(each_tier).run(free)
    assert ended.is_success, printed
    assert [set(map(int, line.split())) for line in printed.splitlines()] == [os.sched_getaffinity(0)] * 2


def test_a_python_runner_on_a_cpu_binds_its_threads_so(tmp_path: Path) -> None:
    build = Build(key="k", status=Status.OK, library_path=str(tmp_path / "kernel.so"))
    confined = runner_plan(exp_problem("torch"), build, tmp_path).confined
    assert confined.env["OMP_PROC_BIND"] == "true"
    assert Path(confined.env["LD_PRELOAD"]) in confined.readable


@pytest.mark.parametrize("folder", ["a cache", "a:cache"])
def test_threads_stay_unbound_where_the_library_cannot_be_named(folder: str) -> None:
    """LD_PRELOAD takes such a path apart, and in tier B a bound thread could then not be started."""
    environment = _bound_by_themselves({"OMP_PROC_BIND": "true", "A": "b"}, Path("/") / folder / "watch.so")
    assert environment == {"A": "b"}
