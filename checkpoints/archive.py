"""Everything one search found out, in one SQLite file that any SQLite browser opens.

Each method is durable against a killed process before it returns, safe to call from many threads, and idempotent:
storing the same thing twice changes nothing, so a resumed branch may repeat its last step.

Every method blocks; coroutines call it through `run_whole` of tools/machine/threads.py (docs/architecture.md says why).
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Self, TypeVar, cast

from ridgeline.checkpoints.engine_failures import EngineFailure, EngineFailures
from ridgeline.checkpoints.ledger import Ledger
from ridgeline.checkpoints.ranking import fastest_first
from ridgeline.checkpoints.round_record import RoundRecord
from ridgeline.checkpoints.run_record import RunRecord
from ridgeline.checkpoints.storage.database import Database, to_text
from ridgeline.checkpoints.storage.database_kind import Kind
from ridgeline.checkpoints.storage.errors import damaged, record_errors
from ridgeline.checkpoints.storage.held_database import HoldsDatabase
from ridgeline.checkpoints.storage.migrations import ARCHIVE
from ridgeline.checkpoints.stored_certificate import StoredCertificate, certificate_content
from ridgeline.tools.errors import RunError, StorageError
from ridgeline.tools.records.baselines import Baselines
from ridgeline.tools.records.codec import Record
from ridgeline.tools.records.problem import Description
from ridgeline.tools.records.results import Evaluation
from ridgeline.tools.records.search import Candidate, Idea
from ridgeline.tools.records.vocabulary import Origin, Purpose, Status

R = TypeVar("R", bound=Record)

FILE_NAME = "archive.sqlite"
PIECES = ("builds", "verdicts", "timings", "profiles", "comparisons")
KEPT_RECORDS = 4096
"""Records that are kept read; a search has a few hundred, and asks for all of them several times a step."""


class Archive(HoldsDatabase):
    """The memory of one search; also the `MeasurementStore` of the tools.

    An idea, a candidate or an evaluation is decoded once and is one object for all who ask: copy its dicts before others get
    them.
    """

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._ledger = Ledger(database)
        self._engine_failures = EngineFailures(database)
        self._kept: dict[tuple[type[Record], str], Record] = {}  # by their text: frozen, and never out of date

    @classmethod
    def open(cls, path: Path | str, *, create: bool = True) -> Self:
        """Open the archive at `path` (a file, or a run folder that holds archive.sqlite).

        Raises:
            StorageError: missing without `create`, damaged, read-only, on a full disk, of another kind, or of a newer schema.
        """
        path = Path(path)
        file = path / FILE_NAME if path.is_dir() else path
        return cls(Database.open(file, ARCHIVE, create=create, what=Kind.ARCHIVE))

    @classmethod
    def open_read_only(cls, path: Path | str) -> Self:
        """Open an archive without changing its file or folder; see `Database.open_read_only`.

        Raises:
            StorageError: missing, damaged, of another kind, or of a newer schema.
        """
        path = Path(path)
        file = path / FILE_NAME if path.is_dir() else path
        return cls(Database.open_read_only(file, ARCHIVE, what=Kind.ARCHIVE))

    @property
    def path(self) -> Path:
        """Return where the file lies."""
        return self.database.path

    # ---------------------------------------------------------------------------------------------------- the search

    def save_run(self, changes: RunRecord) -> None:
        """Store the fields of `changes` that are not None; a new search without a `search_id` is given one."""
        with self.database.write() as rows:
            known = self._own_run()
            record = {**(known["record"] if known else {}), **changes.to_json()}
            search_id = record.setdefault("search_id", known["search_id"] if known else _new_search_id())
            if known and known["search_id"] != search_id:
                rows.execute("UPDATE runs SET search_id = ?", [search_id])
            rows.table("runs").upsert({"search_id": search_id, "record": to_text(record)}, pk="search_id")

    def run(self) -> RunRecord:
        """Return what `save_run` has stored so far.

        Raises:
            RunError: the file holds several searches (`merge_archives` made it).
            StorageError: the record is damaged.
        """
        known = self._own_run()
        return self._run_record(known["record"]) if known else RunRecord()

    def runs(self) -> list[RunRecord]:
        """Return every search of the file: one, or several in a merged archive."""
        found = self.database.query("SELECT record FROM runs ORDER BY rowid")
        return [self._run_record(record) for record in self._objects(row["record"] for row in found)]

    def save_description(self, description: Description) -> None:
        """Store what the judge learned of the reference."""
        self._save_run_part("description", description.to_json())

    def description(self) -> Description | None:
        """Return the stored description, or None."""
        stored = self._run_part("description")
        return self._decoded(Description, [stored])[0] if stored else None

    def save_baselines(self, baselines: Baselines, *, purpose: Purpose = Purpose.SEARCH) -> None:
        """Store PyTorch's own times and the floor: the search's, or for CERTIFY those that its certificate measured."""
        if purpose is Purpose.CERTIFY:
            self.save_run(RunRecord(baselines_again=baselines))
        else:
            self._save_run_part("baselines", baselines.to_json())

    def baselines(self, *, purpose: Purpose = Purpose.SEARCH) -> Baselines | None:
        """Return the search's baselines, or for CERTIFY its certificate's; None before they are stored."""
        if purpose is Purpose.CERTIFY:
            return self.run().baselines_again
        stored = self._run_part("baselines")
        return self._decoded(Baselines, [stored])[0] if stored else None

    def save_certificate(self, certificate: dict[str, Any]) -> None:
        """Store the winner's certificate, whole; it replaces an earlier one."""
        self._save_run_part("certificate", certificate)

    def certificate(self) -> StoredCertificate | None:
        """Return the certificate, or None; StorageError when a field of it is damaged."""
        stored = self._run_part("certificate")
        return None if stored is None else self._decoded(StoredCertificate, [stored])[0]

    def certificate_json(self) -> dict[str, Any] | None:
        """Return the content of certificate.json, or None; StorageError when a field of it is damaged."""
        stored = self._run_part("certificate")
        with record_errors(self.path):
            return None if stored is None else certificate_content(stored)

    def forget_winner(self) -> None:
        """Drop the certificate, its baselines and `best_id`, because the search goes on and will certify again."""
        with self.database.write() as rows:
            known = self._own_run()
            if known is None:
                return
            record = {n: value for n, value in known["record"].items() if n not in ("best_id", "baselines_again")}
            rows.execute("UPDATE runs SET certificate = NULL, record = ?", [to_text(record)])

    def _run_record(self, record: Any) -> RunRecord:
        try:
            return RunRecord.from_json(record)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise StorageError(f"{self.path}: {damaged(f'the record of its search is spoiled: {error}')}") from error

    def _own_run(self) -> dict[str, Any] | None:
        found = self.database.query("SELECT search_id, record, description, baselines, certificate FROM runs LIMIT 2")
        if len(found) > 1:
            raise RunError(f"{self.path}: holds several searches; name the folder of one run")
        return found[0] | {"record": self._objects([found[0]["record"]])[0]} if found else None

    def _save_run_part(self, column: str, value: dict[str, Any]) -> None:
        with self.database.write() as rows:
            if self._own_run() is None:
                search_id = _new_search_id()
                rows.table("runs").insert({"search_id": search_id, "record": to_text({"search_id": search_id})})
            rows.execute(f"UPDATE runs SET {column} = ?", [to_text(value)])

    def _run_part(self, column: str) -> dict[str, Any] | None:
        known = self._own_run()
        if not known or known[column] is None:
            return None
        return self._objects([known[column]])[0]

    # -------------------------------------------------------------------------------------------- ideas and candidates

    def add_ideas(self, ideas: Iterable[Idea]) -> None:
        """Store ideas; an idea of the same id is replaced."""
        with self.database.write() as rows:
            rows.table("ideas").upsert_all(({"id": i.id, "record": to_text(i.to_json())} for i in ideas), pk="id")

    def ideas(self, round: int | None = None) -> list[Idea]:
        """Return the ideas of one round, or of all, in the order in which they came."""
        return self._read(Idea, self._texts("ideas", {"round": round}))

    def idea(self, idea_id: str) -> Idea:
        """Return one idea; KeyError when there is none."""
        return self._read(Idea, [self._text("ideas", "id", idea_id)])[0]

    def add_candidate(self, candidate: Candidate) -> None:
        """Store a candidate under its id."""
        self.add_candidates([candidate])

    def add_candidates(self, candidates: Iterable[Candidate]) -> None:
        """Store candidates under their ids, in this order: all or, after a kill at any instant, none."""
        with self.database.write() as rows:
            for candidate in candidates:
                rows.table("candidates").upsert({"id": candidate.id, "record": to_text(candidate.to_json())}, pk="id")

    def candidate(self, candidate_id: str) -> Candidate:
        """Return one candidate; KeyError when there is none."""
        found = self._read(Candidate, [self._text("candidates", "id", candidate_id)])[0]
        if found.id != candidate_id:
            raise StorageError(f"{self.path}: {damaged(f'the record of {candidate_id} is of {found.id}')}")
        return found

    def candidates(
        self, *, round: int | None = None, idea_id: str | None = None, origin: Origin | None = None
    ) -> list[Candidate]:
        """Return the candidates that match, in the order in which they came."""
        wanted = {"round": round, "idea_id": idea_id, "origin": origin}
        return self._read(Candidate, self._texts("candidates", wanted))

    # --------------------------------------------------------------------------------------------------- measurements

    def find(self, table: str, key: str) -> dict[str, object] | None:
        """Return the record of `key` in one of `PIECES`, or None."""
        row = self.database.first(f"SELECT record FROM {_piece(table)} WHERE key = ?", [key])
        return self._objects([row["record"]])[0] if row else None

    def save(self, table: str, key: str, candidate_id: str, record: Record) -> None:
        """Store a record in one of `PIECES` under its key; an earlier record of the key is replaced."""
        with self.database.write() as rows:
            row = {"key": key, "candidate_id": candidate_id, "record": to_text(record.to_json())}
            rows.table(_piece(table)).upsert(row, pk="key")

    def records(self, table: str) -> list[tuple[str, dict[str, Any]]]:
        """Return every (key, record) of one of `PIECES`, in the order in which they came."""
        found = self.database.query(f"SELECT key, record FROM {_piece(table)} ORDER BY rowid")
        return list(zip((row["key"] for row in found), self._objects(row["record"] for row in found), strict=True))

    def add_evaluation(self, evaluation: Evaluation) -> None:
        """Store an evaluation under its candidate and purpose; it ends the candidate's engine failure."""
        keys = {"candidate_id": evaluation.candidate_id, "purpose": evaluation.purpose.value}
        with self.database.write() as rows:
            rows.table("evaluations").upsert({**keys, "record": to_text(evaluation.to_json())}, pk=tuple(keys))

    def add_engine_failure(self, failure: EngineFailure) -> None:
        """Store that the engine failed on a candidate, unless it has its evaluation."""
        self._engine_failures.add(failure)

    def drop_engine_failures(self, purpose: Purpose, *, but: Iterable[str]) -> None:
        """Drop the engine failures for one purpose but those of these candidates."""
        self._engine_failures.drop(purpose, but=but)

    def engine_failures(self, candidate_id: str | None = None) -> list[EngineFailure]:
        """Return the engine failures of one candidate, or of all, that no evaluation has ended."""
        return self._engine_failures.find(candidate_id)

    def evaluation(self, candidate_id: str, purpose: Purpose = Purpose.SEARCH) -> Evaluation | None:
        """Return a candidate's evaluation for this purpose, or None."""
        found = self._texts("evaluations", {"candidate_id": candidate_id, "purpose": purpose})
        return self._read(Evaluation, found[:1])[0] if found else None

    def own_evaluation(self, candidate_id: str) -> Evaluation | None:
        """Return what the search found of a candidate: as a point of a sweep where it is one; None before it was judged."""
        return self.evaluation(candidate_id, Purpose.TUNE) or self.evaluation(candidate_id)

    def evaluations(self, *, purpose: Purpose | None = None, status: Status | None = None) -> list[Evaluation]:
        """Return the evaluations that match, in the order in which they came."""
        return self._read(Evaluation, self._texts("evaluations", {"purpose": purpose, "status": status}))

    def ranking(
        self, purpose: Purpose | Sequence[Purpose] = Purpose.SEARCH, limit: int | None = None
    ) -> list[Evaluation]:
        """Return the `ok` evaluations for this purpose (or these), fastest kernel first; see `fastest_first`."""
        purposes = (purpose,) if isinstance(purpose, Purpose) else tuple(purpose)
        return fastest_first([e for p in purposes for e in self.evaluations(purpose=p, status=Status.OK)])[:limit]

    # ------------------------------------------------------------------------------------------------ rounds and costs

    def save_round(self, record: RoundRecord) -> None:
        """Store what is known of a finished round; an earlier record of the round is replaced."""
        with self.database.write() as rows:
            rows.table("rounds").upsert({"id": str(record.round), "record": to_text(record.to_json())}, pk="id")

    def rounds(self) -> list[RoundRecord]:
        """Return the history, first round first."""
        found = self.database.query("SELECT record FROM rounds ORDER BY round, rowid")
        return self._decoded(RoundRecord, self._objects(row["record"] for row in found))

    def charge(self, entry_id: str, *, cpu_s: float = 0.0, gpu_s: float = 0.0, wall_s: float = 0.0, what: str) -> None:
        """Enter a cost once: a second charge of the same `entry_id` is ignored."""
        self._ledger.charge(entry_id, cpu_s=cpu_s, gpu_s=gpu_s, wall_s=wall_s, what=what)

    def ledger_totals(self) -> dict[str, float]:
        """Return `cpu_s`, `gpu_s` and `wall_s` over every entry."""
        return self._ledger.totals()

    def ledger_entries(self) -> list[dict[str, Any]]:
        """Return every entry of the ledger, oldest first: entry_id, what, and its seconds."""
        return self._ledger.entries()

    # --------------------------------------------------------------------------------------------------------- the rows

    def _text(self, table: str, key: str, value: str) -> str:
        row = self.database.first(f"SELECT record FROM {table} WHERE {key} = ?", [value])
        if row is None:
            raise KeyError(f"{self.path}: no {value} in {table}")
        return cast("str", row["record"])

    def _texts(self, table: str, wanted: dict[str, Any]) -> list[str]:
        given = {column: value for column, value in wanted.items() if value is not None}
        where = " AND ".join(f"{column} = :{column}" for column in given)
        sql = f"SELECT record FROM {table}" + (f" WHERE {where}" if where else "") + " ORDER BY rowid"
        return [row["record"] for row in self.database.query(sql, given)]

    def _read(self, kind: type[R], texts: Iterable[str]) -> list[R]:
        """Return the records of these texts, each of which is decoded once."""
        return [self._kept_record(kind, text) for text in texts]

    def _kept_record(self, kind: type[R], text: str) -> R:
        kept = self._kept.get((kind, text))
        if kept is None:
            kept = self._decoded(kind, self._objects([text]))[0]
            if len(self._kept) >= KEPT_RECORDS:
                self._kept.clear()
            self._kept[kind, text] = kept
        return cast("R", kept)

    def _objects(self, texts: Iterable[str]) -> list[dict[str, Any]]:
        """Return the JSON objects that were stored; StorageError when one is something else."""
        found = [self.database.value_of(text) for text in texts]
        if strange := [value for value in found if not isinstance(value, dict)]:
            raise StorageError(f"{self.path}: {damaged(f'a record is {str(strange[0])[:40]}, no object')}")
        return found

    def _decoded(self, kind: type[R], stored: Iterable[dict[str, Any]]) -> list[R]:
        with record_errors(self.path):
            return [kind.from_json(value) for value in stored]


def _new_search_id() -> str:
    return uuid.uuid4().hex[:12]


def _piece(table: str) -> str:
    if table not in PIECES:
        raise ValueError(f"{table!r} is none of {', '.join(PIECES)}")
    return table
