"""The parts of a CUDA kernel that work on a row at a time: places, pointers, per-row values and outputs."""

from __future__ import annotations

from collections.abc import Iterable

from ridgeline.graph.offline.program.ir import REDUCTIONS, Load
from ridgeline.graph.offline.rowwise.cuda.geometry import Mode
from ridgeline.graph.offline.rowwise.cuda.text import CudaText
from ridgeline.graph.offline.text.addresses import row_start
from ridgeline.graph.offline.text.arithmetic import literal
from ridgeline.graph.offline.text.frame import memory_type, parameters
from ridgeline.tools.build.header import C_TYPES

PART = {Mode.CLUSTER: "blockIdx.x % PARTS", Mode.GRID: "blockIdx.x / TEAMS", Mode.SPLIT: "index % PARTS"}


def kernel_parameters(text: CudaText) -> str:
    """Return the parameters that every kernel of a source has."""
    return ",\n    ".join([*parameters(text.signature), "float* board"])


def write_place(text: CudaText) -> None:
    """Write the thread's place in a row: its number, its part, the part's columns."""
    warp = text.geometry.mode is Mode.WARP
    text.line(f"const int thread = static_cast<int>(threadIdx.x{' % 32' if warp else ''});")
    text.line(f"const int part = static_cast<int>({PART.get(text.geometry.mode, '0')});")
    text.line("const int begin = part * WIDTH < COLS ? part * WIDTH : COLS;")
    text.line("[[maybe_unused]] const int end = COLS - begin < WIDTH ? COLS : begin + WIDTH;")


def write_pointers(text: CudaText) -> None:
    """Write the pointers to a row's inputs and outputs, and the thread's first column."""
    for load, name in text.pointers.items():
        ctype = memory_type(load)
        if load in text.staged:
            at = f"shared + stage * STAGE_BYTES + {name}_byte"
            text.line(f"const {ctype}* {name} = reinterpret_cast<const {ctype}*>({at});")
            continue
        write_row_pointer(text, load, name)
    for output in text.full_outputs():
        ctype = C_TYPES[output.dtype]
        text.line(f"[[maybe_unused]] {ctype}* {output.argument}_to = {output.argument}_data + row * COLS;")
    text.line("int at = begin + thread * VEC;")
    text.line('asm volatile("" : "+r"(at));  // known, every address would be kept from row to row, in registers')


def write_row_pointer(text: CudaText, load: Load, name: str) -> None:
    """Write the pointer to a row of an argument in device memory."""
    start = f"{load.argument}_data"
    if load.dtype == "bool":
        start = f"reinterpret_cast<const uint8_t*>({start})"
    text.line(f"[[maybe_unused]] const {memory_type(load)}* {name} = {start} + {row_start(load, text.program.rows)};")


def write_row_values(text: CudaText, level: int, done: Iterable[int]) -> None:
    """Write the per-row values that are known from the start of sweep `level` on."""
    for value in text.plan.row_values:
        is_here = text.plan.level[value.id] == level and value.id not in done
        if not is_here or value.op in ("literal", "scalar") or value.op in REDUCTIONS:
            continue
        if value.load is not None:
            text.declare(value, text.converted(value.load, f"{text.pointers[value.load]}[0]"))
        else:
            text.declare(value, text.expression(value))


def write_results(text: CudaText, index: int) -> None:
    """Write a sweep's reductions as values, then the per-row values made of them."""
    reductions = text.plan.sweeps[index].reductions
    cols = literal(float(text.program.cols))
    for reduction in reductions:
        sums = f"sums{index}.a{reduction.target.id}"
        if reduction.kind == "moments":
            text.declare(reduction.target, f"{sums}.m2")
            if reduction.companion is not None:
                text.declare(reduction.companion, f"{sums}.mean * {cols}")
        elif reduction.kind == "online" and reduction.companion is not None:
            text.declare(reduction.companion, f"{sums}.top")
        else:
            text.declare(reduction.target, f"{sums}.value")
    done: set[int] = set()
    for reduction in reductions:
        if reduction.kind == "online" and reduction.shift is not None:
            for value in text.plan.row_chain(reduction.shift):
                if value.id not in done:
                    text.declare(value, text.expression(value))
                    done.add(value.id)
            sums = f"sums{index}.a{reduction.target.id}"
            shift = text.name(reduction.shift)
            text.declare(reduction.target, f"{sums}.total * expf(rl_origin({sums}.top) - {shift})")
    write_row_values(text, index + 1, done)


def write_row_outputs(text: CudaText) -> None:
    """Write the outputs that a row has one of."""
    outputs = text.row_outputs()
    if outputs:
        text.open("if (thread == 0 && part == 0)")
        for output in outputs:
            text.line(f"{output.argument}_data[row] = {text.stored(output)};")
        text.close()
