"""The interface of one operation family on one device: named structures in words, and kernels composed of them.

The search (proposals.py) and the model (model.py) know structures by name only, so a family on a device is one class.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from ridgeline.tools.records.vocabulary import Category, ReasonCode, Status

HEADER = re.compile(r"^// ridgeline-offline:(.*)$", re.MULTILINE)

Composition = frozenset[str]
"""Names of the structures of one kernel."""

Pointers = tuple[tuple[frozenset[ReasonCode], tuple[str, ...]], ...]
"""Codes of failures, each set with the structures that it points at, most likely first."""


def _ending(status: Status) -> frozenset[ReasonCode]:
    return frozenset(code for code in ReasonCode if code.status is status)


NOT_BUILT = _ending(Status.COMPILE_ERROR)
STOPPED = _ending(Status.RUNTIME_ERROR)
TOO_SLOW = _ending(Status.TIMEOUT)
WRONG_RESULTS = _ending(Status.WRONG) | {ReasonCode.TIMED_OUTPUT_WRONG}
"""Codes that families take together in their pointers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A structure in words."""

    title: str
    phrase: str  # a noun for the structure, to name it among others
    mechanism: str
    category: Category
    keywords: str  # alternatives of a regular expression; a user's idea that matches names the structure


@dataclass(frozen=True, slots=True, kw_only=True)
class Structures:
    """The structures of one family on one device. Names are words of [a-z0-9-]."""

    texts: Mapping[str, Text]  # every structure, in a fixed order
    tunable: Composition  # a variation of the kernel starts their tunables at other values
    varying: tuple[str, ...]  # added in turn by further implementations of an idea without tunables
    pointers: Pointers
    last_suspects: tuple[str, ...] = ()  # the order of suspicion when a failure points at none; absent, as in `texts`
    conflicts: tuple[Composition, ...] = ()  # sets that cannot be in one kernel together

    def suspects(self, code: ReasonCode) -> tuple[str, ...]:
        """Return all structures: those that a failure's code points at, most likely first, then the others."""
        pointed = [s for codes, group in self.pointers if code in codes for s in group]
        return tuple(dict.fromkeys([*pointed, *(self.last_suspects or self.texts)]))


class Composer(Protocol):
    """One reference as one family reads it, on one device.

    A kernel that it writes is right for every size that the family accepts.
    """

    @property
    def structures(self) -> Structures:
        """Return the structures of this family on this device."""
        ...

    def applicable(self) -> tuple[str, ...]:
        """Return the structures that change anything for this reference, in the order of their texts."""
        ...

    def base(self) -> Composition:
        """Return the composition to start from when the parent kernel is another author's."""
        ...

    def expected_gain(self, structure: str) -> float:
        """Return the speedup, at least 1, that a structure should bring by itself: a simple roofline argument."""
        ...

    def write_source(self, composition: Composition, variation: int) -> str:
        """Return a whole source, `header_line` first; a variation starts its tunables elsewhere."""
        ...


def header_line(composer: Composer, composition: Iterable[str]) -> str:
    """Return the line by which a source names its composition."""
    return f"// ridgeline-offline: {' '.join(ordered(composer, composition))}".rstrip()


def structures_of(source: str) -> Composition | None:
    """Return the composition that an offline source names, or None when another author wrote it."""
    match = HEADER.search(source)
    return None if match is None else frozenset(match[1].split())


def ordered(composer: Composer, structures: Iterable[str]) -> list[str]:
    """Return structures in their family's order, without names that it does not know."""
    chosen = set(structures)
    return [s for s in composer.structures.texts if s in chosen]


def compatible(composer: Composer, structures: Iterable[str]) -> bool:
    """Tell whether these structures can be in one kernel."""
    chosen = frozenset(structures)
    return not any(conflict <= chosen for conflict in composer.structures.conflicts)


def with_added(composer: Composer, base: Iterable[str], added: str) -> Composition:
    """Return `base` with one more structure, without those that conflict with it."""
    clash = {s for conflict in composer.structures.conflicts if added in conflict for s in conflict}
    return (frozenset(base) - clash) | {added}


def merge(composer: Composer, start: Iterable[str], added: Iterable[str]) -> Composition:
    """Return `start` with structures added one after another; a later one replaces those that it conflicts with."""
    composition = frozenset(start)
    for structure in sorted(added):
        grown = composition | {structure}
        composition = grown if compatible(composer, grown) else with_added(composer, composition, structure)
    return composition


def composition_of(composer: Composer, source: str | None) -> Composition:
    """Return the composition of a parent's source; another author's source counts as the base."""
    own = structures_of(source) if source else None
    return composer.base() if own is None else own & frozenset(composer.applicable())
