"""Several searches as one: in order, each once, resumable wherever it was cut."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.graph.conftest import write_problem
from tests.graph.programs import ended, started
from tests.warm_python import WarmProgram

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.runs.suite import Row, read_suite
from ridgeline.graph.session.outputs import SearchResult
from ridgeline.graph.session.suite import Ended, new_suite, run_suite
from ridgeline.tools.errors import DeviceError, EngineError, ModelError, ProblemError, RunError, UncoveredError

pytestmark = pytest.mark.long


@pytest.fixture
def problems(tmp_path: Path) -> Path:
    """Give a folder of three problems, named as their numbers go, not as their letters do."""
    for name in ("kb1_9_a", "kb1_10_b", "kb1_11_c"):
        search = {"rounds": 2, "ideas": 2, "implementations": 1, "tune_trials": 0, "stall_rounds": None}
        write_problem(tmp_path / "problems" / "level1" / name, name=name, search=search | {"floor_margin": None})
    return tmp_path / "problems"


@dataclass
class Searches:
    """Stands for `run_search`: what it is asked, and answers by problem."""

    answers: dict[str, Any] = field(default_factory=dict)
    asked: list[tuple[str, bool]] = field(default_factory=list)

    def __call__(self, row: Row, run_dir: Path, is_begun: bool) -> Ended:
        self.asked.append((row.name, is_begun))
        answer = self.answers.get(row.name, 2.0)
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, Ended):
            return answer
        return Ended(result=result(answer))


def result(speedup: float, state: str = "finished") -> SearchResult:
    best = {"speedup": speedup, "speedup_vs_best": speedup / 2, "precision_class": "fp32"}
    return SearchResult(
        run_dir=Path(), state=state, rounds=1, best_id="k", best_source="", best_source_path=None, speedup=speedup,
        certified=True, report={"best": best},
    )  # fmt: skip


def ignore(index: int, row: Row) -> None:
    """Nobody looks."""


def test_a_folder_of_problems_is_searched_by_its_numbers(problems: Path, tmp_path: Path) -> None:
    suite = new_suite(tmp_path / "suite", [str(problems), "softmax"], {"rounds": 1})
    assert [row.run for row in suite.rows] == ["01-kb1_9_a", "02-kb1_10_b", "03-kb1_11_c", "04-softmax"]
    assert all(Path(row.problem).is_absolute() for row in suite.rows)
    assert not (tmp_path / "suite").exists()
    with pytest.raises(ProblemError, match=r"no problem.yaml in it or below"):
        new_suite(tmp_path / "suite", [str(tmp_path / "problems" / "level1" / "kb1_9_a" / "seeds")], {})


def test_a_refused_and_a_failed_problem_are_rows_and_the_suite_goes_on(problems: Path, tmp_path: Path) -> None:
    folder = tmp_path / "suite"
    searches = Searches({"kb1_9_a": ProblemError("it is nondeterministic"), "kb1_10_b": EngineError("the judge died")})
    ended = run_suite(folder, new_suite(folder, [str(problems)], {}), searches, ignore)
    assert [(row.state, row.reason) for row in ended.rows] == [
        ("refused", "it is nondeterministic"), ("failed", "the judge died"), ("finished", ""),
    ]  # fmt: skip
    assert ended.state == "finished"
    assert read_suite(folder) == ended
    with pytest.raises(RunError, match="holds a suite already"):
        new_suite(folder, [str(problems)], {})


def test_a_problem_that_the_offline_model_does_not_cover_is_a_row_and_a_missing_key_is_not(
    problems: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "suite"
    uncovered = Searches({"kb1_9_a": UncoveredError("not covered: cumsum"), "kb1_11_c": ModelError("no key")})
    with pytest.raises(ModelError, match="no key"):
        run_suite(folder, new_suite(folder, [str(problems)], {}), uncovered, ignore)
    rows = [(row.state, row.reason) for row in read_suite(folder).rows]
    assert rows == [("refused", "not covered: cumsum"), ("finished", ""), ("stopped", "")]


def test_a_resumed_suite_repeats_no_search_that_ended_and_tries_a_refused_one_again(
    problems: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "suite"
    stops = Ended(result=result(1.1, "stopped"), is_last=True)
    first = Searches({"kb1_9_a": DeviceError("the GPU has no 36 GB free"), "kb1_11_c": stops})
    ended = run_suite(folder, new_suite(folder, [str(problems)], {}), first, ignore)
    assert [row.state for row in ended.rows] == ["refused", "finished", "stopped"]
    assert ended.state == "stopped"
    second = Searches()
    ended = run_suite(folder, None, second, ignore)
    assert [name for name, _ in second.asked] == ["kb1_9_a", "kb1_11_c"]
    assert ended.state == "finished"
    assert [row.speedup for row in ended.rows] == [2.0, 2.0, 2.0]


def test_a_parked_search_is_a_row_that_waits_and_a_resumed_suite_goes_on_with_it(
    problems: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "suite"
    parks = Searches({"kb1_9_a": Ended(result=result(1.1, "waiting"))})
    ended = run_suite(folder, new_suite(folder, [str(problems)], {"park": True}), parks, ignore)
    assert [row.state for row in ended.rows] == ["waiting", "finished", "finished"]
    assert (ended.state, read_suite(folder)) == ("stopped", ended)
    again = Searches()
    assert run_suite(folder, None, again, ignore).state == "finished"
    assert [name for name, _ in again.asked] == ["kb1_9_a"]


def test_what_concerns_every_search_ends_the_suite_and_leaves_it_resumable(problems: Path, tmp_path: Path) -> None:
    folder = tmp_path / "suite"
    refuses = Searches({"kb1_10_b": ModelError("the key was refused")})
    with pytest.raises(ModelError):
        run_suite(folder, new_suite(folder, [str(problems)], {}), refuses, ignore)
    assert [row.state for row in read_suite(folder).rows] == ["finished", "stopped", "planned"]
    assert read_suite(folder).state == "stopped"
    with pytest.raises(KeyboardInterrupt):
        run_suite(folder, None, Searches({"kb1_11_c": KeyboardInterrupt()}), ignore_or_raise)
    assert [row.state for row in read_suite(folder).rows] == ["finished", "finished", "stopped"]


def ignore_or_raise(index: int, row: Row) -> None:
    if (row.name, row.state) == ("kb1_11_c", "running"):
        raise KeyboardInterrupt


MEASUREMENTS_BEFORE_A_SIGNAL = 4
CHILD = """
import asyncio, contextlib, os, sys
from pathlib import Path
import ridgeline.graph.session.machine as machine
import ridgeline.graph.session.beginning as beginning
from ridgeline.graph.cli import main
from ridgeline.tools.errors import BadReferenceError
from tests.graph.memory_engine import MemoryEngine
from tests.graph.scripted_model import ScriptedModel


