"""What one operation family offers the offline model: structures in words, and kernels composed of them.

The search (proposals.py) and the model (model.py) know structures by name only, so a family is one class.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from ridgeline.tools.records.vocabulary import Category

HEADER = re.compile(r"^// ridgeline-offline:(.*)$", re.MULTILINE)

Composition = frozenset[str]
"""Names of the structures of one kernel."""

Pointers = tuple[tuple[str, tuple[str, ...]], ...]
"""Regular expressions of what a failure says, each with the structures that it points at, most likely first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A structure in words."""

    title: str
    phrase: str  # the same as a noun, to name it among others
    mechanism: str
    category: Category
    keywords: str  # alternatives of a regular expression that a person's own idea may contain


class Composer(Protocol):
    """One reference as one family reads it, for one target; composes kernels of named structures.

    Names are words of [a-z0-9-]. A kernel must be right for every size the family accepts.
    """

    @property
    def texts(self) -> Mapping[str, Text]:
        """Return every structure of this family and target, in a fixed order."""
        ...

    @property
    def conflicts(self) -> tuple[Composition, ...]:
        """Return the sets of structures that cannot be in one kernel together."""
        ...

    def applicable(self) -> tuple[str, ...]:
        """Return the structures that change anything for this reference, in the order of `texts`."""
        ...

    def base(self) -> Composition:
        """Return what a kernel starts from when its parent is not ours."""
        ...

    def expected_gain(self, structure: str) -> float:
        """Return the speedup, at least 1, that a structure should bring by itself: a simple roofline argument."""
        ...

    def emit(self, composition: Composition, variation: int) -> str:
        """Return a whole source, with the line of `header_line`; a variation starts its tunables elsewhere."""
        ...

    def tunable(self) -> Composition:
        """Return the structures whose variation changes a tunable's default."""
        ...

    def varying(self) -> tuple[str, ...]:
        """Return what a further implementation of an idea without tunables adds, in turn."""
        ...

    def suspects(self, failure: str) -> tuple[str, ...]:
        """Return the structures that a failure points at, most likely first, then all others."""
        ...


def pointed_at(failure: str, pointers: Pointers, last: Iterable[str]) -> tuple[str, ...]:
    """Return the structures that a failure points at, most likely first, then those of `last`, each once."""
    pointed = [s for pattern, group in pointers if re.search(pattern, failure, re.IGNORECASE) for s in group]
    return tuple(dict.fromkeys([*pointed, *last]))


def header_line(composer: Composer, composition: Iterable[str]) -> str:
    """Return the line by which a source says what it is composed of."""
    return header_of(ordered(composer, composition))


def header_of(structures: Iterable[str]) -> str:
    """Return the same of structures that stand in their family's order already."""
    return f"// ridgeline-offline: {' '.join(structures)}".rstrip()


def structures_of(source: str) -> Composition | None:
    """Return what an offline source is composed of, or None when another author wrote it."""
    match = HEADER.search(source)
    return None if match is None else frozenset(match[1].split())


def ordered(composer: Composer, structures: Iterable[str]) -> list[str]:
    """Return structures in their family's order, without names that it does not know."""
    chosen = set(structures)
    return [s for s in composer.texts if s in chosen]


def compatible(composer: Composer, structures: Iterable[str]) -> bool:
    """Tell whether these structures can be in one kernel."""
    chosen = frozenset(structures)
    return not any(conflict <= chosen for conflict in composer.conflicts)


def with_added(composer: Composer, base: Iterable[str], added: str) -> Composition:
    """Return `base` with one more structure, without those that conflict with it."""
    clash = {s for conflict in composer.conflicts if added in conflict for s in conflict}
    return (frozenset(base) - clash) | {added}


def merge(composer: Composer, start: Iterable[str], added: Iterable[str]) -> Composition:
    """Return `start` with structures added one after another; a later one replaces what it conflicts with."""
    composition = frozenset(start)
    for structure in sorted(added):
        grown = composition | {structure}
        composition = grown if compatible(composer, grown) else with_added(composer, composition, structure)
    return composition


def composition_of(composer: Composer, source: str | None) -> Composition:
    """Return the composition of a parent's source; another author's source counts as the base."""
    own = structures_of(source) if source else None
    return composer.base() if own is None else own & frozenset(composer.applicable())
