"""The changes by which single trials differ from others, as far as the reference takes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ridgeline.tools.judge.worker.call_form import Scalar
from ridgeline.tools.judge.worker.inputs.source import ArgumentKey
from ridgeline.tools.records.trial_names import NOMINAL, SCALARS


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialChanges:
    """The arguments that single trials change, and the scalars of the trial that has other ones."""

    alone: Mapping[str, tuple[ArgumentKey, ...]] = field(default_factory=dict)
    """What each `alone` trial has of another draw than its base."""
    alone_base: str = NOMINAL[1]
    signed: Mapping[str, frozenset[ArgumentKey]] = field(default_factory=dict)
    """Whose signs change, by trial of signs or part of one."""
    scalars: tuple[Scalar, ...] = ()
    """Those of the trial that has other ones; none until they are looked at."""

    def differing(self, other: TrialChanges) -> set[str]:
        """Return the trials that have other contents by the other changes."""
        if self.alone_base != other.alone_base:
            return {*self.alone, *self.signed, *other.alone, *other.signed, SCALARS}
        alone = {name for name in {*self.alone, *other.alone} if self.alone.get(name) != other.alone.get(name)}
        signed = {name for name in {*self.signed, *other.signed} if self.signed.get(name) != other.signed.get(name)}
        return alone | signed | ({SCALARS} if self.scalars != other.scalars else set())
