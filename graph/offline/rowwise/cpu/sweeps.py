"""The inner loops: the sums, kept values and stores of each sweep over a row's columns."""

from __future__ import annotations

from ridgeline.graph.offline.program.schedule import Reduction, Sweep
from ridgeline.graph.offline.rowwise.cpu.online import write_online
from ridgeline.graph.offline.rowwise.cpu.structures import Structure
from ridgeline.graph.offline.rowwise.cpu.text import CpuText
from ridgeline.graph.offline.text import arithmetic
from ridgeline.tools.build.header import C_TYPES

IDENTITY = {"sum": "0.0f", "prod": "1.0f", "max": "-__builtin_inff()", "min": "__builtin_inff()"}
OMP_OPERATOR = {"sum": "+", "prod": "*", "max": "max", "min": "min"}
SHIFT_COLS = 16
"""Elements whose mean is the origin of moments: one vector costs as much as one element, which may be an outlier."""


def write_sweep(text: CpuText, sweep: Sweep) -> None:
    """Write one loop over the row's columns, with the reductions it computes and the values it keeps."""
    online = [r for r in sweep.reductions if r.kind == "online"]
    rest = [r for r in sweep.reductions if r.kind != "online"]
    kept_in_rest = sweep.keeps
    for reduction in online:
        write_online(text, reduction, sweep)
    if rest or sweep.stores or (kept_in_rest and not online):
        _plain_sweep(text, rest, sweep)


def _plain_sweep(text: CpuText, reductions: list[Reduction], sweep: Sweep) -> None:
    for reduction in reductions:
        _declare_accumulators(text, reduction, sweep)
    stores = bool(sweep.stores)
    if text.has(Structure.STREAM) and stores:
        _tiled(text, reductions, sweep)
    elif text.has(Structure.LANES) and reductions and not stores:
        _laned(text, reductions, sweep)
    else:
        _open_columns(text, "int64_t j = 0; j < COLS; ++j", reductions)
        _column(text, reductions, sweep, to="{argument}_to" + text.suffix + "[j]")
        _close_columns(text)
    for reduction in reductions:
        _finish(text, reduction)


def _open_columns(text: CpuText, loop: str, reductions: list[Reduction]) -> None:
    if not text.blocked:
        clauses = _omp_clauses(reductions)
        text.line(f"#pragma omp simd{clauses}")
    else:
        text.line("#pragma GCC ivdep")
    text.open(f"for ({loop})")
    if text.blocked:
        text.line("#pragma GCC unroll 8")
        text.open("for (int64_t q = 0; q < ROW_BLOCK; ++q)")


def _close_columns(text: CpuText) -> None:
    if text.blocked:
        text.close()
    text.close()


def _tiled(text: CpuText, reductions: list[Reduction], sweep: Sweep) -> None:
    """Write a loop that fills a tile in the first-level cache and streams the tile past the caches."""
    text.open("for (int64_t tile = 0; tile < COLS; tile += STREAM_TILE)")
    text.line("const int64_t width = COLS - tile < STREAM_TILE ? COLS - tile : STREAM_TILE;")
    _open_columns(text, "int64_t i = 0; i < width; ++i", reductions)
    text.line("const int64_t j = tile + i;")
    row = "q * STREAM_TILE + " if text.blocked else ""
    _column(text, reductions, sweep, to=f"stage_{{argument}}[{row}i]")
    _close_columns(text)
    suffix = text.per_row()
    for output in sweep.stores:
        name = output.argument
        start = f"stage_{name}" + (" + q * STREAM_TILE" if text.blocked else "")
        size = f"static_cast<int64_t>(sizeof({C_TYPES[output.dtype]}))"
        text.line(f"rl_stream({name}_to{suffix} + tile, {start}, width * {size});")
    text.end_per_row()
    text.close()


def _laned(text: CpuText, reductions: list[Reduction], sweep: Sweep) -> None:
    """Write a loop over several segments of the row side by side, each with an accumulator of its own."""
    text.line("#pragma GCC ivdep")
    text.open("for (int64_t i = 0; i < COLS / LANES; ++i)")
    text.line("#pragma GCC unroll 8")
    text.open("for (int64_t lane = 0; lane < LANES; ++lane)")
    text.line("const int64_t j = lane * (COLS / LANES) + i;")
    _column(text, reductions, sweep, to="", lane="[lane]")
    text.close()
    text.close()
    text.open("for (int64_t j = COLS / LANES * LANES; j < COLS; ++j)")
    _column(text, reductions, sweep, to="", lane="[0]")
    text.close()


