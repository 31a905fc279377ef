"""The names that a problem may have."""

from __future__ import annotations

LONGEST = 64
"""Characters of a name."""
PATTERN = rf"^[a-z0-9][a-z0-9_-]{{0,{LONGEST - 1}}}$"
IN_WORDS = f"1 to {LONGEST} of a-z, 0-9, _ and -, starting with a letter or digit"
