"""The list of searches that `ridgeline show` prints of a merged archive."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from ridgeline.checkpoints.report.wording import ending
from ridgeline.checkpoints.storage.strict_json import finite
from ridgeline.tools.records.vocabulary import RunState
from ridgeline.tools.wording import counted, ratio_words

if TYPE_CHECKING:
    from rich.console import Console

    from ridgeline.checkpoints.archive import Archive
    from ridgeline.checkpoints.run_record import RunRecord

_KERNELS = "SELECT substr(id, 1, instr(id, '/') - 1) AS search, COUNT(*) AS kernels FROM candidates GROUP BY search"
"""In a merged archive ids carry their search: `5e4c…/r1i2v0a0`."""


def is_merged(archive: Archive) -> bool:
    """Say whether a file is one of `ridgeline merge`, of one search or of several, and no run's own archive."""
    return any(row["search"] for row in archive.database.query(_KERNELS)) or len(archive.runs()) > 1


def list_searches(console: Console, archive: Archive, *, as_json: bool) -> int:
    """Print every search of a merged archive in the order of its merges, with its kernels and its best one's figure."""
    kernels = {row["search"]: row["kernels"] for row in archive.database.query(_KERNELS)}
    entries = [_entry(archive, record, kernels.get(record.search_id, 0)) for record in archive.runs()]
    if as_json:
        sys.stdout.write(json.dumps(finite(entries), indent=2) + "\n")
        return 0
    for entry in entries:
        best = f"; best {_figure(entry)}{entry['best_id']}" if entry["best_id"] else ""
        on = f" on {entry['device']}" if entry["device"] else ""
        words = f"{entry['search']}  {entry['problem']}{on}: {_state_words(entry)}"
        console.print(f"{words}; {counted(entry['candidates'], 'kernel')}{best}", markup=False, soft_wrap=True)
    told = "show a run's own folder, or its export, for rounds, ideas and lineage; this file's tables are SQLite's"
    console.print(f"a merged archive: {told} (docs/contracts.md)", markup=False, soft_wrap=True)
    return 0


def _entry(archive: Archive, record: RunRecord, kernels: int) -> dict[str, Any]:
    best_id = f"{record.search_id}/{record.best_id}" if record.best_id else None
    found = archive.own_evaluation(best_id) if best_id else None
    return {
        "search": record.search_id,
        "problem": record.problem_name,
        "device": record.device_name,
        "state": record.state,
        "reason": record.stop_reason or None,
        "candidates": kernels,
        "best_id": best_id,
        "speedup": found.speedup if found else None,
        "speedup_ci95": found.speedup_interval if found else None,
    }


def _figure(entry: dict[str, Any]) -> str:
    return f"{ratio_words(entry['speedup'], entry['speedup_ci95'], unit='eager')}: " if entry["speedup"] else ""


def _state_words(entry: dict[str, Any]) -> str:
    """Return how a search stood when it was merged: a copy of one that ran says nothing of now."""
    if entry["state"] in (None, RunState.RUNNING):
        return "not over when it was merged"
    return ending(entry["state"], entry["reason"])
