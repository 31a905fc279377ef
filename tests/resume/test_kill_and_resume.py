"""A search that is killed at random instants and resumed does every planned thing, and pays for nothing twice.

What was asked of the model is counted at the model's server, what was run is counted where runners start: neither count
comes from Ridgeline's own database.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.runner_starts import runner_starts

HERE = Path(__file__).parent
ROUNDS, IDEAS, IMPLEMENTATIONS = 2, 2, 2
PLANNED = {
    ("certify", "BenchmarkTask"): 3,
    ("certify", "VerifyTask"): 5,
    ("certify", "CompareTask"): 2,
    ("search", "CompareTask"): 2,
}
"""How often one candidate's runner starts without any kill, where that is more than once: re-timings; verification,
sanitizers and three other shapes; comparisons of the fastest with two others."""
TYPE_OF_EXP = {2: "long double", 10: "float"}
"""A search of two lives ends without a certificate, which takes minutes: its kernels are slower than PyTorch."""
MOST_STEPS_A_LIFE, MOST_AFTER_S = 3, 0.3
"""A life ends that long after so many new requests and runners: ten lives together take less than the search has."""
KEPT_SECONDS = 1.0
"""A reply sent this long before a kill must have been stored; one sent later may have been on its way."""

PROBLEM = f"""
name: killed
reference: reference.py
targets: {{cpu: {{}}}}
search:
  rounds: {ROUNDS}
  ideas: {IDEAS}
  implementations: {IMPLEMENTATIONS}
  repairs: 1
  tune_trials: 4
  floor_margin: null
  stall_rounds: null
"""
REFERENCE = """
import torch

ROWS, COLS = 256, 512


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1)


def get_inputs():
    return [torch.randn(ROWS, COLS)]


def get_init_inputs():
    return []
"""


@pytest.fixture
def server(tmp_path: Path, kills: int) -> Iterator[tuple[str, Path]]:
    """Yield the URL of a running model server and its log."""
    log, port_file = tmp_path / "server.jsonl", tmp_path / "port"
    log.touch()
    script = str(HERE / "model_server.py")
    process = subprocess.Popen([sys.executable, script, str(log), str(port_file), "1800", TYPE_OF_EXP[kills]])
    try:
        while not port_file.exists():
            time.sleep(0.02)
        yield f"http://127.0.0.1:{port_file.read_text()}/v1", log
    finally:
        process.kill()
        process.wait()


@pytest.mark.slow  # a shorter one of the whole command is in tests/graph/session/test_killed.py
@pytest.mark.parametrize("kills", [2, pytest.param(10, marks=[pytest.mark.timeout(1800)])])
@pytest.mark.timeout(600)
def test_killed_search_finishes_every_branch_and_repeats_only_what_was_in_flight(
    kills: int, tmp_path: Path, server: tuple[str, Path]
) -> None:
    url, server_log = server
    run = Search(tmp_path, url, server_log)
    rng = random.Random(20261121 + kills)
    lives = [(rng.randint(1, MOST_STEPS_A_LIFE), rng.uniform(0, MOST_AFTER_S)) for _ in range(kills)]
    deaths = [run.live_and_die(steps, after_s) for steps, after_s in lives]
    result = run.finish()

    assert result["state"] in {"finished", "no_gain"}  # a gain is measured: a busy machine may prove none
    assert len(result["history"]) == ROUNDS
    branches = ROUNDS * IDEAS * IMPLEMENTATIONS
    assert branches <= result["candidates"] <= 2 * branches  # each may be repaired once: a busy machine fails a timing
    assert not stored_replies_asked_again(server_log, deaths)
    repeats = repeated_runs(run.log)
    assert sum(repeats.values()) <= len(deaths), f"finished evaluations were run again: {repeats}"


class Search:
    """One search in its own processes, killed and resumed."""

    def __init__(self, folder: Path, url: str, server_log: Path) -> None:
        self.run_dir = folder / "run"
        self.log = self.run_dir / "run.log"
        self._server_log = server_log
        self._output, self._errors = folder / "stdout", folder / "stderr"
        (folder / "reference.py").write_text(REFERENCE)
        self.problem = folder / "problem.yaml"
        self.problem.write_text(PROBLEM)
        self._command = [sys.executable, "-m", "ridgeline.graph.run", str(self.problem), "--run-dir", str(self.run_dir)]
        self._command += ["--model", f"openai:scripted@{url}", "--bank", "none", "--json", "--plain"]
        paths = [str(HERE.parents[1] / "src"), os.environ.get("PYTHONPATH", "")]
        self._environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(p for p in paths if p),
        }

    def live_and_die(self, steps: int, after_s: float) -> float:
        """Run until so many requests and runners were started and a moment longer, kill the search, and return when.

        Steps and not seconds: a search is neither over on a fast machine nor still importing on a busy one.
        """
        begun = self._steps()
        process = self._start()
        while self._steps() < begun + steps and process.poll() is None:
            time.sleep(0.01)
        time.sleep(after_s)
        assert process.poll() is None, f"the search was over before its kill: {self._errors.read_text()}"
        process.send_signal(signal.SIGKILL)
        process.wait()
        return time.time()

    def _steps(self) -> int:
        """Return how many requests have arrived and runners have been started, in all lives."""
        arrived = sum('"arrived"' in line for line in self._server_log.read_text().splitlines())
        return arrived + len(runner_starts(self.log))

    def finish(self) -> dict[str, Any]:
        """Run to the end and return result.json."""
        process = self._start()
        assert process.wait(timeout=900) == 0, self._errors.read_text()
        result: dict[str, Any] = json.loads(self._output.read_text())
        return result

    def _start(self) -> subprocess.Popen[bytes]:
        began = (self.run_dir / "archive.sqlite").exists()
        command = [*self._command, *(["--resume", str(self.run_dir)] if began else [])]
        with self._output.open("w") as output, self._errors.open("w") as errors:
            return subprocess.Popen(command, stdout=output, stderr=errors, env=self._environment)


def stored_replies_asked_again(log: Path, deaths: list[float]) -> list[str]:
    """Return the requests that were asked again although their reply had arrived well before every later kill."""
    events = [json.loads(line) for line in log.read_text().splitlines()]
    answered: dict[str, float] = {}
    again = []
    for event in events:
        request, at = event["request"], event["time"]
        if event["event"] == "arrived" and request in answered:
            killed_after = [death for death in deaths if answered[request] <= death <= at]
            if not killed_after or killed_after[0] - answered[request] > KEPT_SECONDS:
                again.append(request)
        if event["event"] == "answered":
            answered[request] = at
    return again


def repeated_runs(log: Path) -> Counter[tuple[str, str, str]]:
    """Return how often each (candidate, purpose, task) was run beyond what is planned."""
    counts = Counter((start.candidate_id, start.purpose, start.task) for start in runner_starts(log))
    beyond = {key: count - PLANNED.get(key[1:], 1) for key, count in counts.items()}
    return Counter({key: count for key, count in beyond.items() if count > 0})
