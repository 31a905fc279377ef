"""On a CPU eager PyTorch is timed in a runner of its own, as a candidate is; in the judge where a runner cannot make it."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.candidates import candidate_of

from ridgeline.tools.build.compiler import Compiler
from ridgeline.tools.engine import BenchmarkTask, CompileTask, DescribeTask
from ridgeline.tools.errors import ContentsRefusedError, TrustedProcessLost
from ridgeline.tools.judge.messages import Renew
from ridgeline.tools.local import evaluator as evaluator_module
from ridgeline.tools.local import problem_session
from ridgeline.tools.local.evaluator import Evaluator
from ridgeline.tools.local.problem_session import ProblemSession
from ridgeline.tools.machine.devices import detect_device
from ridgeline.tools.measure.sides import ReferenceSide
from ridgeline.tools.records.module_contract import ModuleContract
from ridgeline.tools.records.problem import DescribedTarget, Target
from ridgeline.tools.records.reference_mode import ReferenceMode
from ridgeline.tools.records.results import Timing, Verdict
from ridgeline.tools.records.vocabulary import Interface, Label, PrecisionClass, Status
from ridgeline.tools.runner.plan import reference_plan
from ridgeline.tools.runner.start import RunnerPlan
from ridgeline.tools.sandbox.sandbox import Sandbox

pytestmark = [pytest.mark.long, pytest.mark.sandboxed, pytest.mark.usefixtures("warm_judge")]

REFERENCE = """import torch
from torch import nn
{first}
class Model(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(64))
    def forward(self, x):
        return torch.relu(x + self.bias)
def get_inputs():
    return [torch.randn(64, 64)]
def get_init_inputs():
    return [{argument}]
