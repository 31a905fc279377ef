"""The CUDA kernel whose warps, blocks, clusters or grid take a row at once."""

from __future__ import annotations

from ridgeline.graph.offline.program.schedule import evaluated
from ridgeline.graph.offline.rowwise.cuda.geometry import Mode
from ridgeline.graph.offline.rowwise.cuda.rows import (
    kernel_parameters,
    write_place,
    write_pointers,
    write_results,
    write_row_outputs,
    write_row_values,
)
from ridgeline.graph.offline.rowwise.cuda.structures import Structure
from ridgeline.graph.offline.rowwise.cuda.sweeps import write_sweep
from ridgeline.graph.offline.rowwise.cuda.text import CudaText
from ridgeline.graph.offline.text.addresses import row_start
from ridgeline.tools.records.dtypes import element_bytes

ROW_LOOPS = {
    Mode.WARP: "blockIdx.x * static_cast<int64_t>(THREADS / 32) + threadIdx.x / 32",
    Mode.BLOCK: "blockIdx.x",
    Mode.CLUSTER: "blockIdx.x / PARTS",
    Mode.GRID: "blockIdx.x % TEAMS",
}
ROW_STEPS = {
    Mode.WARP: "gridDim.x * static_cast<int64_t>(THREADS / 32)",
    Mode.BLOCK: "gridDim.x",
    Mode.CLUSTER: "gridDim.x / PARTS",
    Mode.GRID: "TEAMS",
}


def write_whole_rows(text: CudaText) -> None:
    """Write the one kernel."""
    mode = text.geometry.mode
    bounds = "THREADS, BLOCKS_EACH" if _has_bound(text) else "THREADS"
    dims = "__cluster_dims__(PARTS, 1, 1) " if mode is Mode.CLUSTER else ""
    text.open(f"__global__ void {dims}__launch_bounds__({bounds}) rl_rows(\n    {kernel_parameters(text)})")
    write_place(text)
    _write_shared(text)
    text.line("#pragma unroll 1")
    text.open(f"for (int64_t row = {ROW_LOOPS[mode]}; row < ROWS; row += {ROW_STEPS[mode]})")
    if text.staged:
        text.line("const int stage = turn % STAGES;")
        text.line("rl_barrier_wait(&full[stage], turn / STAGES % 2);")
    write_pointers(text)
    if text.has(Structure.REGISTERS):
        for slot in range(text.keeps.slots):
            text.line(f"float keep{slot}[STEPS][VEC];")
    write_row_values(text, 0, ())
    released = _last_staged(text)
    for index, sweep in enumerate(text.plan.sweeps):
        write_sweep(text, index)
        if text.staged and index == released:
            _write_fetch_ahead(text)
        if sweep.reductions:
            _write_meeting(text, index)
            write_results(text, index)
    write_row_outputs(text)
    if _has_turn(text):
        text.line("++turn;")
    text.close()
    text.close()


def _has_bound(text: CudaText) -> bool:
    registers = text.has(Structure.REGISTERS) and text.geometry.mode is not Mode.WARP
    return registers or text.geometry.mode is Mode.GRID


def _has_turn(text: CudaText) -> bool:
    return bool(text.staged) or text.is_mode(Mode.CLUSTER, Mode.GRID)


def _write_shared(text: CudaText) -> None:
    """Write a block's shared memory and the first copies into it."""
    mode = text.geometry.mode
    if text.staged or text.has(Structure.SHARED):
        text.line("extern __shared__ __align__(128) unsigned char shared[];")
    if text.has(Structure.SHARED):
        own = " + threadIdx.x / 32 * WIDTH" if mode is Mode.WARP else ""
        for slot in range(text.keeps.slots):
            text.line(
                f"float* keep{slot} = reinterpret_cast<float*>(shared) + {slot} * (THREADS / GROUP) * WIDTH{own};"
            )
    _write_meeting_places(text)
    if _has_turn(text):
        text.line("int turn = 0;")
    if mode is Mode.GRID:
        text.line("const int team = static_cast<int>(blockIdx.x % TEAMS);")
        text.line("unsigned meetings = 0;")
    if mode is Mode.CLUSTER:
        text.line("rl_cluster_sync();  // every block of the cluster has started")
    if text.staged:
        _write_first_fetches(text)


