"""Kernel files judged outside of any search: no archive, no model, no run folder."""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import os
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ridgeline.checkpoints.engine_failures import EngineFailure
from ridgeline.checkpoints.result import evaluation_line
from ridgeline.graph.search.judging.given_kernels import given_kernel
from ridgeline.problems.files import read_text
from ridgeline.tools.engine import BaselineTask, CompileTask, DescribeTask, NextBaselineTask
from ridgeline.tools.engines.steps import Measured, take_further, take_steps
from ridgeline.tools.errors import EngineError, ProblemError
from ridgeline.tools.machine.logs import logger_of
from ridgeline.tools.records.baselines import Baselines
from ridgeline.tools.records.reference_mode import mode_words
from ridgeline.tools.records.results import Build, Evaluation
from ridgeline.tools.records.vocabulary import Origin, Purpose, Status
from ridgeline.tools.wording import counted, option

if TYPE_CHECKING:
    from ridgeline.tools.engine import Engine
    from ridgeline.tools.records.problem import DescribedTarget, Target
    from ridgeline.tools.records.search import Candidate

logger = logger_of(__name__)

TIMING_PYTORCH = "timing PyTorch: "
"""What the steps of `evaluate_files` begin with that may last for minutes, one for each of its configurations."""
STORED_WITHIN_S = 2.0
"""A configuration whose time is stored is answered within these seconds: it is not timed, and no step is told."""

S = TypeVar("S")
T = TypeVar("T")

_GIVEN_NAME = re.compile(r"\b(kernel\.(cpp|cu)|candidate\.py)\b")
_IS_ONE_ERROR = re.compile(r": (?:fatal )?error: ")
"""In a reason that is the compiler's first error; one in words of ours may sum up several."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedFile:
    """One file, its evaluation, and what it was measured against."""

    file: str
    evaluation: Evaluation
    baselines: Baselines | None  # None: it was not found right, so it was not timed

    def to_json(self) -> dict[str, Any]:
        """Return one line of `evaluate --json`."""
        return evaluation_line(self.file, self.evaluation, self.baselines)


_NEAR_SUFFIXES = {"cpp": (".c", ".cc", ".cxx", ".c++"), "cu": (".cuh", ".cuda")}
"""Other ends that names of such files often have."""


def read_sources(files: Sequence[Path], language: str) -> list[tuple[Path, str]]:
    """Return the files' texts; ProblemError for one that is missing, no text, or of another device's language."""
    for file in files:
        if os.path.isdir(file):
            raise ProblemError(f"{file}: is a folder; give a kernel's file")
        if os.path.exists(file) and file.suffix != f".{language}":
            if file.suffix.lower() in _NEAR_SUFFIXES.get(language, ()):
                raise ProblemError(
                    f"{file}: rename it to {file.with_suffix(f'.{language}')}: it is compiled as {language}"
                )
            raise ProblemError(
                f"{file}: this device takes .{language} files here; choose another {option('device')}, or another "
                "`interface` in problem.yaml (`module` takes .py files with ModelNew)"
            )
    return [(file, read_text(file, "kernel")) for file in files]


async def evaluate_files(
    engine: Engine,
    target: Target,
    sources: Sequence[tuple[Path, str]],
    *,
    on_step: Callable[[str], object] | None = None,
) -> AsyncIterator[JudgedFile]:
    """Judge each source as the search would; each evaluation comes when it is done, in the order of `sources`.

    All are compiled first. PyTorch is timed, which takes half a minute or more, only once there is a right kernel to compare
    it with: what is wrong with the kernels before that is told at once. `on_step` gets one line as each step begins.

    An engine that fails on one file leaves that file unjudged (`engine_failed`), and the next one is judged, where the
    problem can still be described: a judge that starts no more fails all of them.

    Raises:
        InputError: the problem cannot be judged, or the machine not be used: a full disk, a device that is gone.
        EngineError: the problem could not be described, or PyTorch not be timed.
    """
    tell = on_step or (lambda _: None)
    tell("describing the reference")
    described = target.described(await engine.submit(DescribeTask(problem=target)))
    ids = _ids([file for file, _ in sources])
    candidates = [
        given_kernel(id_, source, described, origin=Origin.FILE) for id_, (_, source) in zip(ids, sources, strict=True)
    ]
    tell(f"building {counted(len(candidates), 'kernel')}")
    compiles = (CompileTask(problem=described, candidate=candidate) for candidate in candidates)
    built = await asyncio.gather(*(_timed(_further(task, engine.submit)) for task in compiles))
    baselines: Baselines | None = None
    for (file, _), candidate, (build, build_s) in zip(sources, candidates, built, strict=True):
        if isinstance(build, Build) and build.status is Status.OK:
            tell(f"verifying {file}")
        begin = partial(take_steps, engine, described, candidate, purpose=Purpose.EVALUATE, upto="verify")
        taken, verify_s = await _timed(_further(build, begin))
        is_right = isinstance(taken, Measured) and not taken.is_over
        if is_right and baselines is None:
            baselines = await _pytorch_times(engine, described, tell)
        if is_right:
            tell(f"timing {file} in turns with eager PyTorch")
        end, benchmark_s = await _timed(_further(taken, partial(take_further, engine, described, candidate)))
        total_s = build_s + verify_s + benchmark_s
        if isinstance(end, EngineError):
            evaluation = dataclasses.replace(_unjudged(candidate, end), total_s=total_s)
        else:
            evaluation = _told_of_build(file, end.evaluation(total_s=total_s))
        yield JudgedFile(file=str(file), evaluation=evaluation, baselines=baselines if is_right else None)
        if isinstance(end, EngineError) and candidate is not candidates[-1]:
            await engine.submit(DescribeTask(problem=target))  # by the judge that is there, else by another


async def _pytorch_times(engine: Engine, problem: DescribedTarget, tell: Callable[[str], object]) -> Baselines:
    """Return PyTorch's times, and tell each configuration that is timed now as it begins."""
    eager = engine.submit(BaselineTask(problem=problem, eager_only=True))
    baselines = await _told_unless_soon(eager, lambda: tell(f"{TIMING_PYTORCH}eager"))
    while baselines.pending:
        text = f"{TIMING_PYTORCH}{mode_words(baselines.pending[0])}, which may take half a minute or more"
        following = engine.submit(NextBaselineTask(problem=problem, after=baselines))
        baselines = await _told_unless_soon(following, partial(tell, text))
    return baselines


