"""Kernels as prompts show them: one full source of those that are alike, the others as what differs from it."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from ridgeline.graph.models.requests import Elite, TriedIdea
from ridgeline.tools.records.keys import is_of_idea

CONTEXT_LINES = 1
"""Unchanged lines around each change of a diff."""
MOST_OF_SOURCE = 0.75
"""A diff longer than this share of its kernel is harder to read than the kernel: that one is shown whole."""

MOST_LINES = 4000
"""Lines of the longest source that is compared: of these a comparison takes 0.1 s, and the time grows with the square."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownKernel:
    """One kernel of a prompt."""

    elite: Elite
    text: str  # the source, or the diff
    base_id: str = ""  # the kernel that the diff starts from; "": `text` is the whole source
    sweep: tuple[str, ...] = ()  # tunable values and their times, a line each


def shown_kernels(elites: Sequence[Elite], tried: Sequence[TriedIdea] = ()) -> list[ShownKernel]:
    """Return the kernels in their order, each with the sweep of its idea.

    A kernel that is alike to one before it, as relatives are, is the shortest diff against such a one.
    """
    shown: list[ShownKernel] = []
    for elite in elites:
        sweep = next((idea.sweep for idea in tried if is_of(elite, idea)), ())
        diffs = [(difference(base.elite.source, elite.source), base) for base in shown if not base.base_id]
        text, base = min(diffs, key=lambda each: len(each[0]), default=(elite.source, None))
        if base is None or len(text) > MOST_OF_SOURCE * len(elite.source):
            shown.append(ShownKernel(elite=elite, text=elite.source, sweep=sweep))
        else:
            shown.append(ShownKernel(elite=elite, text=text, base_id=base.elite.candidate_id, sweep=sweep))
    return shown


def is_of(elite: Elite, idea: TriedIdea) -> bool:
    """Say whether a kernel implements an idea: "r2i3v0a1t7" is of "r2i3"."""
    return is_of_idea(elite.candidate_id, idea.id)


@lru_cache(maxsize=64)
def difference(base: str, source: str) -> str:
    """Return the unified diff from one source to another, without its two lines of file names.

    Of a source of more than MOST_LINES lines it is the source itself.
    """
    if max(base.count("\n"), source.count("\n")) > MOST_LINES:
        return source
    lines = difflib.unified_diff(base.splitlines(), source.splitlines(), n=CONTEXT_LINES, lineterm="")
    return "\n".join(list(lines)[2:]) or "(the same source)"


def excerpt(source: str, most_chars: int) -> str:
    """Return a source, cut at the end of a line where it is longer than `most_chars`, with how many lines are left out."""
    if len(source) <= most_chars:
        return source.rstrip("\n")
    kept = source[:most_chars].rpartition("\n")[0]
    left_out = source.count("\n", len(kept)) - source.endswith("\n")
    return f"{kept}\n… {left_out} more lines"