def _write_meeting_places(text: CudaText) -> None:
    """Write the places where warps and blocks leave their sums; as bytes, since sums have constructors."""
    mode = text.geometry.mode
    for index, sweep in enumerate(text.plan.sweeps):
        if sweep.reductions and mode is not Mode.WARP:
            text.line(f"__shared__ alignas(16) char scratch{index}[(THREADS / 32) * sizeof(Sums{index})];")
        if sweep.reductions and mode is Mode.CLUSTER:
            text.line(f"__shared__ alignas(16) char board{index}[2 * PARTS * sizeof(Sums{index})];")


def _write_first_fetches(text: CudaText) -> None:
    mode = text.geometry.mode
    text.line("__shared__ alignas(8) uint64_t full[STAGES];")
    text.open("if (threadIdx.x == 0)")
    text.line("for (int i = 0; i < STAGES; ++i) rl_barrier_init(&full[i]);")
    text.close()
    text.line("__syncthreads();")
    text.open("auto fetch = [&](int64_t row, int stage)")
    text.line("const unsigned count = static_cast<unsigned>(end - begin);")
    per_column = sum(element_bytes(load.dtype) for load in text.staged)
    text.line(f"rl_barrier_expect(&full[stage], count * {per_column});")
    text.open("if (count > 0)")
    for load in text.staged:
        at = f"shared + stage * STAGE_BYTES + {text.pointers[load]}_byte"
        start = f"{load.argument}_data + {row_start(load, text.program.rows)} + begin"
        text.line(f"rl_bulk({at}, {start}, count * {element_bytes(load.dtype)}, &full[stage]);")
    text.close()
    text.close(";")
    text.open("if (threadIdx.x == 0)")
    text.open("for (int i = 0; i < STAGES; ++i)")
    text.line(f"const int64_t row = {ROW_LOOPS[mode]} + i * static_cast<int64_t>({ROW_STEPS[mode]});")
    text.line("if (row < ROWS) fetch(row, i);")
    text.close()
    text.close()


def _last_staged(text: CudaText) -> int:
    """Return the last sweep that reads the copy engine's stage."""
    last = 0
    for index, sweep in enumerate(text.plan.sweeps):
        reads = text.keeps.reads[index]
        if any(v.load in text.staged and v.id not in reads for v in evaluated(sweep.roots(), reads)):
            last = index
    return last


def _write_fetch_ahead(text: CudaText) -> None:
    step = ROW_STEPS[text.geometry.mode]
    text.line("__syncthreads();  // all have read this stage")
    text.line(f"const int64_t ahead = row + STAGES * static_cast<int64_t>({step});")
    text.line("if (threadIdx.x == 0 && ahead < ROWS) fetch(ahead, stage);")


def _write_meeting(text: CudaText, index: int) -> None:
    """Write the exchange after which every thread of a row has a sweep's sums of the whole row."""
    sums, mode = f"sums{index}", text.geometry.mode
    if mode is Mode.WARP:
        text.line(f"{sums} = rl_lanes<32>({sums});")
        return
    scratch = f"reinterpret_cast<Sums{index}*>(scratch{index})"
    text.line(f"{sums} = rl_all<THREADS>({sums}, {scratch});")
    if mode is Mode.CLUSTER:
        board = f"reinterpret_cast<Sums{index}*>(board{index}) + turn % 2 * PARTS"
        text.line(f"{sums} = rl_cluster<PARTS>({sums}, {board}, part);")
    if mode is Mode.GRID:
        count = len(text.plan.sweeps)
        text.open("")
        text.line(f"float* place = board + 64 + ((turn % 2 * {count} + {index}) * TEAMS + team) * (PARTS * WORDS);")
        text.line(f"if (threadIdx.x == 0) rl_put(place + part * WORDS, {sums});")
        text.line("rl_team_sync(reinterpret_cast<unsigned*>(board) + team, ++meetings * PARTS);")
        text.line(f"{sums} = rl_gather<THREADS, PARTS, WORDS>(place, {scratch});")
        text.close()
