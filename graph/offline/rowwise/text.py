"""The text of a row-wise source as it grows: lines, names of loads, the outputs' places, conversions."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from ridgeline.graph.offline.program.ir import Load, Output, RowProgram, Space
from ridgeline.graph.offline.program.schedule import SweepPlan
from ridgeline.tools.records.problem import Signature

INDENT = "  "


@dataclass(slots=True, kw_only=True)
class RowText:
    """One source in the making."""

    plan: SweepPlan
    signature: Signature
    structures: AbstractSet[str]
    pointers: dict[Load, str] = field(init=False)  # the name of each load's pointer to its row
    lines: list[str] = field(default_factory=list)
    depth: int = 0

    def __post_init__(self) -> None:
        """Name the loads: several of one argument are numbered."""
        counts: dict[str, int] = {}
        self.pointers = {}
        for load in (v.load for v in self.program.values() if v.load is not None):
            counts[load.argument] = counts.get(load.argument, 0) + 1
            again = f"_{counts[load.argument]}" if counts[load.argument] > 1 else ""
            self.pointers[load] = f"{load.argument}_at{again}"

    @property
    def program(self) -> RowProgram:
        return self.plan.program

    def has(self, structure: str) -> bool:
        return structure in self.structures

    def full_outputs(self) -> list[Output]:
        return [o for o in self.program.outputs if o.value.space & Space.COL]

    def row_outputs(self) -> list[Output]:
        return [o for o in self.program.outputs if not o.value.space & Space.COL]

    def converted(self, load: Load, text: str) -> str:
        """Return a loaded element as the type it has between operations."""
        if load.dtype == "float32":
            return text
        wanted = "int32_t" if load.dtype == "bool" else "float" if "float" in load.dtype else "int64_t"
        return f"static_cast<{wanted}>({text})"

    def line(self, text: str) -> None:
        self.lines.append(text if text.startswith("#") else INDENT * self.depth + text)

    def open(self, head: str) -> None:
        self.line(f"{head} {{".lstrip())
        self.depth += 1

    def close(self, tail: str = "") -> None:
        self.depth -= 1
        self.line("}" + tail)