async def _told_unless_soon(work: Awaitable[T], tell: Callable[[], object]) -> T:
    """Return what the work gives; `tell` is called where it is not done soon. A cancelled one has ended when this ends."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait({task}, timeout=STORED_WITHIN_S)
        if not task.done():
            tell()
        return await task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)  # the engine's clean-up, as where it is awaited itself


async def _further(so_far: S | EngineError, step: Callable[[S], Awaitable[T]]) -> T | EngineError:
    """Return the result of a step after another, or the failure of the engine that ended either."""
    if isinstance(so_far, EngineError):
        return so_far
    try:
        return await step(so_far)
    except EngineError as error:
        return error


def _unjudged(candidate: Candidate, error: EngineError) -> Evaluation:
    """Return what is told of a file that the engine failed on: no verdict."""
    logger.error("%s: not judged", candidate.id, exc_info=error)
    return EngineFailure.of(candidate.id, Purpose.EVALUATE, error).as_evaluation()


def _ids(files: Sequence[Path]) -> list[str]:
    """Return an id for each file: its stem, with a number where an earlier file has that; files that follow change none."""
    ids: list[str] = []
    for file in files:
        stem = f"file-{file.stem}"
        numbered = itertools.chain([stem], (f"{stem}-{number}" for number in itertools.count(2)))
        ids.append(next(each for each in numbered if each not in ids))
    return ids


def _told_of_build(file: Path, evaluation: Evaluation) -> Evaluation:
    """Return the evaluation, of a failed build with the user's file name in its reason and the number of further errors."""
    if evaluation.status is not Status.COMPILE_ERROR:
        return evaluation
    reason = _GIVEN_NAME.sub(lambda _: file.name, evaluation.reason)
    more = evaluation.build.errors - 1 if evaluation.build and _IS_ONE_ERROR.search(reason) else 0
    return dataclasses.replace(
        evaluation, reason=f"{reason}; and {counted(more, 'more error')}" if more > 0 else reason
    )


async def _timed(step: Awaitable[T]) -> tuple[T, float]:
    """Return a step's result and the seconds that it took, waiting for its turn included."""
    started = time.monotonic()
    return await step, time.monotonic() - started
