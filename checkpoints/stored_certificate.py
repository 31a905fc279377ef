"""The stored certificate as a record, and as certificate.json has it.

A certificate is kept as the object of certificate.json. Fields that nothing reads, or that a certificate of an earlier
version lacks, are not missed.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from ridgeline.tools.records.baselines import Baseline, Floor
from ridgeline.tools.records.codec import Record
from ridgeline.tools.records.problem import with_skipped_apart
from ridgeline.tools.records.results import Comparison, OwnWork, Timing, Verdict
from ridgeline.tools.records.vocabulary import SearchOutcome

Facts = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class CertifiedBuild(Record):
    """The build that the steps measured."""

    key: str = ""
    flags: tuple[str, ...] = ()
    toolchain: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CertifiedDevice(Record):
    """The device that the certificate was given on."""

    name: str = ""
    arch: str = ""
    driver: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedLeader(Record):
    """A kernel that the search could not tell apart from the winner; `ratio` is over the search's first."""

    candidate_id: str
    speedup: float
    speedup_ci95: tuple[float, float] | None = None
    ratio: float
    ratio_ci95: tuple[float, float] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sanitized(Record):
    """The findings of the sanitizers of `build`, or why none could look."""

    build: str | None = None
    verdict: Verdict | None = None
    skipped: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Audited(Record):
    """The second look at a gain too large to be believed."""

    passed: bool
    reason: str
    verification: Verdict | None = None
    timings: tuple[Timing, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedShape(Record):
    """The winner's end at a shape that it was not asked for."""

    sizes: dict[str, int]
    status: str
    reason: str
    rel_error: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedShapes(Record):
    """The shapes that were tried, or why none was."""

    skipped: str = ""
    shapes: tuple[TriedShape, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedBefore(Record):
    """A kernel that was tried before the winner and got no certificate."""

    candidate_id: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CertifiedKernel(Record):
    """The candidate that the certificate is of."""

    id: str = ""
    parent_id: str | None = None
    tunables: dict[str, Any] = dataclasses.field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredCertificate(Record):
    """A certificate, passed or not, as reports, results and a resumed search read it."""

    outcome: SearchOutcome | None = None  # of the search
    passed: bool = False
    reason: str = ""
    labels: tuple[str, ...] = ()
    candidate: CertifiedKernel = CertifiedKernel()
    build: CertifiedBuild | None = None
    selection: tuple[ComparedLeader, ...] = ()
    verification: Verdict | None = None
    sanitizer: Sanitized | None = None
    timings: tuple[Timing, ...] = ()
    baselines: tuple[Baseline, ...] = ()
    floor: Floor | None = None
    fraction_of_floor: float | None = None
    speedup_vs_best: float | None = None
    audit: Audited | None = None
    seed_kernel: str | None = None
    versus_seed: Comparison | None = None
    own_work: OwnWork | None = None
    other_shapes: TriedShapes | None = None
    failed_before: tuple[TriedBefore, ...] = ()
    not_done: dict[str, str] = dataclasses.field(default_factory=dict)
    seconds: dict[str, float] = dataclasses.field(default_factory=dict)
    date: str = ""  # when it was begun
    ended_at: str = ""
    problem: str = ""
    tolerance: str = ""
    device: CertifiedDevice | None = None
    cores_in_use_by_others: float | None = None
    versions: dict[str, str] | None = None
    hashes: dict[str, str] | None = None


def certifies(certificate: StoredCertificate | None, candidate_id: str | None) -> bool:
    """Say whether this certificate passed and is this candidate's; not where either is missing."""
    if certificate is None or candidate_id is None:
        return False
    return certificate.passed and certificate.candidate.id == candidate_id


def failures_of(certificate: StoredCertificate | None) -> dict[str, str]:
    """Return the kernels whose certification was tried and failed, with the reason, in the order tried."""
    if certificate is None:
        return {}
    failures = {each.candidate_id: each.reason for each in certificate.failed_before}
    tried = certificate.candidate.id
    if tried and not certificate.passed:
        failures.setdefault(tried, certificate.reason)
    return failures


def certificate_content(stored: Facts) -> Facts:
    """Return the content of certificate.json as it was stored, infinities as numbers again.

    Raises:
        AttributeError, KeyError, TypeError, ValueError: a field is not what a certificate holds.
    """
    content: Facts = _with_numbers(stored, StoredCertificate.from_json(stored))
    return content


def _with_numbers(stored: Any, read: Any) -> Any:
    """Return `stored` with the texts "inf" and "nan" replaced where `read` holds the number."""
    if isinstance(read, Verdict):
        stored = with_skipped_apart(stored)
    if isinstance(read, Record):
        names = [f.name for f in dataclasses.fields(read) if f.name in stored]
        return stored | {name: _with_numbers(stored[name], getattr(read, name)) for name in names}
    if isinstance(read, dict):
        return {name: _with_numbers(stored[name], value) for name, value in read.items()}
    if isinstance(read, tuple):
        return [_with_numbers(*each) for each in zip(stored, read, strict=True)]
    return read if isinstance(read, float) else stored
