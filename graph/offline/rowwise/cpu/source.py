"""C++ for a row program: one loop over rows shared among threads, one inner loop for each sweep."""

from __future__ import annotations

import math

from ridgeline.graph.offline.program.ir import REDUCTIONS, RowProgram
from ridgeline.graph.offline.program.schedule import plan_sweeps
from ridgeline.graph.offline.rowwise.cpu.choices import Choices
from ridgeline.graph.offline.rowwise.cpu.structures import Structure
from ridgeline.graph.offline.rowwise.cpu.sweeps import write_sweep
from ridgeline.graph.offline.rowwise.cpu.text import CpuText
from ridgeline.graph.offline.text import arithmetic
from ridgeline.graph.offline.text.addresses import row_start
from ridgeline.graph.offline.text.frame import memory_type, prototype, tunable
from ridgeline.graph.offline.text.sections import native_sections, needed_sections
from ridgeline.tools.build.header import C_TYPES
from ridgeline.tools.records.problem import Signature


def write_source(
    program: RowProgram, signature: Signature, structures: frozenset[Structure], choices: Choices | None = None
) -> str:
    """Return the whole source but its first line. The structures must be compatible."""
    plan = plan_sweeps(
        program,
        moments=Structure.MOMENTS in structures,
        online=Structure.ONLINE in structures,
        keep=Structure.KEEP in structures,
    )
    text = CpuText(plan=plan, signature=signature, structures=structures, choices=choices or Choices())
    return _source(text)


def _source(text: CpuText) -> str:
    body = _body(text)
    called = "\n".join(body)
    polynomials = needed_sections(name for name in arithmetic.INLINE if f"rl_{name}(" in called)
    streams = native_sections("ridgeline.graph.offline.rowwise", "cpu.h")["stream"] if "rl_stream(" in called else ""
    parts = [_header(text), polynomials, streams, prototype(text.signature, "void*") + " {", *body, "}"]
    return "\n".join(p for p in parts if p) + "\n"


def _header(text: CpuText) -> str:
    program = text.program
    lines = []
    if text.has(Structure.NARROW):
        lines.append("// flags: -mprefer-vector-width=256")
    lines += ['#include "problem.h"', "", "#include <cmath>", "#include <cstdint>", ""]
    lines += [f"constexpr int64_t ROWS = {program.rows};", f"constexpr int64_t COLS = {program.cols};"]
    lines += _tunables(text)
    return "\n".join(lines) + "\n"


def _tunables(text: CpuText) -> list[str]:
    program, choices = text.program, text.choices
    # An inner loop that is not unrolled keeps its accumulators in memory, so blocks stay within what the compiler unrolls.
    blocks = [b for b in (1, 2, 4) if program.rows % b == 0 and b * text.plan.buffers * program.cols <= 1 << 16]
    options = {
        Structure.ROWS: ("ROW_BLOCK", choices.row_block, blocks),
        Structure.LANES: ("LANES", choices.lanes, [2, 4, 8]),
        Structure.ONLINE: ("ONLINE_BLOCK", choices.online_block, [64, 256, 1024, 4096]),
        Structure.STREAM: ("STREAM_TILE", choices.stream_tile, [64, 256, 1024, 4096]),
        Structure.PREFETCH: ("PREFETCH_ROWS", choices.prefetch_rows, [1, 2, 4]),
        Structure.DYNAMIC: ("CHUNK", choices.chunk, [4, 16, 64]),
    }
    return [
        tunable(
            name,
            value,
            [o for o in values if name not in ("ONLINE_BLOCK", "STREAM_TILE") or o < 2 * program.cols],
            "int64_t",
        )
        for structure, (name, value, values) in options.items()
        if text.has(structure)
    ]


