"""The runners that evaluators started, as a log tells of them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_STARTED = re.compile(r"runner\.pool: process (\d+) starts a runner: candidate (\S+), (\w+), (\w+)\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerStart:
    """One runner: for which candidate, purpose and task, and the evaluator that started it."""

    evaluator_pid: int
    candidate_id: str
    purpose: str
    task: str


def runner_starts(log: Path) -> list[RunnerStart]:
    """Return every runner that a log tells of, in order; none while there is no log."""
    if not log.exists():
        return []
    return [
        RunnerStart(evaluator_pid=int(pid), candidate_id=candidate_id, purpose=purpose, task=task)
        for pid, candidate_id, purpose, task in _STARTED.findall(log.read_text(errors="replace"))
    ]
