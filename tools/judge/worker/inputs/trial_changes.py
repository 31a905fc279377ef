"""The changes by which single trials differ from others, as far as the reference takes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ridgeline.tools.judge.worker.call_form import Scalar
from ridgeline.tools.judge.worker.inputs.source import ArgumentKey
from ridgeline.tools.records.trial_names import FAR_CHOICES, NOMINAL

Share = tuple[ArgumentKey, ...]
"""An argument, or some of many."""


@dataclass(frozen=True, slots=True)
class Far:
    """The trial whose parameters and scalars that of far choices has."""

    kind: str
    scalars: tuple[Scalar, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialChanges:
    """The arguments that single trials change, and the scalars of those that have other ones."""

    alone: Mapping[str, tuple[ArgumentKey, ...]] = field(default_factory=dict)
    """What each `alone` trial has of another draw than its base."""
    alone_base: str = NOMINAL[1]
    signed: Mapping[str, frozenset[ArgumentKey]] = field(default_factory=dict)
    """Whose signs change, by trial of signs or part of one."""
    uneven: Mapping[str, tuple[tuple[Share, float], ...]] = field(default_factory=dict)
    """Of what one alone is larger, or smaller, by trial of UNEVEN, and by which part of the steps of the trial's size."""
    far: Far | None = None
    """What the trial of far choices has of another one."""
    scalars: Mapping[str, tuple[Scalar, ...]] = field(default_factory=dict)
    """All scalars, by trial that has other ones than the given."""

    def differing(self, other: TrialChanges) -> set[str]:
        """Return the trials that have other contents by the other changes."""
        known = _differing(self.scalars, other.scalars) | _differing(self.uneven, other.uneven)
        if self.far != other.far:
            known.add(FAR_CHOICES)
        if self.alone_base != other.alone_base:
            return known.union(self.alone, self.signed, other.alone, other.signed)
        return known | _differing(self.alone, other.alone) | _differing(self.signed, other.signed)


def _differing(changes: Mapping[str, object], others: Mapping[str, object]) -> set[str]:
    return {name for name in {*changes, *others} if changes.get(name) != others.get(name)}