def _body(text: CpuText) -> list[str]:
    text.line("#pragma omp parallel")
    text.open("")
    if any(v.op == "literal" and math.isinf(float(v.literal)) for v in text.program.values()):
        text.line("float infinite = __builtin_inff();")
        text.line('__asm__("" : "+m"(infinite));  // known, it would be a branch of its own in every loop')
    for index in range(text.plan.buffers):
        text.line(f"alignas(64) float keep{index}[{'ROW_BLOCK * ' if text.blocked else ''}COLS];")
    if text.has(Structure.STREAM):
        for output in text.full_outputs():
            per_row = "ROW_BLOCK * " if text.blocked else ""
            text.line(f"alignas(64) {C_TYPES[output.dtype]} stage_{output.argument}[{per_row}STREAM_TILE];")
    kind = "dynamic, CHUNK" if text.has(Structure.DYNAMIC) else "static"
    text.line(f"#pragma omp for schedule({kind})")
    step = "first += ROW_BLOCK" if text.blocked else "++row"
    start = "first" if text.blocked else "row"
    text.open(f"for (int64_t {start} = 0; {start} < ROWS; {step})")
    _row(text)
    text.close()
    if text.has(Structure.STREAM) and text.full_outputs():
        text.line("rl_stream_end();")
    text.close()
    return text.lines


def _row(text: CpuText) -> None:
    _row_pointers(text)
    if text.has(Structure.PREFETCH):
        _prefetch(text)
    _row_values(text, 0)
    for index, sweep in enumerate(text.plan.sweeps):
        write_sweep(text, sweep)
        _row_values(text, index + 1)
    _row_outputs(text)


def _row_pointers(text: CpuText) -> None:
    loads = text.pointers.items()
    outputs = [(o.argument, C_TYPES[o.dtype]) for o in text.full_outputs()]
    if text.blocked:
        for load, name in loads:
            text.line(f"const {memory_type(load)}* {name}[ROW_BLOCK];")
        for argument, ctype in outputs:
            text.line(f"{ctype}* {argument}_to[ROW_BLOCK];")
    suffix = text.per_row()
    for load, name in loads:
        declared = "" if text.blocked else f"const {memory_type(load)}* "
        start = f"{load.argument}_data"
        if load.dtype == "bool":
            start = f"reinterpret_cast<const uint8_t*>({start})"
        text.line(f"{declared}{name}{suffix} = {start} + {row_start(load, text.program.rows)};")
    for argument, ctype in outputs:
        declared = "" if text.blocked else f"{ctype}* "
        text.line(f"{declared}{argument}_to{suffix} = {argument}_data + row * COLS;")
    text.end_per_row()


def _prefetch(text: CpuText) -> None:
    """Write prefetches of the same part of a later row; past the last row a prefetch is ignored."""
    block = "ROW_BLOCK" if text.blocked else "1"
    for load, name in text.pointers.items():
        if load.row_terms and load.col_stride == 1:
            start = f"{name}[0]" if text.blocked else name
            size = f"static_cast<int64_t>(sizeof({C_TYPES[load.dtype]}))"
            ahead = f"PREFETCH_ROWS * {block} * {load.row_terms[0][2]} * {size}"
            text.open(f"for (int64_t byte = 0; byte < {block} * COLS * {size}; byte += 64)")
            text.line(f"__builtin_prefetch(reinterpret_cast<const char*>({start}) + {ahead} + byte);")
            text.close()


def _row_values(text: CpuText, level: int) -> None:
    """Write the per-row values that are known from the start of sweep `level` on."""
    ready = [
        v
        for v in text.plan.row_values
        if text.plan.level[v.id] == level and v.op not in REDUCTIONS and v.op not in ("literal", "scalar")
    ]
    pending = [v for v in ready if v.id not in _early(text)]
    if not pending:
        return
    for value in pending:
        if text.blocked:
            text.line(f"{arithmetic.register_type(value.ctype)} v{value.id}[ROW_BLOCK];")
    suffix = text.per_row()
    for value in pending:
        declared = "" if text.blocked else f"const {arithmetic.register_type(value.ctype)} "
        text.line(f"{declared}v{value.id}{suffix} = {text.expression(value)};")
    text.end_per_row()


def _early(text: CpuText) -> set[int]:
    """Return the values that an online reduction has computed already: its shift and the values below it."""
    shifts = [r.shift for s in text.plan.sweeps for r in s.reductions if r.shift is not None]
    return {v.id for shift in shifts for v in text.plan.row_chain(shift)}


def _row_outputs(text: CpuText) -> None:
    if text.row_outputs():
        text.per_row()
        for output in text.row_outputs():
            text.line(f"{output.argument}_data[row] = {text.stored(output)};")
        text.end_per_row()
