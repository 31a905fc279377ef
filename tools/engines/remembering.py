"""An engine with a memory: a task whose result is stored is not measured again.

Remembered under the key of its task: a verdict, a timing, a profile, a comparison. Remembered once a search: the
description of its reference, PyTorch's times, and those times as its certificate measured them. A build is
always asked of the engine, since the compiler's cache alone knows whether the toolchain changed, and is stored for its
log. Not remembered: the description of another reference, such as the search's at other shapes.

A task whose like is under way waits for its result: two branches that wrote one source share one measurement.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass
from typing import Any, TypeVar, cast
from weakref import WeakValueDictionary

from ridgeline.tools.engine import (
    CandidateTask,
    CompareTask,
    CompileTask,
    DescribeTask,
    Engine,
    MeasurementStore,
    PyTorchTask,
    Task,
)
from ridgeline.tools.machine.threads import run_whole
from ridgeline.tools.records.baselines import Baselines
from ridgeline.tools.records.codec import Record
from ridgeline.tools.records.keys import comparison_key, evaluation_key, step_key
from ridgeline.tools.records.problem import Description, Target
from ridgeline.tools.records.reference_mode import ReferenceMode
from ridgeline.tools.records.results import Build, Comparison, Profile, Timing, Verdict
from ridgeline.tools.records.vocabulary import Purpose

R = TypeVar("R")
FoundT = TypeVar("FoundT", Verdict, Timing, Profile)

_TABLES: dict[type[Record], str] = {
    Verdict: "verdicts",
    Timing: "timings",
    Profile: "profiles",
    Comparison: "comparisons",
}


class RememberingEngine:
    """Implements `Engine` by another engine and a store; each result is stored durably before it is returned."""

    def __init__(self, engine: Engine, store: MeasurementStore, *, target: Target | None = None) -> None:
        """`target` is the problem whose description and times the store holds; without it they are not remembered."""
        self._engine = engine
        self._target = target
        self._modes: defaultdict[Purpose, set[ReferenceMode]] = defaultdict(set)  # measured in this session
        self._under_way: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()  # by table and key
        self.store = store

    async def submit(self, task: Task[R]) -> R:
        """Return the stored result of `task`, else have it measured and store it.

        Raises:
            EngineError, InputError: as the engine does; nothing is stored then.
        """
        if isinstance(task, CompileTask):
            return cast("R", await self._build(task))
        if self._target is not None and task.problem.judge_key == self._target.judge_key:
            if isinstance(task, DescribeTask):
                return cast("R", await self._describe(task))
            if isinstance(task, PyTorchTask):
                return cast("R", await self._baselines(task))
        place = _place(task)
        if place is None:
            return await self._engine.submit(task)
        async with self._under_way.setdefault((place.table, place.key), asyncio.Lock()):
            return await self._measure(task, place)

    async def find(self, kind: type[FoundT], key: str) -> FoundT | None:
        """Return the stored verdict, timing or profile of this key, or None.

        A comparison is had by its task alone, which tells one that failed from one that did not.
        """
        stored = await run_whole(self.store.find, _TABLES[kind], key)
        return None if stored is None else kind.from_json(dict(stored))

    async def reopen_baselines(self, *, purpose: Purpose = Purpose.SEARCH) -> None:
        """Let those of PyTorch's times that were killed in an earlier session be measured once more."""
        known = await run_whole(self.store.baselines, purpose=purpose)
        if known is not None and (reopened := known.reopened(self._modes[purpose])) != known:
            await run_whole(self.store.save_baselines, reopened, purpose=purpose)

    async def aclose(self) -> None:
        """Close the engine that measures."""
        await self._engine.aclose()

    async def _measure(self, task: Task[R], place: _Place) -> R:
        stored = await run_whole(self.store.find, place.table, place.key)
        if stored is not None:
            return task.read_result(dict(stored))
        result = await self._engine.submit(task)
        await run_whole(self.store.save, place.table, place.key, place.candidate_id, cast("Record", result))
        return result

    async def _describe(self, task: DescribeTask) -> Description:
        known = await run_whole(self.store.description)
        if known is not None:
            return known
        described = await self._engine.submit(task)
        await run_whole(self.store.save_description, described)
        return described

    async def _baselines(self, task: PyTorchTask) -> Baselines:
        """Return the stored times that hold what `task` asks for; a certificate's are kept apart from the search's."""
        known = await run_whole(self.store.baselines, purpose=task.purpose)
        if known is not None and task.is_answered_by(known):
            return known
        measured = await self._engine.submit(task)
        new = {entry.name for entry in measured.entries if entry not in task.measured_before}
        self._modes[task.purpose] |= new
        await run_whole(self.store.save_baselines, measured, purpose=task.purpose)
        return measured

    async def _build(self, task: CompileTask) -> Build:
        build = await self._engine.submit(task)
        if task.profiled:
            return build  # the profile alone needs it, and is stored
        await run_whole(self._save_build, task.candidate.id, build)
        return build

    def _save_build(self, candidate_id: str, build: Build) -> None:
        """Store a build; one from the cache does not replace the record of how long it took."""
        if not build.cached or self.store.find("builds", build.key) is None:
            self.store.save("builds", build.key, candidate_id, build)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Location of a task's result in the archive. A comparison is stored under its first candidate."""

    table: str
    key: str
    candidate_id: str


def _place(task: Task[Any]) -> _Place | None:
    if isinstance(task, CompareTask):
        builds = (task.first_build, task.second_build)
        under = (evaluation_key(build.key, task.problem, task.purpose) for build in builds)
        key = comparison_key(task.first.id, task.second.id, *under, purpose=task.purpose)
        return _Place(table=_TABLES[task.result], key=key, candidate_id=task.first.id)
    if isinstance(task, CandidateTask):
        key = step_key(evaluation_key(task.build.key, task.problem, task.purpose), task.step)
        return _Place(table=_TABLES[task.result], key=key, candidate_id=task.candidate.id)
    return None
