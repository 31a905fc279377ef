"""An engine that measures nothing: every result is one that a recorded search stored, found by the kernel's source.

It works where neither the device nor a compiler nor a sandbox is. A measurement that was not recorded is a NotRecorded,
never a guess. A certificate is no part of a recording: it says that something was measured again.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from ridgeline.tools.engine import (
    BaselineTask,
    CandidateTask,
    CompareTask,
    CompileTask,
    DescribeTask,
    NextBaselineTask,
    ProfileTask,
    Task,
)
from ridgeline.tools.errors import EngineError, NotRecorded
from ridgeline.tools.records.baselines import Baselines
from ridgeline.tools.records.problem import Description, Target
from ridgeline.tools.records.recorded import FAILURE, MeasurementKey, RecordedMeasurement, source_hash
from ridgeline.tools.records.reference_mode import EAGER_MODES
from ridgeline.tools.records.search import Candidate
from ridgeline.tools.records.vocabulary import Purpose
from ridgeline.tools.wording import option

R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedReference:
    """The reference of a recorded search, with all that the search learned of it."""

    target: Target
    description: Description
    baselines: Baselines


class ReplayingEngine:
    """Implements `Engine` by what a search recorded; `where` names the recording in messages."""

    def __init__(
        self, reference: RecordedReference, measurements: Iterable[RecordedMeasurement], *, where: str
    ) -> None:
        self._reference = reference
        self._results = {measured.key: measured.result for measured in reversed(list(measurements))}
        self._where = where

    async def submit(self, task: Task[R]) -> R:
        """Return the recorded result of `task`.

        Raises:
            NotRecorded: the recording holds none.
            EngineError: the recorded engine failed on this kernel.
        """
        if task.problem.judge_key != self._reference.target.judge_key:
            raise self._missing(f"{task.name} of another reference, or of other sizes")
        if isinstance(task, DescribeTask):
            return cast("R", self._reference.description)
        if isinstance(task, BaselineTask | NextBaselineTask):
            return cast("R", self._baselines(task))
        return task.read_result(self._result(task))

    async def aclose(self) -> None:
        """Nothing runs."""

    def _baselines(self, task: BaselineTask | NextBaselineTask) -> Baselines:
        """Return PyTorch's recorded times, in the parts in which a search asks for them."""
        if task.purpose is Purpose.CERTIFY:
            raise self._missing("PyTorch's times measured again, for a certificate")
        whole = self._reference.baselines
        later = tuple(entry for entry in whole.entries if entry.name not in EAGER_MODES)
        if isinstance(task, BaselineTask):
            first = dataclasses.replace(whole.eager_only(), pending=tuple(entry.name for entry in later))
            return first if task.eager_only else dataclasses.replace(whole, pending=())
        name, *rest = task.after.pending
        entry = next((entry for entry in later if entry.name == name), None)
        if entry is None:
            raise self._missing(f"PyTorch's time as {name}")
        return dataclasses.replace(task.after, entries=(*task.after.entries, entry), pending=tuple(rest))

    def _result(self, task: Task[Any]) -> dict[str, Any]:
        if isinstance(task, CompareTask):
            first, second = (source_hash(each.source) for each in (task.first, task.second))
            key: MeasurementKey = ("Comparison", first, second, task.purpose)
            if task.purpose is Purpose.SEARCH and key not in self._results:
                raise EngineError("it was not recorded")  # without it kernels rank by their own times
            return self._found(key, f"the comparison of {task.first.id} and {task.second.id}")
        if isinstance(task, CompileTask) and not task.sanitized:
            return self._step(("Build", source_hash(task.candidate.source), "", None), task.candidate, "build")
        if isinstance(task, CandidateTask) and not task.step:
            key = (task.result.__name__, source_hash(task.candidate.source), "", task.purpose)
            if isinstance(task, ProfileTask) and key not in self._results:
                raise EngineError("it was not recorded")  # it decides nothing: it is words for a model
            return self._step(key, task.candidate, f"{task.result.__name__.lower()} ({task.purpose})")
        raise self._missing(f"a step of a certificate ({task.name})")

    def _step(self, key: MeasurementKey, candidate: Candidate, what: str) -> dict[str, Any]:
        for purpose in (key[3],) if key[3] else (Purpose.SEARCH, Purpose.TUNE):
            failed = self._results.get((FAILURE, key[1], "", purpose))
            if failed is not None and key not in self._results:
                raise EngineError(str(failed["reason"]))
        return self._found(key, f"the {what} of {candidate.id}")

    def _found(self, key: MeasurementKey, what: str) -> dict[str, Any]:
        result = self._results.get(key)
        if result is None:
            raise self._missing(what)
        return result

    def _missing(self, what: str) -> NotRecorded:
        return NotRecorded(
            f"{self._where}: {what} was not recorded; leave {option('replay_timings')} out to measure it here, or record more"
        )
