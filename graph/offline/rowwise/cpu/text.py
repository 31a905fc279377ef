"""The text of a row-wise C++ kernel: expressions, and the loop over a block's rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ridgeline.graph.offline.program.ir import Load, Output, Space, Value
from ridgeline.graph.offline.program.schedule import Sweep, evaluated
from ridgeline.graph.offline.rowwise.cpu.choices import Choices
from ridgeline.graph.offline.rowwise.cpu.structures import Structure
from ridgeline.graph.offline.rowwise.text import RowText
from ridgeline.graph.offline.text import arithmetic
from ridgeline.tools.build.header import C_TYPES


@dataclass(slots=True, kw_only=True)
class CpuText(RowText):
    """One C++ source in the making. With a row block, per-row values are arrays indexed by `q`."""

    choices: Choices
    depth: int = 1

    @property
    def blocked(self) -> bool:
        return self.has(Structure.ROWS)

    def per_row(self) -> str:
        """Open a loop over the rows of a block (nothing without blocks) and return the index suffix."""
        if self.blocked:
            self.line("#pragma GCC unroll 8")
            self.open("for (int64_t q = 0; q < ROW_BLOCK; ++q)")
            self.line("const int64_t row = first + q;")
        return self.suffix

    def end_per_row(self) -> None:
        if self.blocked:
            self.close()

    @property
    def suffix(self) -> str:
        return "[q]" if self.blocked else ""

    @property
    def array(self) -> str:
        return "[ROW_BLOCK]" if self.blocked else ""

    def evaluate(self, roots: Iterable[Value], sweep: Sweep) -> None:
        for value in evaluated(roots, sweep.reuses):
            kept = sweep.reuses.get(value.id)
            text = self.expression(value) if kept is None else f"keep{kept}[{self.keep_index}]"
            self.line(f"const {arithmetic.register_type(value.ctype)} v{value.id} = {text};")
            if value.id in sweep.keeps:
                self.line(f"keep{sweep.keeps[value.id]}[{self.keep_index}] = v{value.id};")

    @property
    def keep_index(self) -> str:
        return "q * COLS + j" if self.blocked else "j"

    def function(self, op: str) -> str:
        return arithmetic.function(op, inline=self.has(Structure.POLY))

    def expression(self, value: Value) -> str:
        if value.load is not None:
            return self.loaded(value.load)
        names = [self.name(a) for a in value.args]
        return arithmetic.expression(value.op, names, inline=self.has(Structure.POLY))

    def loaded(self, load: Load) -> str:
        stride = load.col_stride
        index = "0" if stride == 0 else "j" if stride == 1 else f"j * {stride}"
        text = f"{self.pointers[load]}{self.suffix}[{index}]"
        return self.converted(load, text)

    def name(self, value: Value) -> str:
        if value.op == "literal":
            return arithmetic.literal(float(value.literal), value.ctype)
        if value.op == "scalar":
            return f"static_cast<{value.ctype}>({value.literal}_value)"
        return f"v{value.id}" + ("" if value.space & Space.COL else self.suffix)

    def stored(self, output: Output) -> str:
        name = self.name(output.value)
        ctype = C_TYPES[output.dtype]
        return name if ctype == output.value.ctype else f"static_cast<{ctype}>({name})"
