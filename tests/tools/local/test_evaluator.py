"""The evaluator as the engine starts it: one process, JSON lines, everything gone when its input closes."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ridgeline.tools.engine import DescribeTask
from ridgeline.tools.local.__main__ import _TASKS, answer
from ridgeline.tools.local.evaluator import Evaluator
from ridgeline.tools.machine.devices import detect_device
from ridgeline.tools.records.problem import Description, Target
from ridgeline.tools.records.vocabulary import Interface, PrecisionClass

pytestmark = pytest.mark.sandboxed

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
ROOT = Path(__file__).parents[3]


def request(number: int, body: str) -> str:
    problem = Target(
        name="p",
        reference_source=REFERENCE.format(body=body),
        interface=Interface.C,
        tolerance=PrecisionClass.FP32,
        device=detect_device("cpu"),
    )
    return json.dumps({"id": number, "task": "DescribeTask", "body": DescribeTask(problem=problem).to_json()}) + "\n"


def children_of(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def test_evaluator_answers_in_order_and_takes_its_judge_with_it(tmp_path: Path) -> None:
    command = [sys.executable, "-P", "-m", "ridgeline.tools.local", "--device"]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "RIDGELINE_CACHE_DIR": str(tmp_path)}
    with subprocess.Popen(
        [*command, json.dumps(detect_device("cpu").to_json())],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(request(1, "raise KeyError('gone')") + request(2, "return torch.relu(x)"))
        process.stdin.flush()
        first, second = json.loads(process.stdout.readline()), json.loads(process.stdout.readline())
        assert first["error"]["type"] == "ProblemError"
        assert "KeyError" in first["error"]["message"]
        assert second["id"] == 2
        assert second["result"]["compulsory_bytes"] == 2 * 64 * 64 * 4
        judges = children_of(process.pid)
        assert len(judges) == 1
        process.stdin.close()
        assert process.wait(20) == 0
    assert not Path(f"/proc/{judges[0]}").exists()


def test_judge_dies_with_a_killed_evaluator(tmp_path: Path) -> None:
    command = [sys.executable, "-P", "-m", "ridgeline.tools.local", "--device"]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "RIDGELINE_CACHE_DIR": str(tmp_path)}
    with subprocess.Popen(
        [*command, json.dumps(detect_device("cpu").to_json())],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(request(1, "return torch.relu(x)"))
        process.stdin.flush()
        process.stdout.readline()
        judges = children_of(process.pid)
        process.kill()
        process.wait(10)
        deadline = time.monotonic() + 10
        while any(is_running(pid) for pid in judges) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not any(is_running(pid) for pid in judges)


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


def test_evaluator_without_its_parent_does_not_begin(tmp_path: Path) -> None:
    command = [sys.executable, "-P", "-m", "ridgeline.tools.local", "--device"]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "RIDGELINE_CACHE_DIR": str(tmp_path)}
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
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "RIDGELINE_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", code, json.dumps(detect_device("cpu").to_json())]
    done = subprocess.run(command, env=environment, input="", capture_output=True, text=True, check=True)
    assert re.fullmatch(
        r"[-\d]+ [:,\d]+ INFO ridgeline\.tools\.measure\.baselines: baseline eager: 1 ms\n", done.stderr
    )
