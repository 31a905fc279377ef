"""The loops of a CUDA kernel: the loads, sums, kept values and stores of each sweep over a row's columns."""

from __future__ import annotations

from ridgeline.graph.offline.program.ir import Load, Output, Space, Value
from ridgeline.graph.offline.program.schedule import Reduction, evaluated
from ridgeline.graph.offline.rowwise.cuda.geometry import alignment, output_alignment
from ridgeline.graph.offline.rowwise.cuda.structures import Structure
from ridgeline.graph.offline.rowwise.cuda.text import CudaText
from ridgeline.graph.offline.text.arithmetic import register_type
from ridgeline.graph.offline.text.frame import memory_type
from ridgeline.tools.build.header import C_TYPES

TYPES = {"moments": "rl_moments", "online": "rl_online"}
COLUMN = "const int c = at + (base + u) * (GROUP * VEC);"
GUARD = "if (base + u < STEPS && (EXACT || c < end))"


def write_sums(text: CudaText, index: int) -> None:
    """Write the struct of the sums of sweep `index`."""
    reductions = text.plan.sweeps[index].reductions
    text.open(f"struct Sums{index}")
    for reduction in reductions:
        text.line(f"{TYPES.get(reduction.kind, f'rl_{reduction.kind}')} a{reduction.target.id};")
    text.open(f"__device__ __forceinline__ void merge(const Sums{index}& other)")
    for reduction in reductions:
        text.line(f"a{reduction.target.id}.merge(other.a{reduction.target.id});")
    text.close()
    text.close(";")


def write_sweep(text: CudaText, index: int) -> None:
    """Write one sweep's loop; the sums are one thread's."""
    sweep = text.plan.sweeps[index]
    if sweep.reductions:
        text.line(f"Sums{index} sums{index};")
    for reduction in sweep.reductions:
        if reduction.kind == "moments":
            text.line(f"rl_shifted own{reduction.target.id};")
    values = evaluated(sweep.roots(), text.keeps.reads[index])
    _write_loop(text, index, values)
    for reduction in sweep.reductions:
        if reduction.kind == "moments":
            text.line(f"sums{index}.a{reduction.target.id} = own{reduction.target.id}.done();")


def _write_loop(text: CudaText, index: int, values: list[Value]) -> None:
    reads = text.keeps.reads[index]
    loads = [v for v in values if v.load is not None and v.id not in reads]
    from_shared = sorted(set(reads.values())) if text.has(Structure.SHARED) else []
    batch = f"BATCH{index}"
    text.line(f"constexpr int {batch} = rl_batch({max(len(loads) + len(from_shared), 1)});")
    text.line("if (EXACT || begin < end)  // the last parts may be empty")
    text.line("#pragma unroll" if text.has(Structure.REGISTERS) else "#pragma unroll 1")
    text.open(f"for (int base = 0; base < STEPS; base += {batch})")
    if loads or from_shared:
        _write_loads(text, index, loads, from_shared)
    text.line("#pragma unroll")
    text.open(f"for (int u = 0; u < {batch}; ++u)")
    text.line(COLUMN)
    text.open(GUARD)
    _write_step(text, index, values)
    text.close()
    text.close()
    text.close()


def _write_loads(text: CudaText, index: int, loads: list[Value], from_shared: list[int]) -> None:
    """Write the loads of a whole batch, ahead of the first use."""
    batch = f"BATCH{index}"
    for value in loads:
        text.line(f"{memory_type(_load(value))} l{value.id}[{batch}][VEC];")
    for slot in from_shared:
        text.line(f"float k{slot}[{batch}][VEC];")
    text.line("#pragma unroll")
    text.open(f"for (int u = 0; u < {batch}; ++u)")
    text.line(COLUMN)
    # Past the end the last vector is loaded instead: a branch for each load would cost registers.
    text.open("if (base + u < STEPS)")
    text.line("const int from = EXACT || c < end ? c : end - VEC;")
    for value in loads:
        _write_load(text, index, value)
    for slot in from_shared:
        text.line(f"rl_load<VEC, 16, RL_PLAIN>(keep{slot} + (from - begin), k{slot}[u]);")
    text.close()
    text.close()


def _load(value: Value) -> Load:
    if value.load is None:
        raise ValueError(f"value {value.id} is not a load")
    return value.load