class Engine(MemoryEngine):
    async def submit(self, task):
        if task.problem.name == "kb1_10_b":
            raise BadReferenceError("reference.py: forward() is nondeterministic")
        while self.is_held():
            await asyncio.sleep(0.01)
        return await super().submit(task)

    def is_held(self):
        measured = self.log.read_text().count("\\n") if self.log.exists() else 0
        return Path(f"hold-{self.log}").exists() and measured >= int(os.environ["HELD_AFTER"])


@contextlib.asynccontextmanager
async def opened(*_, log, **__):
    yield Engine(delay_s=0.02, log=Path("measured-" + log.parent.name))


machine.open_engine = opened
beginning.make_models = lambda *_, **__: [ScriptedModel()]
sys.exit(main())
"""


def suite(folder: Path, *words: str, stderr: int = subprocess.STDOUT) -> WarmProgram:
    """Start `ridgeline suite` with these words in a process of its own."""
    held_after = str(MEASUREMENTS_BEFORE_A_SIGNAL)
    return started(CHILD, "suite", *words, cwd=folder, stdout=subprocess.PIPE, stderr=stderr, HELD_AFTER=held_after)


@pytest.mark.thorough
def test_a_suite_killed_and_interrupted_ends_as_one_that_was_not(problems: Path, tmp_path: Path) -> None:
    words = [str(problems), "--plain", "--bank", "none", "--out", "runs/suite", "--rounds", "3"]
    for number, name in enumerate(["01-kb1_9_a", "03-kb1_11_c"]):
        measured, held = tmp_path / f"measured-{name}", tmp_path / f"hold-measured-{name}"
        held.touch()  # until the signal is sent nothing further is measured: the search cannot be over first
        with suite(tmp_path, *words) as process:
            until = time.monotonic() + 60
            while (not measured.exists() or measured.read_text().count("\n") < MEASUREMENTS_BEFORE_A_SIGNAL) and (
                process.poll() is None and time.monotonic() < until
            ):
                time.sleep(0.01)
            process.send_signal(signal.SIGINT if number else signal.SIGKILL)
            held.unlink()
            said, _ = process.communicate(timeout=60)
        assert process.returncode == (130 if number else -signal.SIGKILL), said
        words = ["--plain", "--resume"]
    assert f"ridgeline suite --resume {tmp_path}/runs/suite" in said
    states = [row.state for row in read_suite(tmp_path / "runs" / "suite").rows]
    assert states == ["finished", "refused", "stopped"]

    with suite(tmp_path, *words, "--json", "--rounds", "1", stderr=subprocess.PIPE) as process:
        said, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert "warning: ignored, a suite keeps what it began with: --rounds" in errors
    content = json.loads(said)
    assert [row["state"] for row in content["problems"]] == ["finished", "refused", "finished"]
    assert content["scores"]["correct"] == content["scores"]["certified"] == 2
    assert content["scores"]["over_eager"]["fast_p"]["1"] == 2 / 3
    reference = problems / "level1" / "kb1_10_b" / "reference.py"
    assert f"kb1_10_b: refused: {reference}: forward() is nondeterministic" in errors
    for name in ("01-kb1_9_a", "03-kb1_11_c"):
        with Archive.open_read_only(tmp_path / "runs" / "suite" / name) as archive:
            assert len(archive.rounds()) == 3, "the suite's own --rounds, also after a resume"
        lines = [json.loads(line) for line in (tmp_path / f"measured-{name}").read_text().splitlines()]
        timed = Counter(e["candidate"] for e in lines if (e["task"], e["purpose"]) == ("BenchmarkTask", "search"))
        assert sum(n - 1 for n in timed.values()) <= 2, "only what was in flight at a kill is timed again"


OFFLINE_CHILD = """
import contextlib, dataclasses, sys
import ridgeline.graph.session.machine as machine
import ridgeline.graph.session.beginning as beginning
from ridgeline.graph.cli import main
from ridgeline.graph.models.requests import COMPOSER
from ridgeline.graph.models.search_model import AskedAtOnce
from tests.graph.memory_engine import DESCRIPTION, MemoryEngine
from tests.graph.scripted_model import ScriptedModel

