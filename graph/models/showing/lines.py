"""Sources as lines: where lines stand in a source, and what changes from one source to another; in bounded time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from itertools import accumulate

MOST_STEPS = 16_000_000
"""Of a comparison: a second. Sources of up to 2800 lines stay below it, unless one has the same lines again and again."""

Change = tuple[str, int, int, int, int]
"""As `SequenceMatcher.get_opcodes` has them: the kind, the lines of the old source, and those of the new one."""


class SourceLines:
    """The lines of one source, to look for others in.

    Each line that differs becomes one character of a text, in which they are found: the time grows with the lengths and no
    faster, whatever repeats in them.
    """

    def __init__(self, lines: Sequence[str], read: Callable[[str], str] = str) -> None:
        """Compare lines as `read` gives them."""
        self._read = read
        self._letters: dict[str, str] = {}
        self._text = "".join(self._letters.setdefault(read(line), chr(len(self._letters))) for line in lines)

    def find(self, wanted: Sequence[str]) -> tuple[int, int]:
        """Return the first line of the first match, and how many there are; (-1, 0) of none.

        Matches that lie over one another count as two.
        """
        letters = [self._letters.get(self._read(line), "") for line in wanted]
        if not all(letters):
            return -1, 0
        text = "".join(letters)
        first = self._text.find(text)
        if first < 0 or self._text.find(text, first + 1) < 0:
            return first, int(first >= 0)
        return first, max(2, self._text.count(text))


def begins_of(lines: Sequence[str]) -> list[int]:
    """Return the character at which each line begins, and last the one at which a further line would."""
    return [0, *accumulate(len(line) + 1 for line in lines)]


def line_changes(old: Sequence[str], new: Sequence[str]) -> list[Change] | None:
    """Return what makes the new lines of the old ones, equal parts too; None where that takes more than MOST_STEPS.

    difflib's time grows with the places at which equal lines stand, once for each part that it finds.
    """
    counts = Counter(new)
    popular = len(new) // 100 + 1 if len(new) >= 200 else len(new)  # beyond it difflib begins no part at a line
    pairs = sum(counts[line] for line in old if counts[line] <= popular)
    if (len(old) + pairs) * min(len(old), len(new)) > MOST_STEPS:
        return None
    return list(SequenceMatcher(None, old, new).get_opcodes())
