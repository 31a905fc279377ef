"""The seed bank: elite kernels that outlive their runs and seed later searches.

Kernels are kept by operation family and device architecture. A search judges a kernel of the bank again before use: the
bank is a source of ideas, never of results.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ridgeline.checkpoints.database import Database, to_text
from ridgeline.checkpoints.migrations import BANK
from ridgeline.tools.machine.places import home_dir
from ridgeline.tools.records.results import Evaluation
from ridgeline.tools.records.search import Candidate
from ridgeline.tools.records.vocabulary import Origin, Status

_ADD = """INSERT INTO kernels (id, family, device_arch, problem, record, evaluation)
VALUES (:id, :family, :device_arch, :problem, :record, :evaluation)
ON CONFLICT (id, family, device_arch, problem) DO UPDATE SET evaluation = excluded.evaluation
WHERE json_extract(excluded.evaluation, '$.timing.speedup') > speedup"""
_SEEDS = """SELECT id, record, MAX(speedup) AS speedup FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY problem ORDER BY speedup DESC, id) AS place
  FROM kernels WHERE family = :family AND device_arch = :device_arch)
GROUP BY id ORDER BY MIN(place), speedup DESC, id LIMIT :limit"""


def bank_id(source: str) -> str:
    """Return the id of a source in the bank: "bank-" and eight hexadecimal digits of its hash."""
    return "bank-" + hashlib.sha256(source.encode()).hexdigest()[:8]


class Bank:
    """The seed bank; safe for many processes at once."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @classmethod
    def open(cls, path: Path | None = None) -> Self:
        """Open the bank at `path`, by default $RIDGELINE_HOME/bank.sqlite, and make it when missing.

        Raises:
            StorageError: damaged, read-only, on a full disk, or of a newer schema.
        """
        return cls(Database.open(path or home_dir() / "bank.sqlite", BANK, create=True, what="seed bank"))

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def add(self, family: str, device_arch: str, problem: str, candidate: Candidate, evaluation: Evaluation) -> str:
        """Keep an `ok` kernel and return its id; of several evaluations of one source the fastest stays."""
        if evaluation.status is not Status.OK:
            raise ValueError(f"{candidate.id}: only a kernel that is ok belongs in the bank, not {evaluation.status}")
        kept = replace(
            candidate, id=bank_id(candidate.source), origin=Origin.BANK, round=0, idea_id=None, parent_id=None
        )
        row: dict[str, Any] = {"id": kept.id, "family": family, "device_arch": device_arch, "problem": problem}
        row |= {"record": to_text(kept.to_json()), "evaluation": to_text(evaluation.to_json())}
        with self._database.write() as rows:
            rows.execute(_ADD, row)
        return kept.id

    def seeds(self, family: str, device_arch: str, limit: int) -> list[Candidate]:
        """Return up to `limit` kernels of this family and architecture.

        The best kernel of each problem comes first, then the second best of each, so that one easy problem does not
        fill the list.
        """
        found = self._database.query(_SEEDS, {"family": family, "device_arch": device_arch, "limit": limit})
        return [Candidate.from_json(json.loads(row["record"])) for row in found]