def _write_load(text: CudaText, index: int, value: Value) -> None:
    load = _load(value)
    pointer, to = text.pointers[load], f"l{value.id}[u]"
    if load.col_stride != 1:
        text.line("#pragma unroll")
        text.line(f"for (int k = 0; k < VEC; ++k) {to}[k] = {pointer}[(from + k) * {load.col_stride}ll];")
    elif load in text.staged:
        text.line(f"rl_load<VEC, 16, RL_PLAIN>({pointer} + (from - begin), {to});")
    else:
        is_last = value.space is Space.FULL and not _read_later(text, index, value)
        kind = "RL_STREAMING" if text.has(Structure.STREAM) and is_last else "RL_READ_ONLY"
        text.line(f"rl_load<VEC, {alignment(load)}, {kind}>({pointer} + from, {to});")


def _read_later(text: CudaText, index: int, value: Value) -> bool:
    later = range(index + 1, len(text.plan.sweeps))
    return any(
        value.id not in text.keeps.reads[s] and value in evaluated(text.plan.sweeps[s].roots(), text.keeps.reads[s])
        for s in later
    )


def _write_step(text: CudaText, index: int, values: list[Value]) -> None:
    """Write the work on one vector of columns."""
    sweep = text.plan.sweeps[index]
    in_shared = sorted(set(text.keeps.writes[index].values())) if text.has(Structure.SHARED) else []
    _write_vectors(text, index, in_shared)
    text.line("#pragma unroll")
    text.open("for (int k = 0; k < VEC; ++k)")
    _write_values(text, index, values)
    for reduction in sweep.reductions:
        _accumulate(text, index, reduction)
    for output in sweep.stores:
        text.line(f"o_{output.argument}[k] = {text.stored(output)};")
    _write_keeps(text, index)
    text.close()
    for slot in in_shared:
        text.line(f"rl_store<VEC, 16, RL_PLAIN>(keep{slot} + (c - begin), w{slot});")
    for reduction in sweep.reductions:
        if reduction.kind == "online":
            text.line(f"sums{index}.a{reduction.target.id}.add(x{reduction.target.id});")
    for output in sweep.stores:
        _store(text, output)


def _write_vectors(text: CudaText, index: int, in_shared: list[int]) -> None:
    """Write the arrays and counts of a whole vector."""
    sweep = text.plan.sweeps[index]
    for output in sweep.stores:
        text.line(f"{C_TYPES[output.dtype]} o_{output.argument}[VEC];")
    for slot in in_shared:
        text.line(f"float w{slot}[VEC];")
    for reduction in sweep.reductions:
        if reduction.kind == "online":
            text.line(f"float x{reduction.target.id}[VEC];")
        elif reduction.kind == "moments":
            text.line(f"own{reduction.target.id}.count += VEC;")


def _write_values(text: CudaText, index: int, values: list[Value]) -> None:
    reads = text.keeps.reads[index]
    in_shared = text.has(Structure.SHARED)
    for value in values:
        if value.id in reads:
            slot = reads[value.id]
            text.declare(value, f"k{slot}[u][k]" if in_shared else f"keep{slot}[base + u][k]")
        elif value.load is not None:
            text.declare(value, text.converted(value.load, f"l{value.id}[u][k]"))
        else:
            text.declare(value, text.expression(value))


def _write_keeps(text: CudaText, index: int) -> None:
    """Keep values at the end of a step: a value may take the slot of one that this step reads for the last time."""
    for value, slot in text.keeps.writes[index].items():
        to = f"w{slot}[k]" if text.has(Structure.SHARED) else f"keep{slot}[base + u][k]"
        text.line(f"{to} = v{value};")


def _accumulate(text: CudaText, index: int, reduction: Reduction) -> None:
    target, value = reduction.target.id, text.name(reduction.expression)
    if register_type(reduction.expression.ctype) != "float":
        value = f"static_cast<float>({value})"
    if reduction.kind == "moments":
        text.line(f"if (base + u == 0 && k == 0) own{target}.shift = {value};")
        text.line(f"own{target}.add({value});")
    elif reduction.kind == "online":
        text.line(f"x{target}[k] = {value};")
    else:
        kind = f"rl_{reduction.kind}"
        text.line(f"sums{index}.a{target}.merge({kind}{{{value}}});")


def _store(text: CudaText, output: Output) -> None:
    kind = "RL_STREAMING" if text.has(Structure.STREAM) else "RL_PLAIN"
    align = output_alignment(text.program, output.dtype)
    text.line(f"rl_store<VEC, {align}, {kind}>({output.argument}_to + c, o_{output.argument});")
