"""Kernels as prompts show them: one source, and of the others an outline, or what differs from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from ridgeline.graph.models.requests import Elite
from ridgeline.graph.models.showing.lines import line_changes
from ridgeline.graph.models.showing.outlines import cut_source, outline
from ridgeline.graph.models.showing.shortening import told_once

MOST_OF_SOURCE = 0.75
"""A diff longer than this share of its kernel is harder to read than the kernel: that one is shown whole.

Of a failed source the diff costs less up to here too, where cached tokens cost a quarter: the parent before it is cached.
"""

MOST_LINES = 4000
"""Lines of the longest source that is compared: of these a comparison takes 0.1 s, and the time grows with the square."""


OUTLINE_CHARS = 700
"""Most of a kernel beside the leader in a request for ideas; a kernel this short is shown whole."""

SECOND_CHARS = 5_000
"""Most of a recombination's second kernel that its writer is shown."""

ROWS_BESIDE = 2
"""Rows of a sweep that are told of a kernel beside the leader."""

_WRITTEN = "as written"


class Form(StrEnum):
    """The form in which a kernel is shown: how much of it."""

    WHOLE = "whole"
    CUT = "cut"  # its hottest functions
    OUTLINE = "outline"
    DIFF = "diff"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownKernel:
    """One kernel of a prompt."""

    elite: Elite
    text: str  # the source, what is left of it, its outline, or the diff
    form: Form
    base_id: str = ""  # the kernel that a diff starts from
    diagnosis: str = ""
    sweep: tuple[str, ...] = ()


def told_kernels(elites: Sequence[Elite], language: str, leader_chars: int) -> list[ShownKernel]:
    """Return the kernels as a request for ideas shows them: the first one's source, of the others what their structure is.

    The first is cut to its hottest functions where it is longer than `leader_chars`. A kernel that was made of the first
    one by a short diff is that diff. A clause of a diagnosis is told once. Of a kernel and its tuned points the first is shown.
    """
    shown: list[ShownKernel] = []
    known: set[str] = set()
    for elite in elites:
        if any(elite.written_id == other.elite.written_id for other in shown):
            continue
        diagnosis = told_once(elite.diagnosis, known)
        if not shown:
            text = cut_source(elite.source, language, leader_chars, elite.largest_stage)
            form = Form.CUT if len(elite.source) > leader_chars else Form.WHOLE
            shown.append(ShownKernel(elite=elite, text=text, form=form, diagnosis=diagnosis, sweep=elite.sweep))
            continue
        text, form = _beside(elite, elites[0], language)
        base_id = elites[0].candidate_id if form is Form.DIFF else ""
        sweep = _best_rows(elite.sweep)
        shown.append(ShownKernel(elite=elite, text=text, form=form, base_id=base_id, diagnosis=diagnosis, sweep=sweep))
    return shown


def _beside(elite: Elite, leader: Elite, language: str) -> tuple[str, Form]:
    """Return a kernel beside the leader, in brief."""
    if elite.parent_id in (leader.candidate_id, leader.written_id):
        changes = difference(leader.source, elite.source)
        if len(changes) <= OUTLINE_CHARS and changes != elite.source:
            return changes, Form.DIFF
    if len(elite.source) <= OUTLINE_CHARS:
        return elite.source, Form.WHOLE
    found = outline(elite.source, language, OUTLINE_CHARS, leader.source)
    return (found, Form.OUTLINE) if found else (cut_source(elite.source, language, OUTLINE_CHARS), Form.CUT)


def _best_rows(sweep: Sequence[str]) -> tuple[str, ...]:
    written = tuple(row for row in sweep[ROWS_BESIDE:] if row.startswith(_WRITTEN))
    return (*sweep[:ROWS_BESIDE], *written)


def parent_kernels(parent: Elite | None, second: Elite | None, language: str) -> list[ShownKernel]:
    """Return the kernels that a writer is shown: the parent whole, of the second what differs, else its hottest functions."""
    shown = [_written(parent, parent.source, Form.WHOLE)] if parent else []
    if second is None or (parent and second.written_id == parent.written_id):
        return shown
    changes = readable_difference(parent.source, second.source) if parent else ""
    if parent and changes and len(changes) <= SECOND_CHARS:
        return [*shown, _written(second, changes, Form.DIFF, parent.candidate_id)]
    form = Form.CUT if len(second.source) > SECOND_CHARS else Form.WHOLE
    return [*shown, _written(second, cut_source(second.source, language, SECOND_CHARS, second.largest_stage), form)]


def _written(elite: Elite, text: str, form: Form, base_id: str = "") -> ShownKernel:
    return ShownKernel(elite=elite, text=text, form=form, base_id=base_id, diagnosis=elite.diagnosis, sweep=elite.sweep)


def readable_difference(base: str, source: str, context: int = 0) -> str:
    """Return the changes from one source to another; "" where they are most of the source."""
    changes = difference(base, source, context)
    return changes if len(changes) <= MOST_OF_SOURCE * len(source) else ""


@lru_cache(maxsize=64)
def difference(base: str, source: str, context: int = 0) -> str:
    """Return the changes from one source to another: `@@ N @@`, the lines from N on, lines that go, lines that come.

    This is a unified diff with `context` lines on both sides of a change; without context there is one line before it and
    none behind it, which say nothing of where it stands that the one before does not. Of a source of more than MOST_LINES
    lines it is the source itself, and so where lines repeat beyond `line_changes`.
    """
    if max(base.count("\n"), source.count("\n")) > MOST_LINES:
        return source
    old, new = base.splitlines(), source.splitlines()
    changes = line_changes(old, new)
    if changes is None:
        return source
    changed = [change for change in changes if change[0] != "equal"]
    lines: list[str] = []
    shown = -1  # lines of `base` that are shown or gone by now
    for n, (_, start, end, new_start, new_end) in enumerate(changed):
        before = max(0, shown, start - (context or 1))
        if before != shown:
            lines.append(f"@@ {before + 1} @@")
        lines += [f" {line}" for line in old[before:start]]
        lines += [f"-{line}" for line in old[start:end]]
        lines += [f"+{line}" for line in new[new_start:new_end]]
        following = changed[n + 1][1] if n + 1 < len(changed) else len(old)
        shown = min(end + context, following)
        lines += [f" {line}" for line in old[end:shown]]
    return "\n".join(lines) or "(the same source)"