"""
Opened = Callable[[str], tuple[ProblemSession, ReferenceSide]]


RELU = (
    "void run(const float* x, const float* bias, float* out, void*) { for (int i = 0; i < 4096; ++i) out[i] = x[i]; }"
)


def problem_of(source: str) -> Target:
    return Target(
        name="p",
        reference_source=source,
        interface=Interface.C,
        tolerance=PrecisionClass.FP32,
        device=detect_device("cpu"),
    )


def plan_without_packages(problem: DescribedTarget, module: ModuleContract, cache_dir: Path) -> RunnerPlan:
    """Return a plan whose Python finds none of its packages, as where they lie in a folder that the sandbox hides."""
    plan = reference_plan(problem, module, cache_dir)
    python, *words = plan.confined.command
    return replace(plan, confined=replace(plan.confined, command=(python, "-I", "-S", *words)))


@pytest.fixture
def opened(sandbox: Sandbox, tmp_path: Path, hosts: Path) -> Iterator[Opened]:
    sessions: list[ProblemSession] = []
    shutil.copytree(hosts, tmp_path / "host")

    def open_session(source: str) -> tuple[ProblemSession, ReferenceSide]:
        target = problem_of(source)
        sessions.append(ProblemSession(tmp_path, lambda: sandbox))
        sessions[-1].open(target)
        problem = target.described(sessions[-1].judge.problem.description)
        return sessions[-1], sessions[-1].reference(problem, ReferenceMode.EAGER)

    yield open_session
    for session in sessions:
        session.close()


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_the_reference_loops_in_a_process_of_its_own_which_is_stopped_otherwise(opened: Opened) -> None:
    session, reference = opened(REFERENCE.format(first="", argument="1"))
    assert reference.is_apart
    assert reference.pid != session.judge.pid
    session.judge.ask(Renew())
    took = reference.loop(range(session.judge.problem.n_sets // 2))
    assert 0 < took.own_s < took.parent_s
    assert state_of(reference.pid) == "T"
    session.close()
    assert not Path(f"/proc/{reference.pid}").exists()


@pytest.mark.parametrize("argument", ["1", "torch.float32"])
def test_a_loop_without_its_calls_takes_less_wherever_the_reference_loops(opened: Opened, argument: str) -> None:
    session, reference = opened(REFERENCE.format(first="", argument=argument))
    assert reference.is_apart == (argument == "1")
    session.judge.ask(Renew())
    sets = range(session.judge.problem.n_sets // 2)
    empty_s, own_s = (min(loop(sets).own_s for _ in range(5)) for loop in (reference.loop_empty, reference.loop))
    assert 0 < empty_s < own_s / 2


def test_its_end_is_the_engines_fault_and_no_candidates(opened: Opened) -> None:
    _session, reference = opened(REFERENCE.format(first="", argument="1"))
    os.kill(reference.pid, signal.SIGKILL)
    with pytest.raises(TrustedProcessLost, match="the reference's own runner"):
        reference.loop((0,))


@pytest.mark.thorough
@pytest.mark.parametrize(("raised", "loop"), [("AssertionError", "loop"), ("OutOfRange", "loop_empty")])
def test_contents_that_it_refuses_are_told_as_where_it_loops_in_the_judge(
    opened: Opened, raised: str, loop: str
) -> None:
    """Its processes are told by their priority to refuse: by contents it would do so in some runs alone."""
    first = "import os\nclass OutOfRange(ValueError): pass"
    source = REFERENCE.format(first=first, argument="1").replace(
        "        return",
        f"        if os.getpriority(os.PRIO_PROCESS, 0) > 15: raise {raised}('out of range')\n        return",
    )
    session, reference = opened(source)
    assert reference.is_apart
    session.judge.ask(Renew())
    reference.loop((0,))
    for pid in (reference.pid, session.judge.pid):
        os.setpriority(os.PRIO_PROCESS, pid, 19)
    with pytest.raises(ContentsRefusedError, match=rf"refuses contents .* {raised}: out of range"):
        getattr(reference, loop)((0,))


@pytest.mark.parametrize("argument", ["torch.float32", "open(HERE).read()"])
def test_a_reference_that_no_runner_can_make_loops_in_the_judge(opened: Opened, tmp_path: Path, argument: str) -> None:
    here = tmp_path / "size.txt"  # the user's own file, which the sandbox hides
    here.write_text("64")
    first = f"HERE = {str(here)!r}\nopen(HERE).close()" if "HERE" in argument else ""
    session, reference = opened(REFERENCE.format(first=first, argument=argument))
    assert not reference.is_apart
    assert reference.pid == session.judge.pid
    session.judge.ask(Renew())
    assert reference.loop((0, 1)).own_s > 0


def test_a_runner_that_cannot_import_torch_is_warned_of_at_once_and_the_judge_loops(
    opened: Opened, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(problem_session, "reference_plan", plan_without_packages)
    session, reference = opened(REFERENCE.format(first="", argument="1"))
    assert not reference.is_apart
    assert reference.pid == session.judge.pid
    [record] = [each for each in caplog.records if each.name == problem_session.__name__]
    assert "so the judge times it" in record.message
    assert "No module named" in record.message


@pytest.mark.parametrize("has_packages", [True, False])
def test_a_time_against_eager_in_the_judge_is_labelled(
    sandbox: Sandbox, open_path: Path, hosts: Path, monkeypatch: pytest.MonkeyPatch, *, has_packages: bool
) -> None:
    """The label belongs to what runs where: the measurement between is left out, which a busy machine would disturb."""
    shutil.copytree(hosts, open_path / "host")
    places = []

    def time_candidate(_candidate: object, reference: ReferenceSide, *_: object, **__: object) -> Timing:
        places.append(reference.is_apart)
        return Timing(status=Status.OK, median_ms=1.0, labels=(Label.LAUNCH_BOUND,))

    monkeypatch.setattr(evaluator_module, "time_candidate", time_candidate)
    if not has_packages:
        monkeypatch.setattr(problem_session, "reference_plan", plan_without_packages)
    device = detect_device("cpu")
    target = problem_of(REFERENCE.format(first="", argument="1"))
    candidate = candidate_of(RELU, name="relu")
    evaluator = Evaluator(device, cache_dir=open_path, sandbox=sandbox)
    try:
        problem = target.described(evaluator.describe(DescribeTask(problem=target)))
        compiler = Compiler(sandbox, open_path, device)
        [build] = asyncio.run(compiler.compile_batch([CompileTask(problem=problem, candidate=candidate)]))
        assert build.status is Status.OK, build.log
        verdict = Verdict(status=Status.OK, precision_class=PrecisionClass.FP32)
        task = BenchmarkTask(problem=problem, candidate=candidate, build=build, verdict=verdict)
        timing = evaluator.benchmark(task)
    finally:
        evaluator.close()
    own = () if places[-1] else (Label.EAGER_IN_JUDGE,)
    assert timing.labels == (Label.LAUNCH_BOUND, *own)
    assert has_packages or own
