"""The seed bank: elite kernels that outlive their runs and seed later searches.

Kernels are kept by operation family and device architecture. A search judges a kernel of the bank again before use: the
bank is a source of ideas, never of results. Searches of other families are shown the best kernels as building blocks, which
nobody judges.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from ridgeline.checkpoints.storage.being_made import Unmade
from ridgeline.checkpoints.storage.database import Database, to_text
from ridgeline.checkpoints.storage.database_kind import Kind
from ridgeline.checkpoints.storage.errors import record_errors
from ridgeline.checkpoints.storage.held_database import HoldsDatabase
from ridgeline.checkpoints.storage.migrations import BANK
from ridgeline.tools.errors import StorageError
from ridgeline.tools.machine.places import home_dir
from ridgeline.tools.records.results import Evaluation
from ridgeline.tools.records.search import Candidate, KernelWork
from ridgeline.tools.records.vocabulary import Origin, Status

_ADD = """INSERT INTO kernels (id, family, device_arch, problem, record, evaluation, work)
VALUES (:id, :family, :device_arch, :problem, :record, :evaluation, :work)
ON CONFLICT (id, family, device_arch, problem) DO UPDATE SET evaluation = excluded.evaluation, work = excluded.work
WHERE json_extract(excluded.evaluation, '$.timing.speedup') > speedup"""
_SEEDS = """SELECT id, record, MAX(speedup) AS speedup FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY problem ORDER BY speedup DESC, id) AS place
  FROM kernels WHERE family = :family AND device_arch = :device_arch)
GROUP BY id ORDER BY MIN(place), speedup DESC, id LIMIT :limit"""

_OTHERS = """SELECT id, family, problem, record, work, median_ms FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY family ORDER BY share DESC NULLS LAST, speedup DESC, id) AS place
  FROM kernels WHERE family NOT IN (:family, 'unknown') AND device_arch = :device_arch)
WHERE place = 1 ORDER BY share DESC NULLS LAST, speedup DESC, id LIMIT :limit"""


@dataclass(frozen=True, slots=True, kw_only=True)
class BankedBlock:
    """The best kernel of another family."""

    candidate: Candidate
    family: str
    problem: str
    median_ms: float | None
    work: KernelWork


def bank_id(source: str) -> str:
    """Return the id of a source in the bank: "bank-" and eight hexadecimal digits of its hash."""
    return "bank-" + hashlib.sha256(source.encode()).hexdigest()[:8]


def own_bank() -> Path:
    """Return the path of the user's own bank: $RIDGELINE_HOME/bank.sqlite."""
    return home_dir() / "bank.sqlite"


class Bank(HoldsDatabase):
    """The seed bank; safe for many processes at once."""

    @classmethod
    def open(cls, path: Path | None = None) -> Self:
        """Open the bank at `path`, by default the user's own, and make it when missing.

        Raises:
            StorageError: damaged, read-only, on a full disk, of another kind, or of a newer schema.
        """
        return cls(Database.open(path or own_bank(), BANK, create=True, what=Kind.BANK))

    @staticmethod
    def check_openable(path: Path) -> None:
        """Refuse a path at which no bank can be opened, whose folder does not exist, or one with a damaged kernel.

        Nothing is written.

        Raises:
            StorageError: as `open` and `check` do; or there is no such folder, which more often is mistyped than meant.
        """
        if not path.parent.exists():
            raise StorageError(f"{path}: the folder {path.parent} does not exist; make it, or mend the bank's name")
        Database.check_openable(path, BANK, what=Kind.BANK)
        if path.is_file() and path.stat().st_size:
            with suppress(Unmade), closing(Database.open_read_only(path, BANK, what=Kind.BANK)) as database:
                Bank(database).check()

    def check(self) -> None:
        """Read every kernel; StorageError when one is damaged."""
        rows = list(self.database.query("SELECT record, work FROM kernels"))
        self._decoded(rows)
        self._works(rows)

    def add(
        self,
        family: str,
        device_arch: str,
        problem: str,
        candidate: Candidate,
        evaluation: Evaluation,
        *,
        work: KernelWork | None = None,
    ) -> str:
        """Keep an `ok` kernel and return its id; of several evaluations of one source the fastest stays."""
        if evaluation.status is not Status.OK:
            raise ValueError(f"{candidate.id}: only a kernel that is ok belongs in the bank, not {evaluation.status}")
        own_id = bank_id(candidate.source)
        kept = replace(candidate, id=own_id, origin=Origin.BANK, round=0, idea_id=None, parent_id=None, mending=None)
        row: dict[str, Any] = {"id": kept.id, "family": family, "device_arch": device_arch, "problem": problem}
        row |= {"record": to_text(kept.to_json()), "evaluation": to_text(evaluation.to_json())}
        row["work"] = to_text((work or KernelWork()).to_json())
        with self.database.write() as rows:
            rows.execute(_ADD, row)
        return kept.id

    def seeds(self, family: str, device_arch: str, limit: int) -> list[Candidate]:
        """Return up to `limit` kernels of this family and architecture.

        The best kernel of each problem comes first, then the second best of each, so that one easy problem does not
        fill the list.

        Raises:
            StorageError: a kernel's record is damaged.
        """
        found = self.database.query(_SEEDS, {"family": family, "device_arch": device_arch, "limit": limit})
        return self._decoded(found)

    def blocks(self, family: str, device_arch: str, limit: int) -> list[BankedBlock]:
        """Return up to `limit` kernels of other families on this architecture, the best one of each.

        The best is the nearest to the device's peak; where no share of it is known, the furthest ahead of eager PyTorch.

        Raises:
            StorageError: a kernel's record is damaged.
        """
        rows = list(self.database.query(_OTHERS, {"family": family, "device_arch": device_arch, "limit": limit}))
        return [
            BankedBlock(
                candidate=candidate,
                family=row["family"],
                problem=row["problem"],
                median_ms=row["median_ms"],
                work=work,
            )
            for row, candidate, work in zip(rows, self._decoded(rows), self._works(rows), strict=True)
        ]

    def _decoded(self, rows: Iterable[dict[str, Any]]) -> list[Candidate]:
        values = [self.database.value_of(row["record"]) for row in rows]
        with record_errors(self.database.path):
            return [Candidate.from_json(value) for value in values]

    def _works(self, rows: Iterable[dict[str, Any]]) -> list[KernelWork]:
        values = [self.database.value_of(row["work"]) for row in rows]
        with record_errors(self.database.path):
            return [KernelWork.from_json(value) for value in values]
