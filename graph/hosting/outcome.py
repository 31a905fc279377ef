"""The few values that a search leaves in a host's state, and where its files are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typing_extensions import TypedDict

from ridgeline.tools.errors import InputError, RidgelineError
from ridgeline.tools.records.told_error import ToldError

if TYPE_CHECKING:
    from ridgeline.graph.session.outputs import SearchResult

REFUSED, FAILED = "refused", "failed"
"""Outcomes of a search that an error ended: the user's to mend, or the machine's."""


class HostedError(TypedDict):
    """An error as a value."""

    code: str  # the name of its class in `ridgeline`: ProblemError, EngineError, …
    message: str  # one line


class HostedOutput(TypedDict, total=False):
    """The keys that the node writes. All each time: what an earlier search of the thread left is replaced."""

    outcome: str  # how the search ended, or REFUSED or FAILED, which `error` explains
    reason: str  # in words, where a stop rule ended it
    round: int
    run_dir: str | None  # absolute, as are the paths
    best_id: str | None
    best_speedup: float | None
    best_speedup_ci95: list[float] | None
    certified: bool
    best_source_path: str | None
    certificate_path: str | None
    result_path: str | None
    report_path: str | None
    error: HostedError | None


def output_of(result: SearchResult) -> HostedOutput:
    """Return the values of a search that ended; its folder is made absolute, which may ask the disk."""
    run_dir = result.run_dir.absolute()
    best, source_path = result.best, result.best_source_path
    interval = best.speedup_ci95 if best else None
    certificate = run_dir / "certificate.json"
    return HostedOutput(
        outcome=result.state.value,
        reason=result.reason,
        round=result.rounds,
        run_dir=str(run_dir),
        best_id=result.best_id,
        best_speedup=result.speedup,
        best_speedup_ci95=list(interval) if interval else None,
        certified=result.certified,
        best_source_path=str(source_path.absolute()) if source_path else None,
        certificate_path=str(certificate) if certificate.is_file() else None,
        result_path=str(run_dir / "result.json"),
        report_path=str(run_dir / "report.html"),
        error=None,
    )


def refused_output(error: RidgelineError, run_dir: str | None) -> HostedOutput:
    """Return the values of a search that an error ended; with a folder it can go on there."""
    told = ToldError.of(error)
    return HostedOutput(
        outcome=REFUSED if isinstance(error, InputError) else FAILED,
        reason="",
        round=0,
        run_dir=run_dir,
        best_id=None,
        best_speedup=None,
        best_speedup_ci95=None,
        certified=False,
        best_source_path=None,
        certificate_path=None,
        result_path=None,
        report_path=None,
        error=HostedError(code=told.type, message=told.message),
    )
