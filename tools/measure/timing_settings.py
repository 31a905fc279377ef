"""The extent of one timing: how long it goes on, and how many outputs it checks."""

from __future__ import annotations

from dataclasses import dataclass, field

from ridgeline.tools.measure.statistics import StoppingRule
from ridgeline.tools.measure.timed_device import TIMED_DEVICES
from ridgeline.tools.measure.timed_side import WarmUp
from ridgeline.tools.records.vocabulary import DeviceKind, Purpose

LONG_BLOCK_S = 0.03
"""What a block lasts where few kernels are timed, and long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimingSettings:
    """Extent of one timing; `for_purpose` gives the usual settings."""

    rule: StoppingRule
    warm_up: WarmUp = field(default_factory=WarmUp)
    block_s: float = 0.012  # what a block should last
    checks: int = 1  # outputs compared after each candidate block
    idle_s: float = 0.1  # how long a candidate is watched while it has nothing to do
    slowdown_alone: float = 1.0  # GPU: how many times as slow as usual contents are renewed with no candidate there

    @classmethod
    def for_purpose(cls, purpose: Purpose, kind: DeviceKind) -> TimingSettings:
        """Return the settings of a purpose: search and tune take 2 to 3 s for a kernel of 1 ms, certify about 10 s."""
        block_s = TIMED_DEVICES[kind].search_block_s
        if purpose is Purpose.CERTIFY:
            rule = StoppingRule(smallest=20, largest=200, time_s=8.0, patience_s=40.0)
            return cls(rule=rule, block_s=LONG_BLOCK_S, checks=3, idle_s=0.5)
        if purpose is Purpose.EVALUATE:
            rule = StoppingRule(smallest=10, largest=60, time_s=5.0, patience_s=30.0)
            return cls(rule=rule, block_s=block_s, checks=2)
        rule = StoppingRule(smallest=10, largest=24, time_s=2.0, patience_s=10.0, give_up_below=0.8)
        return cls(rule=rule, block_s=block_s)
