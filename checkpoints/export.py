"""Archives outside of their run folder: one exported file, several searches merged, training data as JSON lines.

In a merged file every id names its search: "5e4c…/r1i2v0a0". The ids depend neither on the order nor on the number of
merges, so merging is idempotent.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from ridgeline.checkpoints.archive import FILE_NAME, PIECES, Archive
from ridgeline.checkpoints.history.lineage import findings
from ridgeline.checkpoints.run_record import RunRecord
from ridgeline.checkpoints.runs.folders import LOCK_NAME
from ridgeline.checkpoints.storage.database import to_text
from ridgeline.checkpoints.storage.database_kind import is_database
from ridgeline.checkpoints.storage.errors import damaged, record_errors, storage_errors
from ridgeline.checkpoints.storage.own_files import output_place, replace_file
from ridgeline.checkpoints.storage.strict_json import finite
from ridgeline.tools.errors import RunError, StorageError
from ridgeline.tools.machine.whole_files import draft_folder
from ridgeline.tools.records.results import SCHEMA_VERSION, Evaluation
from ridgeline.tools.records.search import Candidate, Idea, Mending

# table -> (stored columns, primary key, columns and record fields that hold an id of the search)
_TABLES: dict[str, tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]] = {
    "ideas": (("id", "record", "stored_at"), ("id",), ("id", "parent_id", "second_parent_id")),
    "candidates": (("id", "record", "stored_at"), ("id",), ("id", "idea_id", "parent_id")),
    "evaluations": (
        ("candidate_id", "purpose", "record", "stored_at"),
        ("candidate_id", "purpose"),
        ("candidate_id",),
    ),
    "engine_failures": (
        ("candidate_id", "purpose", "reason", "failed_at"),
        ("candidate_id", "purpose"),
        ("candidate_id",),
    ),
    **dict.fromkeys(PIECES, (("key", "candidate_id", "record", "stored_at"), ("key",), ("key", "candidate_id"))),
    "rounds": (("id", "record", "stored_at"), ("id",), ("id",)),
    "ledger": (("entry_id", "what", "cpu_s", "gpu_s", "wall_s", "stored_at"), ("entry_id",), ("entry_id",)),
    "model_calls": (
        (
            *("call_id", "state", "model", "prompt_sha256", "request", "reply"),
            *("error", "sent", "began_at", "ended_at"),
        ),
        ("call_id",),
        ("call_id",),
    ),
    "failed_sends": (
        ("call_id", "sent", "error", "input_tokens", "output_tokens", "usd", "unpriced", "failed_at"),
        ("call_id", "sent"),
        ("call_id",),
    ),
    "prompt_mismatches": (
        ("call_id", "stored_sha256", "replayed_sha256", "seen_at"),
        ("call_id", "replayed_sha256"),
        ("call_id",),
    ),
    "prompts": (("sha256", "text", "stored_at"), ("sha256",), ()),
    "steering": (("id", "kind", "name", "text", "from_round", "told_at"), ("id",), ("id", "name")),
    "answers": (("call_id", "number", "body", "arrived_at"), ("call_id", "number"), ("call_id",)),
}
_RUN_COLUMNS = ("search_id", "description", "baselines", "certificate", "record", "stored_at")


def export_archive(run: Path, out: Path, *, is_users: bool = True) -> Path:
    """Write a run's whole archive as one compact file and return the file's path; the run may go on meanwhile.

    `out` is a file, or a folder in which the file is named after the run. The copy's record says when it was exported.
    A link is followed where the user named the file (`is_users`), and replaced elsewhere.

    Raises:
        RunError: `out` holds text, which a database must not replace.
        StorageError: the run has no archive, or `out` cannot be written.
    """
    target = out / f"{run.resolve().name}.sqlite" if out.is_dir() else out
    place = output_place(target, is_users=is_users and not out.is_dir())
    if not place.is_symlink() and _has_text(place):
        raise RunError(f"{target}: holds text, not a database; name another file, or one that ends in .jsonl")
    with Archive.open_read_only(run) as archive, storage_errors(target):
        archive.database.check()  # here, where the message names the user's file and not the copy
        archive.run()
        place.parent.mkdir(parents=True, exist_ok=True)
        with draft_folder(place) as folder:
            copy = folder / "archive.sqlite"
            archive.database.copy_to(copy)
            with Archive.open(copy, create=False) as exported:
                now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
                exported.save_run(RunRecord(exported_at=now, exported_from=run.resolve().name))
                exported.database.leave_wal()
            os.replace(copy, place)
    return target


def _has_text(file: Path) -> bool:
    return file.is_file() and file.stat().st_size > 0 and not is_database(file)


def merge_archives(into: Path, sources: Sequence[Path]) -> dict[str, int]:
    """Copy every search of `sources` (files or run folders) into the merged file `into`, made when missing.

    Rows that `into` already has are updated. Return the numbers of new searches and candidates.

    Raises:
        RunError: a source holds no search, or `into` is a run's own archive.
        StorageError: a file is missing, damaged or cannot be written.
    """
    _refuse_own_archive(into)
    with ExitStack() as stack:
        archives = [stack.enter_context(Archive.open_read_only(source)) for source in sources]
        for archive in archives:
            if not archive.runs():
                raise RunError(f"{archive.path}: holds no search yet; nothing to merge")
            _read_all(archive)
        target = stack.enter_context(Archive.open(into))
        before = _counts(target)
        for archive in archives:
            _merge_one(target, archive)
        return {what: count - before[what] for what, count in _counts(target).items()}


def _read_all(archive: Archive) -> None:
    """Read what `into` is read by afterwards: a damaged record of one search would make the merged file unreadable."""
    archive.database.check()
    for read in (archive.ideas, archive.evaluations, archive.rounds):
        read()
    _own_candidates(archive)


def _own_candidates(archive: Archive) -> list[Candidate]:
    """Return every candidate; StorageError for an id that is not its row's, or of a search that the archive does not hold.

    A record of another id would take another candidate's place, or be told without its problem.
    """
    candidates, searches = archive.candidates(), {run.search_id for run in archive.runs()}
    rows = archive.database.query("SELECT id FROM candidates ORDER BY rowid")
    stored = (row["id"] for row in rows)
    for row_id, candidate in zip(stored, candidates, strict=False):  # a run that goes on may add some in between
        search, slash, _ = candidate.id.partition("/")
        if candidate.id != row_id:
            raise StorageError(f"{archive.path}: {damaged(f'the record of {row_id} is of {candidate.id}')}")
        if slash and search not in searches:
            raise StorageError(f"{archive.path}: {damaged(f'{candidate.id} is of a search that it does not hold')}")
    return candidates


def _refuse_own_archive(into: Path) -> None:
    """Raise RunError when `into` is the archive of one run: foreign searches would make that run unusable."""
    remedy = "merge into another file, which is made when missing"
    if into.is_dir():
        raise RunError(f"{into}: is a folder; {remedy}")
    if not into.exists() or not into.stat().st_size:
        return
    if (into.parent / LOCK_NAME).exists() and into.name == FILE_NAME:
        raise RunError(f"{into}: is a run's own archive; {remedy}")
    with Archive.open_read_only(into) as archive:
        own = "SELECT 1 FROM candidates WHERE id NOT LIKE '%/%' UNION SELECT 1 FROM ideas WHERE id NOT LIKE '%/%'"
        if archive.database.first(own):
            raise RunError(f"{into}: is the archive of one run, not a merged one; {remedy}")


def _counts(archive: Archive) -> dict[str, int]:
    return {"searches": len(archive.runs()), "candidates": len(archive.candidates())}


def _merge_one(target: Archive, source: Archive) -> None:
    runs = source.database.query(f"SELECT {', '.join(_RUN_COLUMNS)} FROM runs ORDER BY rowid")
    searches = [row["search_id"] for row in runs]
    with record_errors(source.path), target.database.write() as rows:
        rows.table("runs").upsert_all(runs, pk="search_id")
        for table, (columns, primary_key, ids) in _TABLES.items():
            found = source.database.query(f"SELECT {', '.join(columns)} FROM {table} ORDER BY rowid")
            moved = [
                _namespaced(row, ids, searches, () if table in PIECES else ids, source.database.value_of)
                for row in found
            ]
            rows.table(table).upsert_all(moved, pk=primary_key)


def _namespaced(
    row: dict[str, Any],
    columns: tuple[str, ...],
    searches: list[str],
    fields: tuple[str, ...],
    value_of: Callable[[str], Any],
) -> dict[str, Any]:
    """Return a row in which the ids of these columns, and of these fields of the record, name their search."""
    moved = {c: _with_search(v, searches) if c in columns else v for c, v in row.items()}
    if "record" in row:
        record = value_of(row["record"])
        record |= {k: _with_search(v, searches) for k, v in record.items() if k in fields}
        if mending := record.get("mending"):  # a candidate's, with ids of its own
            moved_ids = {k: _with_search(mending.get(k), searches) for k in ("failed_id", "sibling_id")}
            record["mending"] = mending | moved_ids
        moved["record"] = to_text(record)
    return moved


def _with_search(value: str | None, searches: list[str]) -> str | None:
    if value is None or value.partition("/")[0] in searches:
        return value
    return f"{searches[0]}/{value}"


def jsonl_lines(run: Path) -> list[str]:
    """Return one JSON text per candidate, without line ends; see schemas/candidate.json.

    `run` is a run folder, an exported file or a merged file. Every line has every field, each with one type or null, so
    Hugging Face loads them: `load_dataset("json", data_files=…)`.

    Raises:
        StorageError: the run has no archive, or it is damaged, as where a candidate's id is forged.
    """
    with Archive.open_read_only(run) as archive:
        return [json.dumps(finite(line), ensure_ascii=False, allow_nan=False) for line in _lines(archive)]


def export_jsonl(run: Path, file: Path) -> int:
    """Write `jsonl_lines` to `file`, as a whole or not at all, and return the number of lines.

    Raises:
        RunError: `file` holds a database, which text must not replace.
        StorageError: as `jsonl_lines`, or `file` cannot be written.
    """
    lines = jsonl_lines(run)
    if file.is_file() and is_database(file):
        raise RunError(f"{file}: holds a database, not lines of JSON; name another file")
    replace_file(file, "".join(line + "\n" for line in lines), is_users=True)
    return len(lines)


def _lines(archive: Archive) -> Iterator[dict[str, Any]]:
    runs = {run.search_id: run for run in archive.runs()}
    candidates = {c.id: c for c in _own_candidates(archive)}
    ideas, found = {i.id: i for i in archive.ideas()}, findings(archive)
    for candidate in candidates.values():
        search_id = candidate.id.partition("/")[0] if "/" in candidate.id else next(iter(runs), None)
        idea, parent = ideas.get(candidate.idea_id or ""), candidates.get(candidate.parent_id or "")
        yield (
            {"schema_version": SCHEMA_VERSION, "search_id": search_id or ""}
            | _problem_columns(runs.get(search_id, RunRecord()))
            | _candidate_columns(candidate, idea, parent)
            | _verdict_columns(found.get(candidate.id))
        )


def _problem_columns(run: RunRecord) -> dict[str, str]:
    return {
        "problem": run.problem_name,
        "reference_source": run.reference_source or "",
        "device": run.device.name if run.device else "",
        "device_kind": run.device.kind.value if run.device else "",
        "device_arch": run.device.arch if run.device else "",
    }


def _candidate_columns(candidate: Candidate, idea: Idea | None, parent: Candidate | None) -> dict[str, Any]:
    return {
        "id": candidate.id,
        "round": candidate.round,
        "origin": candidate.origin.value,
        "model": candidate.model,
        "idea": {
            "title": idea.title if idea else None,
            "mechanism": idea.mechanism if idea else None,
            "category": idea.category.value if idea else None,
        },
        "parent_id": candidate.parent_id,
        "parent_source": parent.source if parent else None,
        "source": candidate.source,
        "language": candidate.language,
        "interface": candidate.interface.value,
        "mending": _mending_columns(candidate.mending),
    }


def _mending_columns(mending: Mending | None) -> dict[str, str | None]:
    return {
        "by": mending.by.value if mending else None,
        "failed_id": mending.failed_id if mending else None,
        "sibling_id": mending.sibling_id if mending else None,
        "changes": "\n".join(mending.changes) if mending else None,
    }


def _verdict_columns(evaluation: Evaluation | None) -> dict[str, Any]:
    verdict, timing = (evaluation.verdict, evaluation.timing) if evaluation else (None, None)
    interval = timing.speedup_ci95 if timing and evaluation and evaluation.speedup is not None else None
    precision = verdict.precision_class if verdict else None
    return {
        "status": evaluation.status.value if evaluation else None,
        "reason_code": evaluation.reason_code.value if evaluation else None,
        "reason": evaluation.reason if evaluation else None,
        "rel_error": _real(verdict.rel_error if verdict else None),
        "precision_class": precision.value if precision else None,
        "median_ms": _real(timing.median_ms if timing else None),
        "speedup": _real(evaluation.speedup if evaluation else None),
        "speedup_ci95": [float(bound) for bound in interval] if interval else None,
    }


def _real(value: float | None) -> float | None:
    return None if value is None else float(value)