X = {"shape": [4, 8], "strides": [8, 1], "dtype": "float32", "kwargs": {}}
SOFTMAX = {
    "schema_version": 1,
    "nodes": [
        X | {"name": "x", "op": "placeholder", "args": []},
        X | {"name": "y", "op": "aten._softmax.default", "args": [{"node": "x"}, -1, False]},
    ],
    "inputs": ["x"], "parameters": {}, "outputs": ["y"], "mutations": {},
}


class Engine(MemoryEngine):
    def _describe(self, task):
        graph = None if task.problem.name == "kb1_10_b" else SOFTMAX
        return dataclasses.replace(DESCRIPTION, reference_graph=graph)


@contextlib.asynccontextmanager
async def opened(*_, **__):
    yield Engine()


machine.open_engine = opened
beginning.make_models = lambda *_, **__: [AskedAtOnce(ScriptedModel("offline"), COMPOSER)]
sys.exit(main())
"""


def test_offline_suite_goes_on_after_a_problem_it_does_not_cover_and_tries_that_one_again(
    problems: Path, tmp_path: Path
) -> None:
    for seed in problems.glob("level1/*/seeds/*"):
        seed.unlink()
    for path in problems.glob("level1/*/problem.yaml"):
        path.write_text(path.read_text().replace("seeds:\n- seeds/*.cpp\n", ""))
    begin, resume = (str(problems), "--bank", "none", "--out", "runs/suite"), ("--resume", "runs/suite")
    contents = []
    for words in (begin, resume):
        returncode, output, errors = ended(OFFLINE_CHILD, "suite", "--plain", "--json", *words, cwd=tmp_path)
        assert returncode == 0, errors
        contents.append(json.loads(output))
        assert [row["state"] for row in contents[-1]["problems"]] == ["finished", "refused", "finished"], errors
        assert "kb1_10_b: the offline model, which needs no key, composes" in contents[-1]["problems"][1]["reason"]
        assert contents[-1]["state"] == "finished"
        assert not (tmp_path / "runs" / "suite" / "02-kb1_10_b").exists(), "a refusal leaves nothing to resume"
    assert contents[0]["scores"] == contents[1]["scores"]
