"""An engine with a memory: a task whose result is stored is not measured again.

Remembered: verdicts, timings, profiles and comparisons, each under the key of its task. A build is always asked of the
engine, since the compiler's cache alone knows whether the toolchain changed, and is stored for its log. Not remembered:
descriptions and baselines, of which a search has one each and stores them itself.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from ridgeline.tools.engine import (
    BenchmarkTask,
    CandidateStore,
    CandidateTask,
    CompareTask,
    CompileTask,
    Engine,
    ProfileTask,
    Task,
    VerifyTask,
)
from ridgeline.tools.records.codec import Record
from ridgeline.tools.records.keys import comparison_key, evaluation_key, step_key
from ridgeline.tools.records.results import Build, Comparison, Profile, Timing, Verdict

R = TypeVar("R")
RecordT = TypeVar("RecordT", bound=Record)

_TABLES: dict[type[Record], str] = {
    Verdict: "verdicts",
    Timing: "timings",
    Profile: "profiles",
    Comparison: "comparisons",
}
_RESULTS: dict[type[CandidateTask[Any]], type[Record]] = {
    VerifyTask: Verdict,
    BenchmarkTask: Timing,
    ProfileTask: Profile,
}


class RememberingEngine:
    """Implements `Engine` by another engine and a store; each result is stored durably before it is returned."""

    def __init__(self, engine: Engine, store: CandidateStore) -> None:
        self._engine = engine
        self.store = store

    async def submit(self, task: Task[R]) -> R:
        """Return the stored result of `task`, else have it measured and store it.

        Raises EngineError and InputError as the engine does; nothing is stored then.
        """
        if isinstance(task, CompileTask):
            return cast("R", await self._build(task))
        place = _place(task)
        if place is None:
            return await self._engine.submit(task)
        stored = await self.find(place.kind, place.key)
        if stored is not None:
            return cast("R", stored)
        result = await self._engine.submit(task)
        await asyncio.to_thread(
            self.store.save, _TABLES[place.kind], place.key, place.candidate_id, cast("Record", result)
        )
        return result

    async def find(self, kind: type[RecordT], key: str) -> RecordT | None:
        """Return the stored verdict, timing, profile or comparison of this key, or None."""
        stored = await asyncio.to_thread(self.store.find, _TABLES[kind], key)
        return None if stored is None else kind.from_json(dict(stored))

    async def aclose(self) -> None:
        """Close the engine that measures."""
        await self._engine.aclose()

    async def _build(self, task: CompileTask) -> Build:
        build = await self._engine.submit(task)
        await asyncio.to_thread(self._save_build, task.candidate.id, build)
        return build

    def _save_build(self, candidate_id: str, build: Build) -> None:
        """Store a build; one from the cache does not replace the record of how long it took."""
        if not build.cached or self.store.find("builds", build.key) is None:
            self.store.save("builds", build.key, candidate_id, build)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Location of a task's result in the archive. A comparison is stored under its first candidate."""

    kind: type[Record]
    key: str
    candidate_id: str


def _place(task: Task[Any]) -> _Place | None:
    if isinstance(task, CompareTask):
        builds = (task.first_build, task.second_build)
        under = (evaluation_key(build.key, task.problem, task.purpose) for build in builds)
        key = comparison_key(task.first.id, task.second.id, *under)
        return _Place(kind=Comparison, key=key, candidate_id=task.first.id)
    if isinstance(task, CandidateTask):
        key = step_key(evaluation_key(task.build.key, task.problem, task.purpose), task.step)
        return _Place(kind=_RESULTS[type(task)], key=key, candidate_id=task.candidate.id)
    return None
