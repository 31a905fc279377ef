"""An answer that its limit of tokens cut off, joined with its continuation."""

from __future__ import annotations

import re

OPENING = re.compile(r"\A\s*```[\w+#-]*[ \t]*\n")
SHORTEST_OVERLAP = 16
"""Characters: less than this at the seam may be the same by chance, as `    }\\n` is in code."""
LONGEST_OVERLAP = 2000


def joined(partial: str, rest: str) -> str:
    """Return `partial` with its continuation, without a fence that is opened again and without what is said twice."""
    rest = OPENING.sub("", rest)
    for length in range(min(LONGEST_OVERLAP, len(partial), len(rest)), SHORTEST_OVERLAP - 1, -1):
        if partial.endswith(rest[:length]):
            return partial + rest[length:]
    return partial + rest
