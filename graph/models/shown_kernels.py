"""Kernels as prompts show them: one full source of those that are alike, the others as what differs from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from ridgeline.graph.models.lines import line_changes
from ridgeline.graph.models.requests import Elite

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


def shown_kernels(elites: Sequence[Elite]) -> list[ShownKernel]:
    """Return the kernels in their order.

    A kernel that is alike to one before it, as relatives are, is the shortest diff against such a one.
    """
    shown: list[ShownKernel] = []
    for elite in elites:
        diffs = [(difference(base.elite.source, elite.source), base) for base in shown if not base.base_id]
        text, base = min(diffs, key=lambda each: len(each[0]), default=(elite.source, None))
        if base is None or len(text) > MOST_OF_SOURCE * len(elite.source):
            shown.append(ShownKernel(elite=elite, text=elite.source))
        else:
            shown.append(ShownKernel(elite=elite, text=text, base_id=base.elite.candidate_id))
    return shown


@lru_cache(maxsize=64)
def difference(base: str, source: str) -> str:
    """Return the changes from one source to another: `@@ N @@`, the line N before a change, lines that go, lines that come.

    This is a unified diff but for the lines after a change, which say nothing of where it stands that those before do not.
    Of a source of more than MOST_LINES lines it is the source itself, and so where lines repeat beyond `line_changes`.
    """
    if max(base.count("\n"), source.count("\n")) > MOST_LINES:
        return source
    old, new = base.splitlines(), source.splitlines()
    changes = line_changes(old, new)
    if changes is None:
        return source
    lines: list[str] = []
    shown = -1  # lines of `base` that are shown or gone by now
    for kind, start, end, new_start, new_end in changes:
        if kind == "equal":
            continue
        before = max(0, start - 1)
        if before != shown:
            lines.append(f"@@ {before + 1} @@")
        lines += [f" {line}" for line in old[before:start]]
        lines += [f"-{line}" for line in old[start:end]]
        lines += [f"+{line}" for line in new[new_start:new_end]]
        shown = end
    return "\n".join(lines) or "(the same source)"


def excerpt(source: str, most_chars: int) -> str:
    """Return a source, cut at the end of a line where it is longer than `most_chars`, with how many lines are left out."""
    if len(source) <= most_chars:
        return source.rstrip("\n")
    kept = source[:most_chars].rpartition("\n")[0]
    left_out = source.count("\n", len(kept)) - source.endswith("\n")
    return f"{kept}\n… {left_out} more lines"
