"""The text of a kernel as it grows: indentation, names of values, expressions, the loop over a block's rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ridgeline.graph.offline import arithmetic
from ridgeline.graph.offline.ir import REDUCTIONS, Load, Output, Space, Value
from ridgeline.graph.offline.schedule import Plan, Sweep, evaluated
from ridgeline.graph.offline.structures import Choices, Structure
from ridgeline.tools.build.header import C_TYPES
from ridgeline.tools.records.problem import Signature

INDENT = "  "


@dataclass(slots=True, kw_only=True)
class KernelText:
    """One kernel in the making. With a row block, per-row values are arrays indexed by `q`."""

    plan: Plan
    signature: Signature
    structures: frozenset[Structure]
    choices: Choices
    pointers: dict[Load, str] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    depth: int = 1

    def has(self, structure: Structure) -> bool:
        return structure in self.structures

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

    def full_outputs(self) -> list[Output]:
        return [o for o in self.plan.program.outputs if o.value.space & Space.COL]

    def is_const_scalar(self, value: Value) -> bool:
        return value.op == "scalar"

    def row_chain(self, value: Value) -> list[Value]:
        """Return the per-row values made from an online maximum, in order, up to `value`."""
        level = self.plan.level[value.id]
        found: dict[int, Value] = {}
        stack = [value]
        while stack:
            current = stack.pop()
            is_inner = not current.is_leaf and current.op not in REDUCTIONS
            if is_inner and self.plan.level[current.id] == level and current.id not in found:
                found[current.id] = current
                stack.extend(current.args)
        return [found[i] for i in sorted(found)]

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
        if load.dtype == "float32":
            return text
        if load.dtype == "bool":
            return f"static_cast<int32_t>({text})"
        return f"static_cast<{'float' if 'float' in load.dtype else 'int64_t'}>({text})"

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

    def line(self, text: str) -> None:
        self.lines.append(text if text.startswith("#") else INDENT * self.depth + text)

    def open(self, head: str) -> None:
        self.line(f"{head} {{".lstrip())
        self.depth += 1

    def close(self) -> None:
        self.depth -= 1
        self.line("}")
