"""Numbers with their nouns, in the singular or the plural."""

from __future__ import annotations

import re


def counted(number: int, noun: str) -> str:
    """Return "1 kernel", "3 branches", "2 replies", "4,200 tokens"; `noun` is the singular."""
    if number == 1:
        return f"1 {noun}"
    plural = re.sub(r"([^aeiou])y$", r"\1ie", noun) + ("es" if noun.endswith(("ch", "sh", "x")) else "s")
    return f"{number:,} {plural}"
