"""SEARCH/REPLACE edits of a source: read from a reply, applied, and taken from two versions of a source.

```text
<<<<<<< SEARCH
whole lines of the source
=======
what stands there instead
>>>>>>> REPLACE
```

Every edit is of the source as it was, and matches at exactly one place: nothing is guessed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from ridgeline.graph.models.requests import KernelEdit
from ridgeline.graph.models.showing.lines import SourceLines, begins_of, line_changes
from ridgeline.tools.records.printable import printable
from ridgeline.tools.wording import counted

MOST_EDITS = 64
MOST_CHARACTERS = 400_000
"""Of all edits together; a reply has no more by default."""
MOST_LINES_COMPARED = 4000
_CONTEXT_LINES = 3
_SEARCH = re.compile(r"<{7} SEARCH\s*")
_MIDDLE = re.compile(r"={7}\s*")
_REPLACE = re.compile(r">{7} REPLACE\s*")
_ANY_SEARCH = re.compile(r"^<{7} SEARCH[ \t\r]*$", re.MULTILINE)
_LINE_SHOWN = 80


class UnfitEdit(ValueError):
    """An edit is malformed, or does not match exactly one place; the message names it."""


def holds_edits(text: str) -> bool:
    """Say whether a text has a line that begins an edit; no source of a kernel has one."""
    return _ANY_SEARCH.search(text) is not None


def read_edits(text: str) -> tuple[KernelEdit, ...]:
    """Return the edits in a text, in order; what stands around them is not read.

    Raises:
        UnfitEdit: a block has no end, a second middle line, or a beginning within another one.
    """
    edits: list[KernelEdit] = []
    parts: list[list[str]] = []  # of the open block: its search, then its replacement
    text = text.replace("\r\n", "\n").replace(">>>>>>> REPLACE<", ">>>>>>> REPLACE\n<")  # where two parts were joined
    for line in text.split("\n"):
        name = f"block {len(edits) + 1}"
        if _SEARCH.fullmatch(line):
            if parts:
                raise UnfitEdit(f"{name} has a second line <<<<<<< SEARCH before its >>>>>>> REPLACE")
            parts = [[]]
        elif parts and _MIDDLE.fullmatch(line):
            if len(parts) == 2:
                raise UnfitEdit(f"{name} has a second line =======; give the whole file, or JSON edits")
            parts.append([])
        elif parts and _REPLACE.fullmatch(line):
            if len(parts) == 1:
                raise UnfitEdit(f"{name} has no line =======")
            search, replace = ("".join(f"{kept}\n" for kept in part) for part in parts)
            edits.append(KernelEdit(search=search, replace=replace))
            parts = []
        elif parts:
            parts[-1].append(line)
    if parts:
        raise UnfitEdit(f"block {len(edits) + 1} has no line >>>>>>> REPLACE")
    return tuple(edits)


def apply_to_one(sources: Sequence[str], edits: Sequence[KernelEdit]) -> str:
    """Return the first of these sources that all edits match, edited.

    Raises:
        UnfitEdit: of the first source, why it does not, or that nothing would be left; or there is no source.
    """
    first: UnfitEdit | None = None
    for source in sources:
        try:
            edited = apply_edits(source, edits)
        except UnfitEdit as error:
            first = first or error
        else:
            if edited.strip():
                return edited
            first = first or UnfitEdit("the edits leave nothing of the source")
    raise first or UnfitEdit("there is no source to edit here: give the whole file")


def apply_edits(source: str, edits: Sequence[KernelEdit]) -> str:
    """Return the source with all edits made, its line ends kept.

    Raises:
        UnfitEdit: too many edits; or one is empty, matches nowhere or more than once, or overlaps another.
    """
    if len(edits) > MOST_EDITS or sum(len(e.search) + len(e.replace) for e in edits) > MOST_CHARACTERS:
        raise UnfitEdit(f"{counted(len(edits), 'edit')} are too many or too large: give the whole file")
    base = _Base(source)
    places = sorted((*base.place_of(edit, number), number) for number, edit in enumerate(edits, 1))
    for (_, end, _, number), (start, _, _, other) in pairwise(places):
        if start < end:
            raise UnfitEdit(f"block {min(number, other)} and block {max(number, other)} overlap: join them")
    for start, end, text, _ in reversed(places):
        source = source[:start] + text + source[end:]
    return source


def edits_between(before: str, after: str) -> tuple[KernelEdit, ...]:
    """Return few lines that make one version of a source of another.

    Nothing where there are too many to compare: beyond MOST_LINES_COMPARED, or beyond `line_changes`.
    """
    old, new = before.split("\n"), after.split("\n")
    if len(old) + len(new) > MOST_LINES_COMPARED:
        return ()
    where = SourceLines(old)
    spans: list[_Span] = []
    for kind, *changed in line_changes(old, new) or ():
        if kind == "equal":
            continue
        span = _with_context(old, new, _Span(*changed), where)
        if spans and span.start < spans[-1].end:
            first = spans.pop()
            span = _Span(first.start, span.end, first.new_start, span.new_end)
        spans.append(span)
    return tuple(
        KernelEdit(search=_text(old[s.start : s.end]), replace=_text(new[s.new_start : s.new_end])) for s in spans
    )


class _Span(NamedTuple):
    """Lines of a source, and the lines of its new version that stand there."""

    start: int
    end: int
    new_start: int
    new_end: int


def _with_context(old: list[str], new: list[str], span: _Span, where: SourceLines) -> _Span:
    """Return a change with as many equal lines around it as make it match once, three before and after at most."""
    a, b, c, d = span
    for _ in range(_CONTEXT_LINES):
        if any(line.strip() for line in old[a:b]) and where.find(old[a:b])[1] == 1:
            break
        if a > 0 and c > 0 and old[a - 1] == new[c - 1]:
            a, c = a - 1, c - 1
        if b < len(old) and d < len(new) and old[b] == new[d]:
            b, d = b + 1, d + 1
    return _Span(a, b, c, d)


def _text(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


class _Base:
    """A source that edits are of."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._lines = source.split("\n")
        self._begins = begins_of(self._lines)

    @cached_property
    def _readings(self) -> tuple[SourceLines, SourceLines]:
        """Return the lines as they are, then without the blanks at their ends."""
        return SourceLines(self._lines), SourceLines(self._lines, str.rstrip)

    def place_of(self, edit: KernelEdit, number: int) -> tuple[int, int, str]:
        """Return where an edit's text begins and ends in the source, and what takes its place."""
        wanted = _lines(edit.search)
        if not any(line.strip() for line in wanted):
            raise UnfitEdit(f"block {number} searches for nothing: quote the lines that it changes")
        for reading in self._readings:
            first, count = reading.find(wanted)
            if count == 1:
                return self._of_lines(first, len(wanted), _lines(edit.replace))
            if count:
                raise UnfitEdit(f"block {number} ({_shown(wanted)}) matches {count} places: quote more lines around it")
        part = edit.search.removesuffix("\n")
        many = self._source.count(part)
        if many == 1:
            start = self._source.index(part)
            return start, start + len(part), edit.replace.removesuffix("\n")
        where = f"{many} places within lines: quote whole lines" if many else "nowhere: quote the source as it is"
        raise UnfitEdit(f"block {number} ({_shown(wanted)}) matches {where}")

    def _of_lines(self, first: int, count: int, replace: list[str]) -> tuple[int, int, str]:
        """Return the characters of `count` whole lines, and the lines in their place with the source's own line ends."""
        ends = "\r" if all(line.endswith("\r") for line in self._lines[first : first + count]) else ""
        start, end = self._begins[first], self._begins[first + count] - 1
        if not replace:  # the lines go with one of their line ends
            is_last = first + count == len(self._lines)
            return (max(0, start - 1), end, "") if is_last else (start, end + 1, "")
        return start, end, "\n".join(f"{line}{ends}" for line in replace)


def _lines(text: str) -> list[str]:
    """Return the lines of a search or a replacement, without their line ends; none of an empty text."""
    text = text.replace("\r\n", "\n")
    return text.removesuffix("\n").split("\n") if text else []


def _shown(lines: list[str]) -> str:
    line = next(line.strip() for line in lines if line.strip())
    return f"`{printable(line[:_LINE_SHOWN])}{'…' if len(line) > _LINE_SHOWN else ''}`"
