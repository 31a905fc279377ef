"""The reason why a candidate's result does not count."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

from ridgeline.tools.records.codec import Record
from ridgeline.tools.records.printable import printable
from ridgeline.tools.records.vocabulary import ReasonCode, Status


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding(Record):
    """A fault of a candidate: a code, which alone decides, and a sentence for a person or a model to act on."""

    code: ReasonCode
    reason: str

    @property
    def status(self) -> Status:
        """Return how the evaluation ends."""
        return self.code.status


class CandidateFault(Exception):
    """Carries a finding to where the verdict or the timing is made."""

    def __init__(self, code: ReasonCode, reason: str) -> None:
        self.finding = Finding(code=code, reason=printable(reason))  # part of it may be the candidate's own words
        self.contender: int | None = None  # of two candidates that take turns: 0 the first, 1 the second
        super().__init__(self.finding.reason)


@contextlib.contextmanager
def faults_of(contender: int | None) -> Iterator[None]:
    """Note on a fault that is raised within which of two candidates it is of, unless that was noted further inside."""
    try:
        yield
    except CandidateFault as fault:
        if fault.contender is None:
            fault.contender = contender
        raise
