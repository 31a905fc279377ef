"""The evaluator as the engine starts it: one process, JSON lines, everything gone when its input closes."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.environments import child_environment
from tests.graph.memory_engine import DESCRIPTION, MemoryEngine, target

from ridgeline.tools.engine import (
    BaselineTask,
    DescribeTask,
    NextBaselineTask,
)
from ridgeline.tools.local.__main__ import _TASKS, answer
from ridgeline.tools.local.evaluator import Evaluator
from ridgeline.tools.machine.devices import detect_device
from ridgeline.tools.records.problem import Description, Target
from ridgeline.tools.records.vocabulary import Interface, PrecisionClass, Purpose

pytestmark = [pytest.mark.long, pytest.mark.sandboxed]

REFERENCE = """import torch
from torch import nn
class Model(nn.Module):
    def forward(self, x):
        {body}
def get_inputs():
    return [torch.randn(64, 64)]
def get_init_inputs():
    return []
"""


def request(number: int, body: str) -> str:
    problem = Target(
        name="p",
        reference_source=REFERENCE.format(body=body),
        interface=Interface.C,
        tolerance=PrecisionClass.FP32,
        device=detect_device("cpu"),
    )
    return json.dumps({"id": number, "task": "DescribeTask", "body": DescribeTask(problem=problem).to_json()}) + "\n"


def started(cache: Path) -> subprocess.Popen[str]:
    """Return an evaluator of the CPU as the engine starts it, to be closed by `with`."""
    command = [sys.executable, "-P", "-m", "ridgeline.tools.local", "--device"]
    return subprocess.Popen(
        [*command, json.dumps(detect_device("cpu").to_json())],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=child_environment(RIDGELINE_CACHE_DIR=str(cache)),
        text=True,
    )


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache folder: what the first evaluator exported there, the second one reads."""
    return tmp_path_factory.mktemp("cache")


def children_of(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


@pytest.mark.thorough
def test_evaluator_answers_in_order_and_takes_its_judge_with_it(kept: Path) -> None:
    with started(kept) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(request(1, "raise KeyError('gone')") + request(2, "return torch.relu(x)"))
        process.stdin.flush()
        first, second = json.loads(process.stdout.readline()), json.loads(process.stdout.readline())
        assert first["error"]["type"] == "BadReferenceError"
        assert "KeyError" in first["error"]["message"]
        assert second["id"] == 2
        assert second["result"]["compulsory_bytes"] == 2 * 64 * 64 * 4
        judge, keeper = children_of(process.pid)
        process.stdin.close()
        assert process.wait(60) == 0
    assert not any(Path(f"/proc/{pid}").exists() for pid in (judge, keeper))


def test_judge_dies_with_a_killed_evaluator(kept: Path) -> None:
    with started(kept) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(request(1, "return torch.relu(x)"))
        process.stdin.flush()
        process.stdout.readline()
        children = children_of(process.pid)
        process.kill()
        process.wait(60)
        deadline = time.monotonic() + 60
        while any(is_running(pid) for pid in children) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not any(is_running(pid) for pid in children)


def is_running(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


class _Failing(Evaluator):
    """An evaluator on a machine that fails it."""

    def __init__(self, error: Exception) -> None:
        super().__init__(detect_device("cpu"))
        self.error = error

    def describe(self, task: DescribeTask) -> Description:
        raise self.error


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (OSError(28, "No space left on device"), "StorageError", "No space left on device"),
        (OSError(5, "Input/output error"), "EngineError", "Input/output error"),
        (subprocess.TimeoutExpired(["g++"], 120), "EngineError", "TimeoutExpired"),
        (ValueError("40"), "EngineError", "ValueError"),
    ],
)
def test_a_fault_of_ours_is_answered_and_does_not_end_the_evaluator(
    error: Exception, kind: str, words: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("RIDGELINE_CACHE_DIR", str(tmp_path))
    evaluator = _Failing(error)
    monkeypatch.setitem(_TASKS, "DescribeTask", (DescribeTask, _Failing.describe))
    reply = answer(evaluator, json.loads(request(3, "return x")))
    assert (reply["id"], reply["error"]["type"]) == (3, kind)
    assert words in reply["error"]["message"]


def test_pytorch_s_next_way_is_asked_for_by_a_task_of_its_own_which_adds_nothing_where_none_is_pending(
    tmp_path: Path,
) -> None:
    problem = target().described(DESCRIPTION)
    measured = MemoryEngine()._baseline(BaselineTask(problem=problem))
    task = NextBaselineTask(problem=problem, purpose=Purpose.CERTIFY, after=measured)
    assert NextBaselineTask.from_json(json.loads(json.dumps(task.to_json()))) == task
    asked = {"id": 7, "task": task.name, "body": task.to_json()}
    evaluator = Evaluator(problem.device, cache_dir=tmp_path)
    assert answer(evaluator, asked) == {"id": 7, "result": measured.to_json()}


def test_evaluator_without_its_parent_does_not_begin(tmp_path: Path) -> None:
    command = [sys.executable, "-P", "-m", "ridgeline.tools.local", "--device"]
    environment = child_environment(RIDGELINE_CACHE_DIR=str(tmp_path))
    described = json.dumps(detect_device("cpu").to_json())
    # 1 is never the parent here: as if the engine had died and left the evaluator to another process
    gone = subprocess.run(
        [*command, described, "--parent", "1"], env=environment, input="", capture_output=True, check=False
    )
    assert gone.returncode == 1
    ours = [*command, described, "--parent", str(os.getpid())]
    assert subprocess.run(ours, env=environment, input="", capture_output=True, check=False).returncode == 0


def test_evaluators_log_goes_to_stderr_as_run_log_has_it(tmp_path: Path) -> None:
    code = (
        "import logging, sys; from ridgeline.tools.local import __main__ as evaluator; "
        "sys.argv[1:] = ['--device', sys.argv[1]]; "
        "evaluator.serve = lambda *_: logging.getLogger('ridgeline.tools.measure.baselines').info('baseline eager: 1 ms'); "
        "evaluator.main()"
    )
    environment = child_environment(RIDGELINE_CACHE_DIR=str(tmp_path))
    command = [sys.executable, "-c", code, json.dumps(detect_device("cpu").to_json())]
    done = subprocess.run(command, env=environment, input="", capture_output=True, text=True, check=True)
    assert re.fullmatch(
        r"[-\d]+ [:,\d]+ INFO ridgeline\.tools\.measure\.baselines: baseline eager: 1 ms\n", done.stderr
    )


"""A kernel that survives its verification, which calls it some hundred times."""
