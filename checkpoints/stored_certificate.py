"""The stored certificate, checked field by field when it is read.

A certificate is kept as the object of certificate.json. Fields that nothing reads, or that a certificate of an earlier
version lacks, are not missed.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from ridgeline.tools.records.codec import Record
from ridgeline.tools.records.results import Baseline, Comparison, Floor, OwnWork, Timing, Verdict

Facts = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Build(Record):
    key: str = ""
    flags: tuple[str, ...] = ()
    toolchain: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Device(Record):
    name: str = ""
    arch: str = ""
    driver: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Leader(Record):
    candidate_id: str
    speedup: float
    speedup_ci95: tuple[float, float] | None = None
    ratio: float
    ratio_ci95: tuple[float, float] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sanitizer(Record):
    build: str | None = None
    verdict: Verdict | None = None
    skipped: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Audit(Record):
    passed: bool
    reason: str
    verification: Verdict | None = None
    timings: tuple[Timing, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shape(Record):
    sizes: dict[str, int]
    status: str
    reason: str
    rel_error: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _OtherShapes(Record):
    skipped: str = ""
    shapes: tuple[_Shape, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _FailedBefore(Record):
    candidate_id: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Certificate(Record):
    """The types of what `checkpoints/report/` and a resumed search read of a certificate."""

    passed: bool = False
    reason: str = ""
    labels: tuple[str, ...] = ()
    candidate: dict[str, Any] = dataclasses.field(default_factory=dict)
    build: _Build | None = None
    selection: tuple[_Leader, ...] = ()
    verification: Verdict | None = None
    sanitizer: _Sanitizer | None = None
    timings: tuple[Timing, ...] = ()
    baselines: tuple[Baseline, ...] = ()
    floor: Floor | None = None
    fraction_of_floor: float | None = None
    speedup_vs_best: float | None = None
    audit: _Audit | None = None
    seed_kernel: str | None = None
    versus_seed: Comparison | None = None
    own_work: OwnWork | None = None
    other_shapes: _OtherShapes | None = None
    failed_before: tuple[_FailedBefore, ...] = ()
    not_done: dict[str, str] = dataclasses.field(default_factory=dict)
    seconds: dict[str, float] = dataclasses.field(default_factory=dict)
    date: str = ""
    problem: str = ""
    tolerance: str = ""
    device: _Device | None = None
    cores_in_use_by_others: float | None = None
    versions: dict[str, str] | None = None
    hashes: dict[str, str] | None = None


def certifies(certificate: Facts | None, candidate_id: str | None) -> bool:
    """Say whether this certificate passed and is this candidate's; not where either is missing."""
    if certificate is None or candidate_id is None:
        return False
    return bool(certificate.get("passed")) and certificate.get("candidate", {}).get("id") == candidate_id


def failures_of(certificate: Facts | None) -> dict[str, str]:
    """Return the kernels whose certification was tried and failed, with the reason, in the order tried."""
    if certificate is None:
        return {}
    failures = {each["candidate_id"]: each["reason"] for each in certificate.get("failed_before", ())}
    tried = certificate.get("candidate", {}).get("id")
    if tried and not certifies(certificate, tried):
        failures.setdefault(tried, certificate.get("reason", ""))
    return failures


def checked_certificate(stored: Facts) -> Facts:
    """Return a certificate as it was stored, infinities as numbers again.

    Raises:
        AttributeError, KeyError, TypeError, ValueError: a field is not what a certificate holds.
    """
    checked: Facts = _with_numbers(stored, _Certificate.from_json(stored))
    return checked


def _with_numbers(stored: Any, read: Any) -> Any:
    """Return `stored` with the texts "inf" and "nan" replaced where `read` holds the number."""
    if isinstance(read, Record):
        names = [f.name for f in dataclasses.fields(read) if f.name in stored]
        return stored | {name: _with_numbers(stored[name], getattr(read, name)) for name in names}
    if isinstance(read, dict):
        return {name: _with_numbers(stored[name], value) for name, value in read.items()}
    if isinstance(read, tuple):
        return [_with_numbers(*each) for each in zip(stored, read, strict=True)]
    return read if isinstance(read, float) else stored
