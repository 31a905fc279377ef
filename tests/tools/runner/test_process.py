"""The parent's handles on its two children leave nothing behind when one cannot be started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.live_processes import open_files
from tests.tools.conftest import without_tensors

from ridgeline.tools.errors import EngineError
from ridgeline.tools.judge.process import JudgeProcess
from ridgeline.tools.judge.replies import Place
from ridgeline.tools.machine.devices import detect_device, measurement_cores
from ridgeline.tools.machine.process_use import Threads, on_any_core
from ridgeline.tools.records.problem import ArgSpec, Target
from ridgeline.tools.records.vocabulary import Interface, PrecisionClass, ReasonCode, Role
from ridgeline.tools.runner.deadline import Deadline
from ridgeline.tools.runner.failures import RunnerFailure
from ridgeline.tools.runner.fault_address import Spot, locate
from ridgeline.tools.runner.process import RunnerProcess
from ridgeline.tools.runner.resting import await_rest
from ridgeline.tools.runner.start import RunnerPlan
from ridgeline.tools.sandbox.sandbox import Confined, Sandbox

pytestmark = pytest.mark.sandboxed


def children() -> set[str]:
    return set(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())


def test_runner_that_cannot_start_leaves_no_descriptor(sandbox: Sandbox, tmp_path: Path) -> None:
    confined = Confined(command=("/no/such/program",))
    plan = RunnerPlan(confined=confined, library=tmp_path / "kernel.so", workspace_bytes=0, call_timeout_s=1.0)
    before = open_files()
    for _ in range(3):
        with pytest.raises(EngineError):
            RunnerProcess(sandbox, plan, without_tensors())
    assert open_files() <= before


@pytest.mark.parametrize("name", ["measurement_cores", "judge_environment"])
def test_judge_that_cannot_start_leaves_no_descriptor_and_no_process(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(22, "refused")

    monkeypatch.setattr(f"ridgeline.tools.judge.process.{name}", refuse)
    problem = Target(
        name="p", reference_source="", interface=Interface.C, tolerance=PrecisionClass.FP32, device=detect_device("cpu")
    )
    before, born_before = open_files(), children()
    with pytest.raises(OSError, match="refused"):
        JudgeProcess(problem, b"secret", tmp_path)
    assert open_files() <= before
    assert children() <= born_before


def place(name: str, offset: int, numel: int, *, stride: int = 0, dtype: str = "float32") -> Place:
    spec = ArgSpec(name=name, role=Role.INPUT, dtype=dtype, shape=(numel,), strides=(1,))
    return Place(spec=spec, region=0, offset=offset, set_stride=stride)


def test_offset_in_a_tensor_of_eight_bit_floats_is_placed_by_its_size() -> None:
    places = [place("x", 0, 64, stride=4096, dtype="float8_e4m3fn")]
    assert locate(places, 70, n_sets=3).words == "6 bytes past the end of `x`"


def test_offset_is_placed_among_the_tensors_of_its_set() -> None:
    places = [place("x", 0, 100, stride=12288), place("past", 4096, 2048, stride=12288)]
    assert locate(places, 399, n_sets=3) == Spot(words="`x`", is_inside=True)
    assert locate(places, 400, n_sets=3) == Spot(words="right past the end of `x`", is_inside=False)
    assert locate(places, 12288 + 4100, n_sets=3) == Spot(words="`past`", is_inside=True)
    assert locate(places, -8, n_sets=3) == Spot(words="8 bytes before `x`", is_inside=False)


def test_offset_behind_the_last_set_is_past_the_end_of_its_last_tensor() -> None:
    places = [place("x", 0, 1024, stride=8192), place("y", 4096, 1024, stride=8192)]
    assert locate(places, 3 * 8192, n_sets=3).words == "right past the end of `y`"
    assert locate([place("w", 0, 1024)], 4096 + 7, n_sets=3).words == "7 bytes past the end of `w`"


def test_offset_at_an_empty_tensor_names_it_beside_its_neighbour() -> None:
    places = [
        place("x", 0, 1024, stride=8192),
        place("extra", 4096, 0, stride=8192),
    ]
    nearest = "right past the end of `extra` (which is empty)"
    assert locate(places, 4096, n_sets=3).words == f"{nearest} or right past the end of `x`"
    places = [place("x", 0, 512, stride=4096), place("extra", 4096, 0, stride=4096)]
    empty, full = "4 bytes past the end of `extra` (which is empty)", "2,052 bytes past the end of `x`"
    assert locate(places, 3 * 4096 + 4, n_sets=3).words == f"{empty} or {full}"
    assert locate(places, 2 * 4096 + 2048, n_sets=3).words == "right past the end of `x`"
    assert locate([place("none", 0, 0)], 0, n_sets=3).words == "right past the end of `none` (which is empty)"


def test_offset_in_the_next_set_is_past_the_end_of_the_set_that_was_called() -> None:
    places = [place("x", 0, 1024, stride=4096)]
    assert locate(places, 4096, n_sets=3) == Spot(words="`x`", is_inside=True)
    assert locate(places, 4096, n_sets=3, called_set=0).words == "right past the end of `x`"
    assert locate(places, 4095, n_sets=3, called_set=1).words == "1 byte before `x`"


def test_offset_in_a_region_without_tensors_is_nobodys() -> None:
    assert locate([], 12, n_sets=3) == Spot(words="memory that belongs to no tensor", is_inside=False)


def test_thread_in_a_long_system_call_is_not_stopped_yet(tmp_path: Path) -> None:
    """A stopped process whose thread is still in the kernel keeps a core from the side that is timed next."""
    source = tmp_path / "long_call.c"
    source.write_text(
        "#define _GNU_SOURCE\n#include <sys/mman.h>\n#include <pthread.h>\n#include <stdio.h>\n#include <stdlib.h>\n"
        "#include <unistd.h>\n"
        'static void *busy(void *m) { unsigned char *v = malloc(1ul << 24); puts("go"); fflush(stdout);\n'
        "  for (;;) mincore(m, 1ul << 36, v); return 0; }\n"
        "int main() { void *m = mmap(0, 1ul << 36, PROT_READ, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);\n"
        "  pthread_t t; pthread_create(&t, 0, busy, m); pause(); }\n"
    )
    program = tmp_path / "long_call"
    subprocess.run(["gcc", "-O1", "-pthread", str(source), "-o", str(program)], check=True)
    with subprocess.Popen([str(program)], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            threads = Threads(process.pid)
            seen = set()
            deadline = time.monotonic() + 60
            while False not in seen and time.monotonic() < deadline:  # a stop may fall between two system calls
                process.send_signal(signal.SIGCONT)
                time.sleep(0.05)
                process.send_signal(signal.SIGSTOP)
                seen.add(threads.are_at_rest())
                while not threads.are_at_rest() and time.monotonic() < deadline:
                    time.sleep(0.001)
            assert threads.are_at_rest()
            assert False in seen
            threads.close()
        finally:
            process.kill()


def test_judge_may_use_every_core_for_a_while() -> None:
    """OpenMP binds its first thread to one, for which it would wait while a candidate runs there."""
    with subprocess.Popen(["sleep", "600"]) as process:
        try:
            one = {measurement_cores()[0]}
            os.sched_setaffinity(process.pid, one)
            with on_any_core(process.pid):
                assert os.sched_getaffinity(process.pid) == set(measurement_cores())
            assert os.sched_getaffinity(process.pid) == one
        finally:
            process.kill()


def test_process_that_was_let_go_on_is_stopped_once_more() -> None:
    """Who holds a runner in the midst of a block may let it go on when the block is over."""
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as process:
        try:
            threads = Threads(process.pid)
            stopping = SimpleNamespace(stop=lambda: process.send_signal(signal.SIGSTOP), kill=process.kill)
            assert await_rest(threads, stopping, 60.0)  # type: ignore[arg-type]
            assert threads.are_at_rest()
            threads.close()
            assert process.poll() is None
        finally:
            process.kill()


@pytest.mark.parametrize(
    ("limit_s", "code"), [(60.0, ReasonCode.EVALUATION_DEADLINE), (0.01, ReasonCode.BACKGROUND_WORK)]
)
def test_who_does_not_rest_before_its_time_is_over_was_late_and_worked_on_only_where_there_is_more(
    limit_s: float, code: ReasonCode
) -> None:
    killed: list[bool] = []
    runner: Any = SimpleNamespace(
        deadline=Deadline(0.02, "timing"),
        _plan=SimpleNamespace(call_timeout_s=limit_s),
        _threads=SimpleNamespace(are_at_rest=lambda: False),
        _process=SimpleNamespace(stop=lambda: None, kill=lambda: killed.append(True)),
    )
    with pytest.raises(RunnerFailure) as caught:
        RunnerProcess._expect_rest(runner)
    assert caught.value.finding.code is code and killed == [True]
