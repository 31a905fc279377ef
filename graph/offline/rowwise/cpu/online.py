"""The online softmax: a row's maximum and its sum of exponentials, read once."""

from __future__ import annotations

from ridgeline.graph.offline.program.schedule import Reduction, Sweep
from ridgeline.graph.offline.rowwise.cpu.text import CpuText
from ridgeline.graph.offline.text import arithmetic


def write_online(text: CpuText, reduction: Reduction, sweep: Sweep) -> None:
    """Write the loop over blocks that accumulates a maximum and the sum of exp(x - maximum), rescaled when it grows."""
    target, operand, largest = reduction.target.id, reduction.expression, reduction.companion
    if largest is None or reduction.shift is None:
        raise ValueError("an online reduction needs its maximum and its shift")
    exp = text.function("exp")
    text.line(f"float top{target} = -__builtin_inff(), origin{target} = 0.0f, total{target} = 0.0f;")
    text.open("for (int64_t block = 0; block < COLS; block += ONLINE_BLOCK)")
    text.line("const int64_t end = block + ONLINE_BLOCK < COLS ? block + ONLINE_BLOCK : COLS;")
    text.line(f"float peak = top{target};")
    text.line("#pragma omp simd reduction(max : peak)")
    text.open("for (int64_t j = block; j < end; ++j)")
    text.evaluate([operand], sweep)
    text.line(f"peak = {text.name(operand)} > peak ? {text.name(operand)} : peak;")
    text.close()
    text.open(f"if (peak > top{target})")
    text.line("// an infinite maximum would make exp(inf - inf) of every element")
    text.line("const float origin = std::isinf(peak) ? 0.0f : peak;")
    text.line(f"total{target} = total{target} == 0.0f ? 0.0f : total{target} * {exp}(origin{target} - origin);")
    text.line(f"top{target} = peak;")
    text.line(f"origin{target} = origin;")
    text.close()
    text.line("float part = 0.0f;")
    text.line("#pragma omp simd reduction(+ : part)")
    text.open("for (int64_t j = block; j < end; ++j)")
    again = Sweep(reuses=sweep.reuses | sweep.keeps)
    text.evaluate([operand], again)
    text.line(f"part += {exp}({text.name(operand)} - origin{target});")
    text.close()
    text.line(f"total{target} += part;")
    text.close()
    text.line(f"const float v{largest.id} = top{target};")
    for value in text.plan.row_chain(reduction.shift):
        text.line(f"const {arithmetic.register_type(value.ctype)} v{value.id} = {text.expression(value)};")
    shift = text.name(reduction.shift)
    text.line(f"const float v{target} = total{target} * std::exp(origin{target} - {shift});")
