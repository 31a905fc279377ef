"""The files of a finished or stopped run: best kernel, certificate, report and result.json."""

from __future__ import annotations

import shlex
import time
from pathlib import Path
from typing import Any

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.report.certificate import render_certificate
from ridgeline.checkpoints.report.page import render_report
from ridgeline.checkpoints.report.wording import ending
from ridgeline.checkpoints.result import BestKernel, build_result, choose_best
from ridgeline.checkpoints.runs.folders import INTERRUPTED
from ridgeline.checkpoints.storage.own_files import replace_file
from ridgeline.checkpoints.storage.strict_json import finite, pretty
from ridgeline.tools.records.vocabulary import RunState


def write_run_outputs(run_dir: Path, archive: Archive, *, state: str | None = None) -> dict[str, Any]:
    """Write best.cpp or best.cu, certificate.json and .md, report.html and last result.json; return the last's content.

    `state` is how the search ended, where the archive does not say so yet.
    Each file is replaced as a whole: a reader, a kill or a full disk never leaves half of one.

    Raises:
        StorageError: the folder cannot be written or the disk is full; the earlier files are as they were.
    """
    result = build_result(archive) | ({"state": state} if state else {})
    best = choose_best(archive)
    if best:
        replace_file(run_dir / best.file_name, best.candidate.source)
    if certificate := archive.certificate():
        replace_file(run_dir / "certificate.json", pretty(finite(archive.certificate_json())))
        replace_file(run_dir / "certificate.md", render_certificate(certificate, best=BestKernel.read(result)))
    state_words = ending(result["state"], archive.run().stop_reason)
    replace_file(run_dir / "report.html", render_report(archive, result, state_words=state_words))
    replace_file(run_dir / "result.json", pretty(result))
    return result


def renew_report(run_dir: Path, archive: Archive) -> None:
    """Write the report of a search that goes on anew where an earlier session left one, with a notice that it is of now.

    It says what was so at a time: a kill leaves it.

    Raises:
        StorageError: the folder cannot be written.
    """
    at = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())
    notice = (
        f"The search was going on at {at}, when this page was written: what was found since is missing. It is written anew as "
        f"each round ends; ridgeline show {shlex.quote(str(run_dir.absolute()))} --web shows the search as it is."
    )
    _rewrite(run_dir, archive, state_words=f"running at {at}", notice=notice)


def end_report(run_dir: Path, archive: Archive) -> None:
    """Write the report anew where there is one, with how its search ended that writes no other file: by a fault, say.

    Raises:
        StorageError: the folder cannot be written.
    """
    run = archive.run()
    is_cut = run.state in (None, RunState.RUNNING)
    words = INTERRUPTED if is_cut else ending(run.state or "", run.stop_reason)
    _rewrite(run_dir, archive, state_words=f"{words}; ended by: {run.ended_by}" if run.ended_by else words)


def _rewrite(run_dir: Path, archive: Archive, *, state_words: str, notice: str = "") -> None:
    if not (run_dir / "report.html").is_file():
        return
    page = render_report(archive, build_result(archive), state_words=state_words, notice=notice)
    replace_file(run_dir / "report.html", page)
