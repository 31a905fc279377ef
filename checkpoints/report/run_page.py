"""The page of a run as it is now, also of one that is searched in meanwhile: what a server and a notebook show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.history.progress import Progress, progress
from ridgeline.checkpoints.report.page import render_report
from ridgeline.checkpoints.report.wording import ending
from ridgeline.checkpoints.result import build_result
from ridgeline.checkpoints.runs.folders import state_now
from ridgeline.checkpoints.stored_certificate import StoredCertificate
from ridgeline.tools.records.vocabulary import RunState


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPage:
    """One run, read at one instant."""

    state: str  # as `state_now` has it
    result: dict[str, Any]  # what result.json would hold
    certificate: StoredCertificate | None  # passed or not, and of whatever kernel
    progress: Progress
    html: str


def run_page(archive: Archive, *, version: str = "") -> RunPage:
    """Return the page of the run that an archive lies in; `version` as `render_report` takes it."""
    with archive.database.snapshot():
        run, result, how_far = archive.run(), build_result(archive), progress(archive)
        state = state_now(archive.path.parent, run)
        html = render_report(
            archive,
            result,
            state_words=ending(state, run.stop_reason),
            version=version,
            now=how_far if state == RunState.RUNNING else None,
        )
        return RunPage(state=state, result=result, certificate=archive.certificate(), progress=how_far, html=html)
