"""A Ridgeline exception as JSON between processes: its wire name and its message."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ridgeline.tools import errors
from ridgeline.tools.errors import EngineError, RidgelineError
from ridgeline.tools.records.codec import Record

ERRORS: Mapping[str, type[RidgelineError]] = {
    "RidgelineError": errors.RidgelineError,
    "InputError": errors.InputError,
    "ProblemError": errors.ProblemError,
    "BadReferenceError": errors.BadReferenceError,
    "ContentsRefusedError": errors.ContentsRefusedError,
    "NoRoomError": errors.NoRoomError,
    "ModelError": errors.ModelError,
    "UncoveredError": errors.UncoveredError,
    "DeviceError": errors.DeviceError,
    "DeviceAway": errors.DeviceAway,
    "SandboxError": errors.SandboxError,
    "RunError": errors.RunError,
    "StorageError": errors.StorageError,
    "FileLost": errors.FileLost,
    "NotBegun": errors.NotBegun,
    "OutOfBudget": errors.OutOfBudget,
    "SearchCut": errors.SearchCut,
    "NotRecorded": errors.NotRecorded,
    "EngineError": errors.EngineError,
    "TrustedProcessLost": errors.TrustedProcessLost,
    "EvaluatorKilled": errors.EvaluatorKilled,
    "JudgeDied": errors.JudgeDied,
    "JudgeKilled": errors.JudgeKilled,
    "JudgeShortError": errors.JudgeShortError,
    "RunnerNotReadyError": errors.RunnerNotReadyError,
    "DeviceLostError": errors.DeviceLostError,
    "MachineBusyError": errors.MachineBusyError,
}
"""By name on the wire: part of the protocol between processes, whatever the classes are called."""
_NAMES = {kind: name for name, kind in ERRORS.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldError(Record):
    """An error of Ridgeline's tree on its way to another process."""

    type: str  # a name of ERRORS
    message: str
    was_killed: bool = False

    @classmethod
    def of(cls, error: RidgelineError) -> ToldError:
        """Return how another process is told of `error`: under the name of its closest class in the tree."""
        name = next(_NAMES[kind] for kind in type(error).__mro__ if kind in _NAMES)
        return cls(type=name, message=str(error), was_killed=error.was_killed)

    def as_exception(self) -> RidgelineError:
        """Return the error to raise here; a name that is not in the tree is an internal error."""
        kind = ERRORS.get(self.type)
        if kind is None:
            return EngineError(f"{self.type}: {self.message}")
        return kind(self.message, was_killed=self.was_killed)
