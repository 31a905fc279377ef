"""Run folders as a client names them, and how far a run is, read from its archive.

Whoever searches in the folder need not be this server's: a search that a user began by hand is read and answered too.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.calls.journal import Journal
from ridgeline.checkpoints.report.wording import ending
from ridgeline.checkpoints.result import build_result
from ridgeline.checkpoints.runs.folders import (
    INTERRUPTED,
    RESUMABLE,
    find_run,
    is_locked,
    read_run,
    run_folders,
    run_named,
    state_now,
    stored_state,
)
from ridgeline.checkpoints.storage.own_files import no_link_opener
from ridgeline.checkpoints.stored_certificate import certifies
from ridgeline.graph.mcp.answers import FoundKernel, RunEntry, RunList, RunStatus
from ridgeline.graph.models.prices import is_batch
from ridgeline.graph.session.arguments import checked
from ridgeline.tools.errors import RunError
from ridgeline.tools.records.printable import printable
from ridgeline.tools.records.vocabulary import RunState

LOG = "run.log"
MOST_LISTED = 20
_TAIL_BYTES = 4096
_LONGEST_LINE = 400


def find(runs_dir: Path, named: str) -> Path:
    """Return the absolute folder of a run: its absolute path, or its name in `runs_dir`, the name's beginning, its id.

    Raises:
        RunError: there is none; or the path is a relative one, which says nothing where client and server differ.
    """
    place = place_of(runs_dir, named)
    found = find_run(runs_dir, place) if Path(named).is_absolute() else run_named(runs_dir, named)
    return Path(os.path.abspath(found))


def place_of(runs_dir: Path, named: str) -> Path:
    """Return the path that a client means by a name in `runs_dir` or by an absolute path, whether or not a run is there.

    Raises:
        RunError: it is neither.
    """
    checked("run", named)
    path = Path(named)
    if path.is_absolute():
        return path
    if len(path.parts) != 1 or named in {".", ".."} or named.startswith("-"):
        raise RunError(f"run {named!r}: give the name of a folder in {runs_dir}, or an absolute path")
    return runs_dir / path


def newest_runs(runs_dir: Path) -> RunList:
    """Return the newest runs of the folder."""
    folders = run_folders(runs_dir)
    newest = [(run, read_run(run)) for run in reversed(folders[-MOST_LISTED:])]
    entries = [
        RunEntry(run=str(run), name=run.name, problem=record.problem_name, state=short_state(state_now(run, record)))
        for run, record in newest
        if record is not None
    ]
    return RunList(runs_dir=str(runs_dir), runs=entries, older=max(0, len(folders) - MOST_LISTED))


def read_status(run: Path) -> RunStatus:
    """Return how far a run is. Nothing is locked or written.

    Raises:
        RunError: the archive is gone or damaged.
    """
    with Archive.open_read_only(run) as archive:
        record, result = archive.run(), build_result(archive)
        certificate, rounds_done = archive.certificate(), len(archive.rounds())
        waiting = [call.call_id for call in Journal(archive).calls("waiting") if not is_batch(call.model)]
    state = state_now(run, record)
    is_running = state == RunState.RUNNING or is_locked(run)
    entry = result["best"]
    best = found_kernel(entry, is_certified=certifies(certificate, entry["id"] if entry else None))
    status = RunStatus(
        run=str(run),
        name=run.name,
        problem=record.problem_name,
        device=record.device_name or "",
        models=list(record.models or ()),
        state=short_state(state),
        is_running=is_running,
        is_resumable=not is_running and (state == INTERRUPTED or state in RESUMABLE),
        says=ending(state, record.stop_reason),
        rounds_done=rounds_done,
        rounds=record.max_rounds or (record.settings or {}).get("rounds"),
        candidates=result["candidates"],
        best=best,
        waiting=waiting,
        last_event=last_line(run / LOG),
        error=(record.ended_by or None) if not is_running else None,
        tokens=result["tokens"],
        usd=result["usd"],
        wall_s=result["wall_s"],
        log=str(run / LOG),
        seen="",
    )
    return with_mark(status)


def with_mark(status: RunStatus) -> RunStatus:
    """Return a status with the text that tells two of them apart where an agent has something to do or to know."""
    best = f"{status.best.id}{'+' * status.best.certified}" if status.best else ""
    return status.model_copy(update={"seen": _mark(status.state, status.rounds_done, best, status.waiting)})


def _mark(state: str, rounds: int, best: str, waiting: Sequence[str]) -> str:
    return f"{state} {rounds} {best} {','.join(waiting)}"


def short_state(state: str) -> str:
    """Return a run's state as one word, that of INTERRUPTED without what can be done."""
    return INTERRUPTED.partition(",")[0] if state == INTERRUPTED else RunState(state).value


def found_kernel(entry: dict[str, Any] | None, *, is_certified: bool) -> FoundKernel | None:
    """Return the best kernel of a result.json; None where no kernel stood up as right."""
    if not entry:
        return None
    return FoundKernel.model_validate(entry | {"certified": is_certified})


def fingerprint(run: Path) -> tuple[object, ...]:
    """Return what differs once something was stored or logged in a run, or its process came or went."""
    return stored_state(run, LOG)


def last_line(log: Path) -> str:
    """Return the last line of a log, "" without one; a link is not followed: the folder may be a stranger's."""
    try:
        with open(log, "rb", opener=no_link_opener) as opened:
            return last_line_of(opened)[:_LONGEST_LINE]
    except OSError:
        return ""


def last_line_of(opened: IO[bytes]) -> str:
    """Return the last line of a file that is not empty, fit to be printed; "" without one."""
    opened.seek(max(0, os.fstat(opened.fileno()).st_size - _TAIL_BYTES))
    lines = opened.read().decode(errors="replace").splitlines()
    return printable(next((line.strip() for line in reversed(lines) if line.strip()), ""))


def uri_of(run: Path, part: str) -> str:
    """Return the URI of a run's report, certificate or source."""
    return f"ridgeline://runs/{quote(str(run), safe='')}/{part}"
