"""The best kernel of a run for those who use it: its source, its certificate and what is known of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.history.lineage import certificate_of, lineage
from ridgeline.checkpoints.result import Best, BestKernel, best_kernel, choose_best
from ridgeline.checkpoints.run_record import RunRecord
from ridgeline.checkpoints.storage.errors import record_errors
from ridgeline.checkpoints.stored_certificate import StoredCertificate, certifies
from ridgeline.tools.errors import RunError
from ridgeline.tools.records.error_map import Measure
from ridgeline.tools.records.precision import CRFM_TOLERANCE, NOMINAL_GATE, accepted_classes
from ridgeline.tools.records.problem import ArgSpec, Description, Device
from ridgeline.tools.records.vocabulary import Interface, PrecisionClass, Role


@dataclass(frozen=True, slots=True, kw_only=True)
class Winner:
    """A run's best kernel with all of the run that its users need."""

    run: str  # as messages name it
    record: RunRecord
    problem: str
    interface: Interface
    tolerance: PrecisionClass
    device: Device
    reference: str  # source, with the device's sizes
    description: Description
    best: Best
    figures: BestKernel
    certificate: StoredCertificate | None  # passed or not
    certificate_json: dict[str, Any] | None  # as certificate.json has it
    lineage: list[dict[str, Any]]

    @property
    def is_certified(self) -> bool:
        """Say whether every required step of its certificate passed."""
        return certifies(self.certificate, self.best.candidate.id)

    @property
    def certified_flags(self) -> tuple[str, ...]:
        """Return the flags of its certificate's build; none where it has no certificate, or that kept none."""
        return self.certificate.build.flags if self.certificate and self.certificate.build else ()

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
        # exact, or never measured: the strictest that its outputs can hold
        if measured is None or measured not in NOMINAL_GATE:
            dtypes = tuple(arg.dtype for arg in self.description.signature.with_role(Role.OUTPUT))
            measured = accepted_classes(self.tolerance, dtypes)[0]
        gate = NOMINAL_GATE[measured]
        if verdict is not None and verdict.rel_error is not None and verdict.rel_error > gate:
            gate = max([gate, *(t.gate for t in verdict.trials if t.name.startswith("nominal") and t.passed)])
        return Measure.OUTPUT.value, gate


_FLOATS = ("float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2")
_SEARCH_ANEW = "it may come from an older version: run it anew"


def winner_of(archive: Archive, run: str, *, advice: str = _SEARCH_ANEW) -> Winner | None:
    """Return the best kernel of the search of an archive, certified or not; None where there is no right one.

    `advice` ends the message on an archive that lacks something.

    Raises:
        RunError: the archive does not hold what was searched for.
        StorageError: it is damaged.
    """
    record, best, description = archive.run(), choose_best(archive), archive.description()
    if best is None:
        return None
    if description is None or record.device is None or record.problem is None or record.reference_source is None:
        raise RunError(f"{run}: does not hold what it searched for; {advice}")
    certificate = certificate_of(archive, best.candidate.id)
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
            figures=best_kernel(archive, best, archive.baselines()),
            certificate=certificate,
            certificate_json=archive.certificate_json() if certificate else None,
            lineage=lineage(archive, best.candidate.id),
        )
