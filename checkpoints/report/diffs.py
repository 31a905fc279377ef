"""A kernel's changes of its parent: a unified diff as HTML, all of it escaped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from html import escape

LINES = 3000
"""Lines of each source that are compared; a search's longest kernel has some 900."""
WIDTH = 400
"""Characters of a line that are shown."""
SHOWN = 600
"""Lines of a diff that are shown."""
_CONTEXT = 3
_COMMON = 8
"""A line that stands more often in a source, as a brace does, begins no match: the time would grow with the square."""

_SIGNS = {"add": "+", "del": "-", "same": " ", "hunk": ""}


@dataclass(frozen=True, slots=True, kw_only=True)
class Diff:
    """A difference as HTML lines, and how many lines came and went."""

    html: str
    added: int
    removed: int
    notes: tuple[str, ...] = ()  # what was left out


@lru_cache(maxsize=256)
def unified(before: str, after: str) -> Diff:
    """Return what changed from one source to the other, with three lines around each change."""
    old, new = before.splitlines(), after.splitlines()
    notes = []
    if max(len(old), len(new)) > LINES:
        notes.append(f"only the first {LINES:,} lines of each source are compared")
        old, new = old[:LINES], new[:LINES]
    rows = list(_rows(old, new))
    if any(len(text) > WIDTH for _, text in rows[:SHOWN]):
        notes.append(f"lines of the difference are cut at {WIDTH} characters")
    counts = Counter(kind for kind, _ in rows)
    if len(rows) > SHOWN:
        notes.append(f"{len(rows) - SHOWN:,} further lines of the difference are left out")
    return Diff(
        html="".join(_line(kind, text) for kind, text in rows[:SHOWN]),
        added=counts["add"],
        removed=counts["del"],
        notes=tuple(notes),
    )


def _rows(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield (kind, text) for each line of the diff."""
    common = {line for line, count in Counter(new).items() if count > _COMMON}
    matcher = SequenceMatcher(common.__contains__, old, new, autojunk=False)
    for group in matcher.get_grouped_opcodes(_CONTEXT):
        yield "hunk", _place(group)
        for tag, i, i_end, j, j_end in group:
            if tag == "equal":
                yield from (("same", line) for line in old[i:i_end])
                continue
            yield from (("del", line) for line in old[i:i_end])
            yield from (("add", line) for line in new[j:j_end])


def _place(group: Iterable[tuple[str, int, int, int, int]]) -> str:
    """Return "@@ -1,7 +1,9 @@" of a group of changes."""
    spans = list(group)
    first, last = spans[0], spans[-1]
    return f"@@ -{_span(first[1], last[2])} +{_span(first[3], last[4])} @@"


def _span(begin: int, end: int) -> str:
    """Return "line,count" as diff writes it: an empty span is named by the line before it."""
    count = end - begin
    return f"{begin + bool(count)}" if count == 1 else f"{begin + bool(count)},{count}"


def _line(kind: str, text: str) -> str:
    shown = text if len(text) <= WIDTH else f"{text[: WIDTH - 1]}…"
    return f'<span class="{kind}">{escape(_SIGNS[kind] + shown)}\n</span>'
