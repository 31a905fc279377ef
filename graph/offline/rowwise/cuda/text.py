"""The text of a row-wise CUDA kernel: names, expressions and declarations of values."""

from __future__ import annotations

from dataclasses import dataclass, field

from ridgeline.graph.offline.program.ir import Load, Output, Value
from ridgeline.graph.offline.rowwise.cuda.geometry import Geometry, Mode
from ridgeline.graph.offline.rowwise.cuda.keeps import Keeps
from ridgeline.graph.offline.rowwise.cuda.structures import Structure
from ridgeline.graph.offline.rowwise.text import RowText
from ridgeline.graph.offline.text.arithmetic import FORMS, LIBRARY, literal, register_type
from ridgeline.tools.build.header import C_TYPES

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
class CudaText(RowText):
    """One CUDA source in the making."""

    keeps: Keeps
    geometry: Geometry
    staged: list[Load] = field(default_factory=list)

    def is_mode(self, *modes: Mode) -> bool:
        return self.geometry.mode in modes

    def expression(self, value: Value) -> str:
        names = [self.name(a) for a in value.args]
        if value.ctype == "int64_t" and value.op in INTEGER_FORMS:
            return INTEGER_FORMS[value.op].format(*names)
        is_fast = self.has(Structure.FAST) and value.op in FAST_FORMS
        return (FAST_FORMS if is_fast else CUDA_FORMS)[value.op].format(*names)

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
