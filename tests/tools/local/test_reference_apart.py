"""On a CPU eager PyTorch is timed in a runner of its own, as a candidate is; in the judge where a runner cannot make it."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ridgeline.tools.errors import JudgeCrashed
from ridgeline.tools.judge.messages import Renew
from ridgeline.tools.local.problem_session import ProblemSession
from ridgeline.tools.machine.devices import detect_device
from ridgeline.tools.measure.sides import Reference
from ridgeline.tools.records.problem import Target
from ridgeline.tools.records.reference_mode import ReferenceMode
from ridgeline.tools.records.vocabulary import Interface, PrecisionClass
from ridgeline.tools.sandbox.sandbox import Sandbox

pytestmark = pytest.mark.sandboxed

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
Opened = Callable[[str], tuple[ProblemSession, Reference]]


@pytest.fixture
def opened(sandbox: Sandbox, tmp_path: Path) -> Iterator[Opened]:
    sessions: list[ProblemSession] = []

    def open_session(source: str) -> tuple[ProblemSession, Reference]:
        target = Target(
            name="p",
            reference_source=source,
            interface=Interface.C,
            tolerance=PrecisionClass.FP32,
            device=detect_device("cpu"),
        )
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


def test_its_end_is_the_engines_fault_and_no_candidates(opened: Opened) -> None:
    _session, reference = opened(REFERENCE.format(first="", argument="1"))
    os.kill(reference.pid, signal.SIGKILL)
    with pytest.raises(JudgeCrashed, match="the reference's own runner"):
        reference.loop((0,))


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
