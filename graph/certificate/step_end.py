"""The end of a certificate's step: passed, failed, skipped or not done, and what its line says beside its name."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ridgeline.tools.records.finding import Finding


class StepState(StrEnum):
    """The ways in which a step ends."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"  # this machine lacks what the step needs
    NOT_DONE = "not_done"  # the engine failed in a step that only informs


@dataclass(frozen=True, slots=True, kw_only=True)
class StepEnd:
    """The end of one step; `finding` says why the winner did not pass it."""

    state: StepState
    detail: str = ""  # "" where the state says enough
    finding: Finding | None = None

    @classmethod
    def of(cls, finding: Finding | None, detail: str = "") -> StepEnd:
        """Return that a step which was done failed with this finding, or passed where there is none."""
        if finding is None:
            return cls(state=StepState.PASSED, detail=detail)
        return cls(state=StepState.FAILED, detail=finding.reason or detail, finding=finding)

    @classmethod
    def passing(cls, detail: str = "") -> StepEnd:
        """Return that a step passed."""
        return cls.of(None, detail)

    @classmethod
    def skipping(cls, reason: str) -> StepEnd:
        """Return that a step was skipped, and why."""
        return cls(state=StepState.SKIPPED, detail=reason)

    @property
    def passed(self) -> bool | None:
        """Say whether the step passed; None for one that was skipped or not done."""
        return {StepState.PASSED: True, StepState.FAILED: False}.get(self.state)
