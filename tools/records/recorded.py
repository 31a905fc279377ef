"""One measurement of a recorded search, found again by what was measured and not by where or with which compiler."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

from ridgeline.tools.records.codec import Record
from ridgeline.tools.records.vocabulary import Purpose

FAILURE = "Failure"
"""In the place of a result's name: the engine failed on the kernel, and the result holds the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedMeasurement(Record):
    """The result of one step of one kernel; of a comparison, of two."""

    what: str  # the result's class: "Build", "Verdict", "Timing", "Profile", "Comparison"; or FAILURE
    source_sha256: str
    second_sha256: str = ""  # of a comparison's second kernel
    purpose: Purpose | None = None  # None: of a build, which serves every purpose
    result: dict[str, Any]

    @property
    def key(self) -> MeasurementKey:
        """Return what the measurement is found by."""
        return (self.what, self.source_sha256, self.second_sha256, self.purpose)


MeasurementKey = tuple[str, str, str, Purpose | None]


def source_hash(source: str) -> str:
    """Return the hash that a recorded kernel is known by."""
    return hashlib.sha256(source.encode()).hexdigest()