def _column(text: CpuText, reductions: list[Reduction], sweep: Sweep, *, to: str, lane: str = "") -> None:
    """Write the work on one column of one row."""
    roots = [r.expression for r in reductions] + [o.value for o in sweep.stores]
    text.evaluate(roots, sweep)
    suffix = text.suffix + lane
    for reduction in reductions:
        _accumulate(text, reduction, suffix)
    for output in sweep.stores:
        text.line(f"{to.format(argument=output.argument)} = {text.stored(output)};")


def _accumulators(text: CpuText, reduction: Reduction) -> list[tuple[str, str]]:
    target = reduction.target.id
    if reduction.kind == "moments":
        return [(f"first{target}", "sum"), (f"second{target}", "sum")]
    return [(f"acc{target}", reduction.kind)]


def _lanes(text: CpuText, sweep: Sweep) -> bool:
    return text.has(Structure.LANES) and not sweep.stores


def _declare_accumulators(text: CpuText, reduction: Reduction, sweep: Sweep) -> None:
    if reduction.kind == "moments":
        _shift(text, reduction, sweep)
    for name, kind in _accumulators(text, reduction):
        if not text.blocked and not _lanes(text, sweep):
            text.line(f"float {name} = {IDENTITY[kind]};")
            continue
        count = "ROW_BLOCK" if text.blocked else "LANES"
        text.line(f"float {name}[{count}];")
        text.line(f"for (int64_t q = 0; q < {count}; ++q) {name}[q] = {IDENTITY[kind]};")


def _shift(text: CpuText, reduction: Reduction, sweep: Sweep) -> None:
    """Write the origin, the mean of the row's first elements, relative to which squares do not cancel."""
    target = reduction.target.id
    count = min(SHIFT_COLS, text.program.cols)
    text.line(f"float shift{target}{text.array};")
    text.per_row()
    if not text.blocked:
        text.open("")
    text.line("float start = 0.0f;")
    text.line("#pragma omp simd reduction(+ : start)")
    text.open(f"for (int64_t j = 0; j < {count}; ++j)")
    text.evaluate([reduction.expression], Sweep(reuses=sweep.reuses))
    text.line(f"start += {text.name(reduction.expression)};")
    text.close()
    text.line(f"shift{target}{text.suffix} = start * {arithmetic.literal(1.0 / count)};")
    text.close()


def _accumulate(text: CpuText, reduction: Reduction, suffix: str) -> None:
    value, target = text.name(reduction.expression), reduction.target.id
    if reduction.kind == "moments":
        text.line(f"const float away{target} = {value} - shift{target}{text.suffix};")
        text.line(f"first{target}{suffix} += away{target};")
        text.line(f"second{target}{suffix} += away{target} * away{target};")
        return
    name = f"acc{target}{suffix}"
    text.line(_combined(reduction.kind, name, value))


def _finish(text: CpuText, reduction: Reduction) -> None:
    """Write the reduction's per-row value, made of the accumulators."""
    target = reduction.target
    for value in [target, *([reduction.companion] if reduction.companion is not None else [])]:
        if text.blocked:
            text.line(f"float v{value.id}[ROW_BLOCK];")
    lanes = _lanes_used(text, reduction)
    for name, kind in _accumulators(text, reduction) if lanes else []:
        text.line(f"for (int64_t lane = 1; lane < LANES; ++lane) {_combined(kind, name + '[0]', name + '[lane]')}")
    suffix = text.per_row()
    at = suffix or ("[0]" if lanes else "")
    declared = "" if text.blocked else "const float "
    number = target.id
    if reduction.kind != "moments":
        text.line(f"{declared}v{number}{suffix} = acc{number}{at};")
    else:
        inverse = arithmetic.literal(1.0 / text.program.cols)
        spread = f"second{number}{at} - first{number}{at} * first{number}{at} * {inverse}"
        text.line(f"{declared}v{number}{suffix} = std::fmax({spread}, 0.0f);")
        if reduction.companion is not None:
            total = f"{arithmetic.literal(text.program.cols)} * shift{number}{suffix} + first{number}{at}"
            text.line(f"{declared}v{reduction.companion.id}{suffix} = {total};")
    text.end_per_row()


def _lanes_used(text: CpuText, reduction: Reduction) -> bool:
    owner = next(s for s in text.plan.sweeps if reduction in s.reductions)
    return _lanes(text, owner)


def _omp_clauses(reductions: list[Reduction]) -> str:
    clauses = ""
    for reduction in reductions:
        if reduction.kind == "moments":
            clauses += f" reduction(+ : first{reduction.target.id}, second{reduction.target.id})"
        else:
            clauses += f" reduction({OMP_OPERATOR[reduction.kind]} : acc{reduction.target.id})"
    return clauses


def _combined(kind: str, name: str, value: str) -> str:
    if kind in ("sum", "prod"):
        return f"{name} {'+' if kind == 'sum' else '*'}= {value};"
    return f"{name} = {value} {'>' if kind == 'max' else '<'} {name} ? {value} : {name};"
