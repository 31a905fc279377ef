"""An archive that travels: one file to take along, several merged into one, and training data as JSON lines.

In a merged file every id carries its search: "5e4c…/r1i2v0a0". A search keeps its ids however often and in whatever
order files are merged, so merging is idempotent.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ridgeline.checkpoints.archive import PIECES, Archive
from ridgeline.checkpoints.database import storage_errors, to_text
from ridgeline.checkpoints.lineage import finding
from ridgeline.checkpoints.result import finite, replace_file
from ridgeline.tools.errors import RunError
from ridgeline.tools.records import SCHEMA_VERSION, Candidate, Evaluation, Idea

# table -> (stored columns, primary key, columns and record fields that hold an id of the search)
_TABLES: dict[str, tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]] = {
    "ideas": (("id", "record", "stored_at"), ("id",), ("id", "parent_id", "second_parent_id")),
    "candidates": (("id", "record", "stored_at"), ("id",), ("id", "idea_id", "parent_id")),
    "evaluations": (
        ("candidate_id", "purpose", "record", "stored_at"),
        ("candidate_id", "purpose"),
        ("candidate_id",),
    ),
    **dict.fromkeys(PIECES, (("key", "candidate_id", "record", "stored_at"), ("key",), ("key", "candidate_id"))),
    "rounds": (("id", "record", "stored_at"), ("id",), ("id",)),
    "ledger": (("entry_id", "what", "cpu_s", "gpu_s", "wall_s", "stored_at"), ("entry_id",), ("entry_id",)),
    "model_calls": (
        (
            *("call_id", "state", "model", "prompt_sha256", "request", "reply"),
            *("error", "sent", "began_at", "ended_at", "lost_input_tokens", "lost_output_tokens", "lost_usd"),
        ),
        ("call_id",),
        ("call_id",),
    ),
    "prompt_mismatches": (
        ("call_id", "stored_sha256", "replayed_sha256", "seen_at"),
        ("call_id", "replayed_sha256"),
        ("call_id",),
    ),
}
_RUN_COLUMNS = ("search_id", "description", "baselines", "certificate", "record", "stored_at")


def export_archive(run: Path, out: Path) -> Path:
    """Write one compact file that holds all of a run's archive, also while the run goes on, and return its path.

    `out` is a file, or a folder in which the file is named after the run. The copy's run says when it was exported.

    Raises:
        StorageError: the run has no archive, or `out` cannot be written.
    """
    target = out / f"{run.resolve().name}.sqlite" if out.is_dir() else out
    with Archive.open(run, create=False) as archive, storage_errors(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".export-") as folder:
            copy = Path(folder) / "archive.sqlite"
            archive.database.copy_to(copy)
            with Archive.open(copy, create=False) as exported:
                now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
                exported.save_run({"exported_at": now, "exported_from": run.resolve().name})
                exported.database.leave_wal()
            os.replace(copy, target)
    return target


def merge_archives(into: Path, sources: Sequence[Path]) -> dict[str, int]:
    """Copy every search of `sources` (files or run folders) into the file `into`, made when missing.

    What is already there is brought up to date. Returns the number of searches and candidates that `into` then holds.

    Raises:
        RunError: a source holds no search.
        StorageError: a file is missing, damaged or cannot be written.
    """
    with Archive.open(into) as target:
        for source in sources:
            with Archive.open(source, create=False) as archive:
                _merge_one(target, archive)
        return {"searches": len(target.runs()), "candidates": len(target.candidates())}


def _merge_one(target: Archive, source: Archive) -> None:
    runs = source.database.query(f"SELECT {', '.join(_RUN_COLUMNS)} FROM runs ORDER BY rowid")
    searches = [row["search_id"] for row in runs]
    if not searches:
        raise RunError(f"{source.path}: holds no search yet; nothing to merge")
    with target.database.write() as rows:
        rows.table("runs").upsert_all(runs, pk="search_id")
        for table, (columns, primary_key, ids) in _TABLES.items():
            found = source.database.query(f"SELECT {', '.join(columns)} FROM {table} ORDER BY rowid")
            moved = [_namespaced(row, ids, searches, () if table in PIECES else ids) for row in found]
            rows.table(table).upsert_all(moved, pk=primary_key)


def _namespaced(
    row: dict[str, Any], columns: tuple[str, ...], searches: list[str], fields: tuple[str, ...]
) -> dict[str, Any]:
    """Return a row with the search named in the ids of these columns and of these fields of its record."""
    moved = {c: _with_search(v, searches) if c in columns else v for c, v in row.items()}
    if "record" in row:
        record = json.loads(row["record"])
        moved["record"] = to_text({k: _with_search(v, searches) if k in fields else v for k, v in record.items()})
    return moved


def _with_search(value: str | None, searches: list[str]) -> str | None:
    if value is None or value.partition("/")[0] in searches:
        return value
    return f"{searches[0]}/{value}"


def export_jsonl(run: Path, file: Path) -> int:
    """Write one JSON line a candidate to `file` and return how many; see schemas/candidate.json.

    `run` is a run folder, an exported or a merged file. Every line has every field with one type or null, so it loads
    as a Hugging Face dataset: `load_dataset("json", data_files=…)`.

    Raises:
        StorageError: the run has no archive, or `file` cannot be written.
    """
    with Archive.open(run, create=False) as archive:
        lines = [json.dumps(finite(line), ensure_ascii=False, allow_nan=False) for line in _lines(archive)]
    replace_file(file, "".join(line + "\n" for line in lines))
    return len(lines)


def _lines(archive: Archive) -> Iterator[dict[str, Any]]:
    runs = {run["search_id"]: run for run in archive.runs()}
    candidates = {c.id: c for c in archive.candidates()}
    ideas = {i.id: i for i in archive.ideas()}
    for candidate in candidates.values():
        search_id = candidate.id.partition("/")[0] if "/" in candidate.id else next(iter(runs), "")
        idea, parent = ideas.get(candidate.idea_id or ""), candidates.get(candidate.parent_id or "")
        yield (
            {"schema_version": SCHEMA_VERSION, "search_id": search_id}
            | _problem_columns(runs.get(search_id, {}))
            | _candidate_columns(candidate, idea, parent)
            | _verdict_columns(finding(archive, candidate.id))
        )


def _problem_columns(run: dict[str, Any]) -> dict[str, str]:
    device = run.get("device") or {}
    return {
        "problem": (run.get("problem") or {}).get("name", ""),
        "reference_source": run.get("reference_source", ""),
        "device": device.get("name", ""),
        "device_kind": device.get("kind", ""),
        "device_arch": device.get("arch", ""),
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
