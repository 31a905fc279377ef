"""The text of a CUDA kernel as it grows: names and expressions of values, indentation, what is where."""

from __future__ import annotations

from dataclasses import dataclass, field

from ridgeline.graph.offline.arithmetic import FORMS, LIBRARY, literal, register_type
from ridgeline.graph.offline.cuda_geometry import Geometry, Mode, alignment
from ridgeline.graph.offline.cuda_keeps import Keeps
from ridgeline.graph.offline.cuda_structures import CudaStructure
from ridgeline.graph.offline.ir import REDUCTIONS, Load, Output, RowProgram, Space, Value
from ridgeline.graph.offline.kernel_text import INDENT
from ridgeline.graph.offline.schedule import Plan
from ridgeline.tools.build.header import C_TYPES
from ridgeline.tools.records.problem import Signature

INFINITY = "RL_INFINITY"
CUDA_FORMS = {
    **{op: form.replace("std::sqrt(", "sqrtf(").replace("std::erf(", "erff(") for op, form in FORMS.items()},
    **{op: f"{op}f({{0}})" for op in LIBRARY if op != "pow"},
    "pow": "powf({0}, {1})",
    "rsqrt": "rsqrtf({0})",
    "sigmoid": "1.0f / (1.0f + expf(-{0}))",
    "silu": "{0} / (1.0f + expf(-{0}))",
    "isnan": "isnan({0})",
    "isinf": "isinf({0})",
    "abs": "fabsf({0})",
    "round": "rintf({0})",
    "relu": "{0} < 0.0f ? 0.0f : {0}",
}
INTEGER_FORMS = {"abs": "({0} < 0 ? -{0} : {0})", "relu": "{0} < 0 ? 0 : {0}"}
FAST_FORMS = {
    "exp": "rl_exp({0})",
    "div": "rl_div({0}, {1})",
    "reciprocal": "rl_rcp({0})",
    "sigmoid": "rl_sigmoid({0})",
    "silu": "rl_silu({0})",
    "sqrt": "rl_sqrt({0})",
}


@dataclass(slots=True, kw_only=True)
class CudaText:
    """One source in the making."""

    plan: Plan
    keeps: Keeps
    signature: Signature
    structures: frozenset[str]
    geometry: Geometry
    staged: list[Load] = field(default_factory=list)
    pointers: dict[Load, str] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    depth: int = 0

    @property
    def program(self) -> RowProgram:
        return self.plan.program

    def has(self, structure: CudaStructure) -> bool:
        return structure in self.structures

    def is_mode(self, *modes: Mode) -> bool:
        return self.geometry.mode in modes

    def expression(self, value: Value) -> str:
        names = [self.name(a) for a in value.args]
        if value.ctype == "int64_t" and value.op in INTEGER_FORMS:
            return INTEGER_FORMS[value.op].format(*names)
        is_fast = self.has(CudaStructure.FAST) and value.op in FAST_FORMS
        return (FAST_FORMS if is_fast else CUDA_FORMS)[value.op].format(*names)

    def converted(self, load: Load, text: str) -> str:
        """Return a loaded element as the type it has between operations."""
        if load.dtype == "float32":
            return text
        wanted = "int32_t" if load.dtype == "bool" else "float" if "float" in load.dtype else "int64_t"
        return f"static_cast<{wanted}>({text})"

    def name(self, value: Value) -> str:
        if value.op == "literal":
            return literal(float(value.literal), value.ctype).replace("infinite", INFINITY)
        if value.op == "scalar":
            return f"static_cast<{value.ctype}>({value.literal}_value)"
        return f"v{value.id}"

    def stored(self, output: Output) -> str:
        name, ctype = self.name(output.value), C_TYPES[output.dtype]
        if ctype in ("fp16", "bf16") and output.value.ctype != "float":
            name = f"static_cast<float>({name})"
        return name if ctype == output.value.ctype else f"static_cast<{ctype}>({name})"

    def declare(self, value: Value, text: str) -> None:
        self.line(f"[[maybe_unused]] const {register_type(value.ctype)} v{value.id} = {text};")

    def row_chain(self, value: Value) -> list[Value]:
        """Return the per-row values made from reductions of the value's own level, in order, up to `value`."""
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

    def full_outputs(self) -> list[Output]:
        return [o for o in self.program.outputs if o.value.space & Space.COL]

    def row_outputs(self) -> list[Output]:
        return [o for o in self.program.outputs if not o.value.space & Space.COL]

    def aligned(self, load: Load) -> int:
        return alignment(load)

    def line(self, text: str) -> None:
        self.lines.append(text if text.startswith("#") else INDENT * self.depth + text)

    def open(self, head: str) -> None:
        self.line(f"{head} {{".lstrip())
        self.depth += 1

    def close(self, tail: str = "") -> None:
        self.depth -= 1
        self.line("}" + tail)
