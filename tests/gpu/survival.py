"""A search that a script leads through kernels that end badly, and what kills a runner from outside."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from langgraph.runtime import RunControl

from ridgeline import SearchOptions, run_search
from ridgeline.checkpoints.archive import FILE_NAME, Archive
from ridgeline.graph.models.requests import IdeationRequest, KernelRequest, Reply
from ridgeline.problems.spec import ProblemSpec, load_problem
from ridgeline.tools.engine import CompileTask, DescribeTask
from ridgeline.tools.engines.local import LocalEngine
from ridgeline.tools.machine.gpu_state import descendants
from ridgeline.tools.records.problem import DescribedTarget
from ridgeline.tools.records.results import Evaluation
from ridgeline.tools.records.vocabulary import Origin
from tests.candidates import candidate_of
from tests.runner_starts import RunnerStart, runner_starts

PROBLEM = """name: survival
reference: reference.py
call_timeout_s: 3.0
search:
  {rounds: 99, ideas: 1, implementations: 1, repairs: 0, tune_trials: 0, elites: 1, floor_margin: null, stall_rounds: null}
"""
INTO_THE_CALLS_S = 0.7
"""From a runner's start: its candidate is loaded after some 0.3 s on a GPU, and its trials go on for a second more."""


def write_problem(folder: Path, reference: str) -> ProblemSpec:
    """Return a problem of one kernel a round, which only its script ends."""
    (folder / "problem.yaml").write_text(PROBLEM)
    (folder / "reference.py").write_text(reference)
    return load_problem(folder / "problem.yaml")


def candidate_id(place: int) -> str:
    """Return what the search calls the kernel at this place of the script: one a round, from round 1."""
    return f"r{place + 1}i0v0a0"


class ScriptModel:
    """A model that writes the given sources, one after the other, each for an idea of its own."""

    name = "script"

    def __init__(self, sources: Sequence[str]) -> None:
        self._sources = iter(sources)

    async def propose(self, request: IdeationRequest) -> Reply:
        word = f"step{request.round}"
        idea = {"title": f"{word}a {word}b", "mechanism": f"{word}c {word}d {word}e", "category": "memory_access"}
        return Reply(text=json.dumps({"ideas": [idea]}))

    async def write(self, request: KernelRequest) -> Reply:
        return Reply(text=json.dumps({"source": next(self._sources)}))


async def build_all(engine: LocalEngine, problem: DescribedTarget, sources: Sequence[str]) -> None:
    """Build the script's sources side by side: the search, which meets them one by one, finds them built."""
    described = problem.described(await engine.submit(DescribeTask(problem=problem)))
    kernels = [
        candidate_of(source, name=candidate_id(place), language=problem.language, origin=Origin.MODEL, round=place + 1)
        for place, source in enumerate(sources)
    ]
    await asyncio.gather(*(engine.submit(CompileTask(problem=described, candidate=kernel)) for kernel in kernels))


async def search(options: SearchOptions, engine: LocalEngine, sources: Sequence[str]) -> list[Evaluation]:
    """Return the evaluations of a search that writes these sources; it is stopped when the last one is judged.

    Its certificate would come next, and takes longer than all of this.
    """
    stop, last = RunControl(), candidate_id(len(sources) - 1)

    def on_event(event: Any) -> None:
        if event["event"] == "candidate_done" and event["candidate_id"] == last:
            stop.request_drain("the script is at its end")

    result = await run_search(options, engine=engine, models=[ScriptModel(sources)], on_event=on_event, stop=stop)
    assert result.state == "stopped"
    with Archive.open(options.run_dir / FILE_NAME, create=False) as archive:
        return list(_evaluations(archive, len(sources)))


def _evaluations(archive: Archive, count: int) -> Iterator[Evaluation]:
    for place in range(count):
        evaluation = archive.evaluation(candidate_id(place))
        assert evaluation is not None, candidate_id(place)
        yield evaluation


class Killer(threading.Thread):
    """Kills one candidate's runner from outside while it is verified: `victim` is its process id, 0 when none was found.

    The evaluator notes each runner in its log with its own process id; the runner is the one below it that runs the
    native host. It is measured once more afterwards, and then left alone.
    """

    def __init__(self, log: Path, candidate_id: str) -> None:
        super().__init__(daemon=True)
        self.victim = 0
        self._log = log
        self._candidate_id = candidate_id
        self._is_over = threading.Event()

    def run(self) -> None:
        evaluator = self._wait_for(
            lambda: next((start.evaluator_pid for start in starts(self._log, self._candidate_id)), 0)
        )
        runner = self._wait_for(lambda: next(_hosts(evaluator), 0)) if evaluator else 0
        if runner and not self._is_over.wait(INTO_THE_CALLS_S):
            os.kill(runner, signal.SIGKILL)
            self.victim = runner

    def _wait_for(self, find: Callable[[], int]) -> int:
        while not (found := find()):
            if self._is_over.wait(0.01):
                return 0
        return found

    def __enter__(self) -> Killer:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self.join()


def starts(log: Path, candidate_id: str) -> list[RunnerStart]:
    """Return a candidate's runners in the evaluators' log."""
    return [start for start in runner_starts(log) if start.candidate_id == candidate_id]


def _hosts(evaluator: int) -> Iterator[int]:
    """Yield the processes below the evaluator that run the native host; a sandbox only names it in its arguments."""
    for pid in sorted(descendants({evaluator})):
        try:
            program = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if Path(program.decode(errors="replace")).parent.name == "host":
            yield pid
