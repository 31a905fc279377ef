"""PyTorch's own times for a problem, and the floor below which no kernel gets."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from dataclasses import dataclass, field

from ridgeline.tools.records.codec import Record
from ridgeline.tools.records.problem import Device
from ridgeline.tools.records.reference_mode import EAGER_MODES, ReferenceMode
from ridgeline.tools.records.results import Timing
from ridgeline.tools.records.vocabulary import STRICTEST_FIRST, PrecisionClass


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline(Record):
    """PyTorch's own time for the problem in one configuration."""

    name: ReferenceMode
    precision_class: PrecisionClass | None  # None: eager itself fits no class
    median_ms: float | None  # None when it failed: `error` says why
    p10_ms: float | None = None
    p90_ms: float | None = None
    samples: int = 0
    rel_error: float | None = None
    error: str = ""
    was_killed: bool = False  # the judge or a compiler, from outside or by a crash: kept for the session alone
    was_busy: bool = False  # other programs took cores while it was timed
    stored_on: str | None = field(
        default=None, compare=False
    )  # when a kept one was measured, "" unknown; None: just now


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor(Record):
    """The roofline's lower bound for one problem on one device."""

    floor_ms: float  # hard: compulsory bytes over the measured bandwidth ceiling
    compute_floor_ms: float  # advisory: FLOPs over the measured arithmetic ceiling; 0.0 when unknown
    bound: str  # "memory" or "compute", whichever floor is higher
    bandwidth_gbps: float  # ceiling used, bytes read + written, 1e9 bytes a second
    gflops: float  # ceiling used
    unit: str = ""  # whose ceiling that is: "fp32", "tf32", "fp16"
    class_gflops: dict[str, float] = field(default_factory=dict)  # every unit's ceiling, by precision class

    @property
    def highest_ms(self) -> float:
        """Return the floor that `bound` names: no kernel that does the reference's operations is faster."""
        return max(self.floor_ms, self.compute_floor_ms)


def is_within(measured: PrecisionClass | None, loosest: PrecisionClass | None) -> bool:
    """Return whether a measured class is at least as precise as `loosest`; True where either is not a class of arithmetic."""
    if measured not in STRICTEST_FIRST or loosest not in (PrecisionClass.EXACT, *STRICTEST_FIRST):
        return True
    allowed = 0 if loosest is PrecisionClass.EXACT else STRICTEST_FIRST.index(loosest) + 1
    return measured in STRICTEST_FIRST[:allowed]


@dataclass(frozen=True, slots=True, kw_only=True)
class Baselines(Record):
    """PyTorch's own times for one problem, and the roofline floor."""

    device: Device
    entries: tuple[Baseline, ...]  # eager first
    floor: Floor
    pending: tuple[ReferenceMode, ...] = ()  # still to be measured, in order

    def eager_only(self) -> Baselines:
        """Return eager's times with TF32 off and on, and the floor."""
        return dataclasses.replace(self, entries=tuple(b for b in self.entries if b.name in EAGER_MODES), pending=())

    def reopened(self, known: Collection[ReferenceMode]) -> Baselines:
        """Return these with the modes whose measurement was killed pending once more, but for those in `known`."""
        killed = tuple(b for b in self.entries if b.was_killed and b.name not in known)
        entries = tuple(b for b in self.entries if b not in killed)
        return dataclasses.replace(self, entries=entries, pending=(*(b.name for b in killed), *self.pending))

    def stored(self) -> dict[str, str]:
        """Return by name when those that are kept from earlier were measured, "" where that is not known."""
        return {b.name: b.stored_on for b in self.entries if b.stored_on is not None}

    def best(self, loosest: PrecisionClass | None = None) -> Baseline | None:
        """Return the fastest baseline that ran, or None.

        With `loosest`, of those at least as precise as that class: an fp32 kernel does not compete with tf32's time.
        """
        ran = [b for b in self.entries if b.median_ms is not None and is_within(b.precision_class, loosest)]
        return min(ran, key=lambda b: b.median_ms or 0.0) if ran else None

    def eager_ms(self, precision_class: PrecisionClass | None = None) -> float | None:
        """Return the time of the eager that a kernel of this class is timed against; None where it has none.

        It is eager with TF32 for a reduced class, where that was measured.
        """
        is_reduced = precision_class is not None and precision_class.is_reduced
        modes = (ReferenceMode.EAGER_TF32, ReferenceMode.EAGER) if is_reduced else (ReferenceMode.EAGER,)
        times = {b.name: b.median_ms for b in self.entries}
        return next((found for mode in modes if (found := times.get(mode))), None)

    def steady_ms(self, timing: Timing, precision_class: PrecisionClass | None) -> float | None:
        """Return a kernel's time where eager takes what it takes here: a machine's speed drifts, the paired speedup does not.

        Eager is the one that the kernel was timed against; see `eager_ms`. Where either figure is missing it is the time as
        measured.
        """
        eager_ms = self.eager_ms(precision_class)
        return eager_ms / timing.speedup if eager_ms and timing.speedup else timing.median_ms
