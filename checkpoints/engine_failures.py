"""Engine failures: candidates that the machine failed on and that were therefore not judged.

A candidate has an evaluation or an engine failure for one purpose, never both; triggers of the schema keep it so. An
evaluation that comes later ends the failure, and a failure never takes the place of an evaluation.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ridgeline.checkpoints.storage.database import Database, to_text
from ridgeline.tools.errors import EngineError, MachineBusyError
from ridgeline.tools.records.results import Evaluation
from ridgeline.tools.records.vocabulary import Purpose, ReasonCode, Status

_ADD = """INSERT INTO engine_failures (candidate_id, purpose, reason) VALUES (:candidate_id, :purpose, :reason)
ON CONFLICT (candidate_id, purpose) DO UPDATE SET reason = excluded.reason"""
_DROP = """DELETE FROM engine_failures
WHERE purpose = :purpose AND candidate_id NOT IN (SELECT value FROM json_each(:kept))"""
_FIND = """SELECT candidate_id, purpose, reason FROM engine_failures
WHERE :candidate_id IS NULL OR candidate_id = :candidate_id ORDER BY rowid"""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineFailure:
    """One candidate that could not be judged for one purpose."""

    candidate_id: str
    purpose: Purpose
    reason: str
    was_busy: bool = False  # other programs were the cause; known in the session that met it

    @classmethod
    def of(cls, candidate_id: str, purpose: Purpose, error: EngineError, *, step: str = "") -> EngineFailure:
        """Return the failure that an error is for a candidate; `step` is the certificate's that it ended."""
        where = f"{step}: " if step else ""
        was_busy = isinstance(error, MachineBusyError)
        return cls(
            candidate_id=candidate_id, purpose=purpose, reason=f"{where}{unjudged_words(error)}", was_busy=was_busy
        )

    def as_evaluation(self) -> Evaluation:
        """Return the entry that reports, exports and events show: refused, engine_failed."""
        return Evaluation(
            key=f"unjudged:{self.candidate_id}:{self.purpose}",
            candidate_id=self.candidate_id,
            purpose=self.purpose,
            status=Status.REFUSED,
            reason_code=ReasonCode.ENGINE_FAILED,
            reason=self.reason,
        )


_FAILED, _BUSY = "the engine failed, the kernel may be sound: ", "no verdict, the kernel may be sound: "


def unjudged_words(error: EngineError) -> str:
    """Return why a kernel has no verdict: the engine failed, or, which is no failure of its own, the machine was too busy.

    A replayed failure has these words already.
    """
    words = str(error)
    if words.startswith((_FAILED, _BUSY)):
        return words
    return f"{_BUSY if isinstance(error, MachineBusyError) else _FAILED}{words}"


class EngineFailures:
    """The failures of one search, in its archive's file."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, failure: EngineFailure) -> None:
        """Store a failure; a candidate that has its evaluation keeps the evaluation alone."""
        row = {"candidate_id": failure.candidate_id, "purpose": failure.purpose.value, "reason": failure.reason}
        with self._database.write() as rows:
            rows.execute(_ADD, row)

    def drop(self, purpose: Purpose, *, but: Iterable[str]) -> None:
        """Drop the failures for one purpose but those of these candidates."""
        with self._database.write() as rows:
            rows.execute(_DROP, {"purpose": purpose.value, "kept": to_text(list(but))})

    def find(self, candidate_id: str | None = None) -> list[EngineFailure]:
        """Return the failures of one candidate, or of all, in the order in which they came."""
        found = self._database.query(_FIND, {"candidate_id": candidate_id})
        return [EngineFailure(**row | {"purpose": Purpose(row["purpose"])}) for row in found]
