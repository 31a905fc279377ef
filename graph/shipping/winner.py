"""The kernel of a run that is to leave it: its source, its certificate and what is known of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.history.lineage import certificate_of, lineage
from ridgeline.checkpoints.result import Best, build_result, choose_best
from ridgeline.checkpoints.run_record import RunRecord
from ridgeline.checkpoints.storage.errors import record_errors
from ridgeline.tools.errors import RunError
from ridgeline.tools.records.error_map import Measure
from ridgeline.tools.records.precision import CRFM_TOLERANCE, NOMINAL_GATE, accepted_classes
from ridgeline.tools.records.problem import ArgSpec, Description, Device
from ridgeline.tools.records.vocabulary import Interface, PrecisionClass, Role


@dataclass(frozen=True, slots=True, kw_only=True)
class Winner:
    """A run's best kernel with all that is shipped of the run."""

    run: str  # the folder's name
    record: RunRecord
    problem: str
    interface: Interface
    tolerance: PrecisionClass
    device: Device
    reference: str  # source, with the device's sizes
    description: Description
    best: Best
    figures: dict[str, Any]  # result.json's `best`
    certificate: dict[str, Any] | None  # passed or not
    lineage: list[dict[str, Any]]

    @property
    def is_certified(self) -> bool:
        """Say whether every required step of its certificate passed."""
        return bool(self.certificate and self.certificate.get("passed"))

    def limit(self, output: ArgSpec) -> tuple[str, float]:
        """Return how the judge measures an output's error, and the largest that the kernel was let through with.

        It is the limit of the class that was measured, on nominal inputs, and a trial's own where these lose digits in
        every kernel alike.
        """
        if output.dtype not in _FLOATS:
            return "exact", 0.0
        verdict, measured = self.best.evaluation.verdict, self.best.evaluation.precision_class
        if measured is PrecisionClass.CRFM:
            return Measure.CRFM.value, CRFM_TOLERANCE
        if (
            measured is None or measured not in NOMINAL_GATE
        ):  # exact, or never measured: the strictest that its outputs can hold
            dtypes = tuple(arg.dtype for arg in self.description.signature.with_role(Role.OUTPUT))
            measured = accepted_classes(self.tolerance, dtypes)[0]
        gate = NOMINAL_GATE[measured]
        if verdict is not None and verdict.rel_error is not None and verdict.rel_error > gate:
            gate = max([gate, *(t.gate for t in verdict.trials if t.name.startswith("nominal") and t.passed)])
        return Measure.OUTPUT.value, gate


_FLOATS = ("float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2")


def read_winner(run: Path, *, takes_uncertified: bool = False) -> Winner:
    """Return a run's winner.

    Raises:
        RunError: the run has none, or it has no certificate that passed and `takes_uncertified` does not allow that.
        StorageError: the archive is damaged.
    """
    with Archive.open_read_only(run) as archive:
        winner = winner_of(archive, run.resolve().name)
        if winner is None:
            raise RunError(f"{run}: has no winner to ship: no kernel was right and faster")
    if not winner.is_certified and not takes_uncertified:
        kernel = winner.best.candidate.id
        raise RunError(f"{run}: {kernel} is not certified{_why(winner)}; --uncertified ships it all the same")
    return winner


def winner_of(archive: Archive, run: str) -> Winner | None:
    """Return the best kernel of the search of an archive, certified or not; None where no kernel was right.

    Raises:
        RunError: the archive does not hold what was searched for.
        StorageError: it is damaged.
    """
    record, best, description = archive.run(), choose_best(archive), archive.description()
    if best is None:
        return None
    if description is None or record.device is None or record.problem is None or record.reference_source is None:
        raise RunError(f"{run}: does not hold what it searched for; it may come from an older version: run it anew")
    with record_errors(archive.path):
        return Winner(
            run=run,
            record=record,
            problem=record.problem_name,
            interface=Interface(record.problem["interface"]),
            tolerance=PrecisionClass(record.problem["tolerance"]),
            device=record.device,
            reference=record.reference_source,
            description=description,
            best=best,
            figures=build_result(archive)["best"],
            certificate=certificate_of(archive, best.candidate.id),
            lineage=lineage(archive, best.candidate.id),
        )


def _why(winner: Winner) -> str:
    reason = (winner.certificate or {}).get("reason")
    if reason:
        return f" ({reason})"
    return " (its times are replayed)" if winner.record.replay and winner.record.replay.get("times") else ""
