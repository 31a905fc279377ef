"""A run's result: the files in its folder, and what a caller gets of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ridgeline.checkpoints.calls.journal import Journal
from ridgeline.checkpoints.history.chosen import chosen_words
from ridgeline.checkpoints.history.lineage import certificate_of
from ridgeline.checkpoints.history.measured_again import measured_again_words
from ridgeline.checkpoints.history.progress import failed_kernels, unjudged
from ridgeline.checkpoints.result import BestKernel
from ridgeline.checkpoints.stored_certificate import certifies, failures_of

if TYPE_CHECKING:
    from ridgeline.checkpoints.archive import Archive
    from ridgeline.tools.records.vocabulary import RunState


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """End of a search; everything that was measured is in `run_dir`."""

    run_dir: Path
    state: RunState  # its search's outcome, or stopped, or waiting
    rounds: int
    best_id: str | None
    best_source: str | None = field(repr=False)
    best_source_path: Path | None
    speedup: float | None  # eager / best
    certified: bool
    waiting: int = 0  # requests that wait for an answer
    batched: int = 0  # of these, those for a batch of their provider
    refused: Mapping[str, str] = field(default_factory=dict)  # of these, whose last answer was refused: why, by id
    unjudged: int = 0  # kernels without a verdict: of a search in state `waiting`, those that wait for its device
    failed: Sequence[
        str
    ] = ()  # kernels that the machine failed on, which have no verdict: a resumed search judges them
    uncertified: Mapping[str, str] = field(default_factory=dict)  # kernels whose certificate failed: why, by id
    chosen: str = ""  # why another kernel, whose own timing ranks first, is not the best one
    measured_again: str = ""  # both figures, where the certificate's is outside of the search's interval
    written_input: str = ""  # of the reference, of which no package can be made then
    reason: str = ""  # the stop rule that ended it, in words
    certificate_ms: Mapping[str, float | None] = field(
        default_factory=dict
    )  # PyTorch's times of the best one's certificate
    report: dict[str, Any] = field(repr=False)  # the content of result.json

    @property
    def best(self) -> BestKernel | None:
        """Return the best kernel with its figures, as `report` has them."""
        return BestKernel.read(self.report)


def write_result(run_dir: Path, archive: Archive, state: RunState) -> SearchResult:
    """Write the best source, its header, the report and last result.json; return what a caller wants of them."""
    from ridgeline.checkpoints.report.outputs import write_run_outputs
    from ridgeline.graph.shipping.use_kernel import write_use_kernel

    _write_header(run_dir, archive)
    write_use_kernel(run_dir, archive)
    report = write_run_outputs(run_dir, archive, state=state.value)
    best = BestKernel.read(report)
    best_id = best.id if best else None
    journal, described = Journal(archive), archive.description()
    calls, certificate = journal.totals(), archive.certificate()
    of_best = certificate_of(archive, best_id) if best_id else None
    return SearchResult(
        run_dir=run_dir,
        state=state,
        waiting=calls.waiting,
        batched=calls.batched,
        refused=journal.refused(),
        unjudged=len(unjudged(archive)),
        failed=failed_kernels(archive),
        uncertified=failures_of(certificate),
        chosen=chosen_words(archive, best_id),
        measured_again=measured_again_words(archive, best_id),
        written_input=described.signature.written_input if described else "",
        reason=archive.run().stop_reason or "",
        certificate_ms={entry.name: entry.median_ms for entry in of_best.baselines} if of_best else {},
        rounds=int(report.get("rounds", 0)),
        best_id=best_id,
        best_source=archive.candidate(best_id).source if best_id else None,
        best_source_path=run_dir / best.source_path if best and best.source_path else None,
        speedup=best.speedup if best else None,
        certified=certifies(certificate, best_id),
        report=report,
    )


def _write_header(run_dir: Path, archive: Archive) -> None:
    """Write problem.h beside the best kernel, which includes it: with it the source compiles anywhere."""
    from ridgeline.checkpoints.storage.errors import record_errors
    from ridgeline.checkpoints.storage.own_files import replace_file
    from ridgeline.tools.build.interfaces import problem_header
    from ridgeline.tools.records.vocabulary import Interface

    description, run = archive.description(), archive.run()
    if description is None or run.problem is None or run.device is None:
        return
    with record_errors(archive.path):
        interface = Interface(run.problem["interface"])
    if interface.has_model:  # its candidates include no header
        return
    with record_errors(archive.path):  # a signature that no reference has
        header = problem_header(description.signature, run.device.kind, interface)
    replace_file(run_dir / "problem.h", header)
