"""A change of a source that its compiler proposes."""

from __future__ import annotations

from dataclasses import dataclass

from ridgeline.tools.records.codec import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class FixIt(Record):
    """One replacement within a line: places are counted from 1, columns in bytes of UTF-8, the end is not included."""

    line: int
    column: int
    end_column: int  # equal to `column`: `text` is inserted
    text: str
