"""Judge kernel files outside of any search: no archive, no model, no run folder."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ridgeline.checkpoints.result import evaluation_line
from ridgeline.problems.files import read_text
from ridgeline.tools.compiler import evaluation_key
from ridgeline.tools.engine import BaselineTask, BenchmarkTask, CompileTask, DescribeTask, VerifyTask
from ridgeline.tools.errors import ProblemError
from ridgeline.tools.records import (
    Baselines,
    Build,
    Candidate,
    Evaluation,
    Interface,
    Origin,
    Purpose,
    Status,
    Timing,
    Verdict,
)

if TYPE_CHECKING:
    from ridgeline.tools.engine import Engine, ProblemOnDevice


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedFile:
    """One file, its evaluation, and what it was measured against."""

    file: str
    evaluation: Evaluation
    baselines: Baselines

    def to_json(self) -> dict[str, Any]:
        """Return one line of `evaluate --json`."""
        return evaluation_line(self.file, self.evaluation, self.baselines)


def read_sources(files: Sequence[Path], language: str) -> list[tuple[Path, str]]:
    """Return the files' texts; ProblemError for one that is missing, no text, or of another device's language."""
    for file in files:
        if file.suffix != f".{language}":
            raise ProblemError(f"{file}: this device takes .{language} files; choose another --device")
    return [(file, read_text(file, "kernel")) for file in files]


async def evaluate_files(
    engine: Engine, target: ProblemOnDevice, sources: Sequence[tuple[Path, str]]
) -> AsyncIterator[JudgedFile]:
    """Judge each source as the search would; each evaluation comes when it is done, in the order of `sources`."""
    description = await engine.submit(DescribeTask(problem=target))
    described = dataclasses.replace(target, description=description)
    baselines = await engine.submit(BaselineTask(problem=described))
    for file, source in sources:
        evaluation = await _judge(engine, described, _candidate(file, source, described))
        yield JudgedFile(file=str(file), evaluation=evaluation, baselines=baselines)


def _candidate(file: Path, source: str, target: ProblemOnDevice) -> Candidate:
    return Candidate(
        id=f"file-{file.stem}",
        origin=Origin.FILE,
        round=0,
        idea_id=None,
        parent_id=None,
        source=source,
        language=target.language,
        interface=Interface(target.interface),
    )


async def _judge(engine: Engine, problem: ProblemOnDevice, candidate: Candidate) -> Evaluation:
    started = time.monotonic()
    purpose = Purpose.EVALUATE
    verdict: Verdict | None = None
    timing: Timing | None = None
    build: Build = await engine.submit(CompileTask(problem=problem, candidate=candidate))
    last: Build | Verdict | Timing = build
    if last.status is Status.OK:
        last = verdict = await engine.submit(
            VerifyTask(problem=problem, candidate=candidate, build=build, purpose=purpose)
        )
    if verdict is not None and last.status is Status.OK:
        last = timing = await engine.submit(
            BenchmarkTask(problem=problem, candidate=candidate, build=build, verdict=verdict, purpose=purpose)
        )
    return Evaluation(
        key=evaluation_key(build.key, problem, purpose),
        candidate_id=candidate.id,
        purpose=purpose,
        status=last.status,
        reason_code=last.reason_code,
        reason=last.reason,
        build=build,
        verdict=verdict,
        timing=timing,
        total_s=time.monotonic() - started,
    )
