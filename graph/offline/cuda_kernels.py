"""The kernels: the loop over rows, where a sweep's sums meet, and what is known once for each row."""

from __future__ import annotations

from collections.abc import Iterable

from ridgeline.graph.offline.arithmetic import literal
from ridgeline.graph.offline.cuda_geometry import Mode
from ridgeline.graph.offline.cuda_structures import CudaStructure
from ridgeline.graph.offline.cuda_sweeps import write_sweep
from ridgeline.graph.offline.cuda_text import CudaText
from ridgeline.graph.offline.emit_cpp import row_offset
from ridgeline.graph.offline.ir import REDUCTIONS, Load, Space, Value
from ridgeline.graph.offline.schedule import evaluated
from ridgeline.graph.offline.source_frame import memory_type, parameters
from ridgeline.tools.build.header import C_TYPES
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
PART = {Mode.CLUSTER: "blockIdx.x % PARTS", Mode.GRID: "blockIdx.x / TEAMS", Mode.SPLIT: "index % PARTS"}


def write_kernels(text: CudaText) -> None:
    """Write one kernel; of a split row, one for each sweep and one that finishes each sweep's sums."""
    if text.geometry.mode is not Mode.SPLIT:
        _write_whole(text)
        return
    last = len(text.plan.sweeps) - 1
    for index, sweep in enumerate(text.plan.sweeps):
        _write_part(text, index, is_last=index == last and not sweep.reductions)
        if sweep.reductions:
            _write_finish(text, index, is_last=index == last)


def kernel_parameters(text: CudaText) -> str:
    """Return the parameters that every kernel of a source has."""
    return ",\n    ".join([*parameters(text.signature), "float* board"])


def board_values(text: CudaText) -> list[Value]:
    """Return the per-row values that a split row's later kernels read, in their places on the board."""
    return [v for v in text.plan.row_values if text.plan.level[v.id] > 0 and v.op not in ("literal", "scalar")]


# ------------------------------------------------------------------------------------------------- a row at once


def _write_whole(text: CudaText) -> None:
    mode = text.geometry.mode
    bounds = "THREADS, BLOCKS_EACH" if _has_bound(text) else "THREADS"
    dims = "__cluster_dims__(PARTS, 1, 1) " if mode is Mode.CLUSTER else ""
    text.open(f"__global__ void {dims}__launch_bounds__({bounds}) rl_rows(\n    {kernel_parameters(text)})")
    _write_place(text)
    _write_shared(text)
    text.line("#pragma unroll 1")
    text.open(f"for (int64_t row = {ROW_LOOPS[mode]}; row < ROWS; row += {ROW_STEPS[mode]})")
    if text.staged:
        text.line("const int stage = turn % STAGES;")
        text.line("rl_barrier_wait(&full[stage], turn / STAGES % 2);")
    _write_pointers(text)
    text.line("int at = begin + thread * VEC;")
    text.line('asm volatile("" : "+r"(at));  // known, every address would be kept from row to row, in registers')
    if text.has(CudaStructure.REGISTERS):
        for slot in range(text.keeps.slots):
            text.line(f"float keep{slot}[STEPS][VEC];")
    _write_row_values(text, 0, ())
    released = _last_staged(text)
    for index, sweep in enumerate(text.plan.sweeps):
        write_sweep(text, index)
        if text.staged and index == released:
            _write_fetch_ahead(text)
        if sweep.reductions:
            _write_meeting(text, index)
            _write_results(text, index)
    _write_row_outputs(text)
    if _has_turn(text):
        text.line("++turn;")
    text.close()
    text.close()


def _has_bound(text: CudaText) -> bool:
    registers = text.has(CudaStructure.REGISTERS) and text.geometry.mode is not Mode.WARP
    return registers or text.geometry.mode is Mode.GRID


def _has_turn(text: CudaText) -> bool:
    return bool(text.staged) or text.is_mode(Mode.CLUSTER, Mode.GRID)


def _write_place(text: CudaText) -> None:
    warp = text.geometry.mode is Mode.WARP
    text.line(f"const int thread = static_cast<int>(threadIdx.x{' % 32' if warp else ''});")
    text.line(f"const int part = static_cast<int>({PART.get(text.geometry.mode, '0')});")
    text.line("const int begin = part * WIDTH < COLS ? part * WIDTH : COLS;")
    text.line("[[maybe_unused]] const int end = COLS - begin < WIDTH ? COLS : begin + WIDTH;")


def _write_shared(text: CudaText) -> None:
    """Write what a block has in shared memory, and the first copies into it."""
    mode = text.geometry.mode
    if text.staged or text.has(CudaStructure.SHARED):
        text.line("extern __shared__ __align__(128) unsigned char shared[];")
    if text.has(CudaStructure.SHARED):
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
    """Write where warps and blocks leave their sums; bytes, since sums have constructors."""
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
        start = f"{load.argument}_data + {row_offset(load, text.program.rows)} + begin"
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
    """Return the last sweep that reads what the copy engine brought."""
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


def _write_pointers(text: CudaText) -> None:
    for load, name in text.pointers.items():
        ctype = memory_type(load)
        if load in text.staged:
            at = f"shared + stage * STAGE_BYTES + {name}_byte"
            text.line(f"const {ctype}* {name} = reinterpret_cast<const {ctype}*>({at});")
            continue
        _write_row_pointer(text, load, name)
    for output in text.full_outputs():
        ctype = C_TYPES[output.dtype]
        text.line(f"[[maybe_unused]] {ctype}* {output.argument}_to = {output.argument}_data + row * COLS;")


def _write_meeting(text: CudaText, index: int) -> None:
    """Write how every thread of a row gets a sweep's sums of the whole row."""
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


# --------------------------------------------------------------------------------------------------- split rows


def _write_part(text: CudaText, index: int, *, is_last: bool) -> None:
    sweep = text.plan.sweeps[index]
    text.open(f"__global__ void __launch_bounds__(THREADS) rl_sweep{index}(\n    {kernel_parameters(text)})")
    # Every other sweep goes backwards: what the one before read or wrote last is still in the second-level cache.
    text.line(f"const int64_t index = {'gridDim.x - 1 - blockIdx.x' if index % 2 else 'blockIdx.x'};")
    _write_place(text)
    if sweep.reductions:
        text.line(f"__shared__ alignas(16) char scratch{index}[(THREADS / 32) * sizeof(Sums{index})];")
    text.line("const int64_t first = index / PARTS * ROW_BLOCK;")
    text.line("#pragma unroll 1")
    text.open("for (int64_t row = first; row < first + ROW_BLOCK; ++row)")
    _write_pointers(text)
    text.line("int at = begin + thread * VEC;")
    text.line('asm volatile("" : "+r"(at));  // known, every address would be kept from row to row, in registers')
    _write_row_values(text, 0, ())
    _write_board_reads(text, index)
    write_sweep(text, index)
    if sweep.reductions:
        text.line(f"sums{index} = rl_all<THREADS>(sums{index}, reinterpret_cast<Sums{index}*>(scratch{index}));")
        text.line(f"if (thread == 0) rl_put(board + (row * PARTS + part) * WORDS, sums{index});")
    if is_last:
        _write_row_outputs(text)
    text.close()
    text.close()


def _write_finish(text: CudaText, index: int, *, is_last: bool) -> None:
    """Write the kernel that merges the parts' sums, one block for each row."""
    text.open(f"__global__ void __launch_bounds__(THREADS) rl_finish{index}(\n    {kernel_parameters(text)})")
    text.line("const int64_t row = blockIdx.x;")
    text.line("const int thread = static_cast<int>(threadIdx.x), part = 0;")
    text.line(f"__shared__ alignas(16) char scratch{index}[(THREADS / 32) * sizeof(Sums{index})];")
    scratch = f"reinterpret_cast<Sums{index}*>(scratch{index})"
    text.line(
        f"const Sums{index} sums{index} = rl_gather<THREADS, PARTS, WORDS>(board + row * PARTS * WORDS, {scratch});"
    )
    _write_row_loads(text)
    _write_row_values(text, 0, ())
    _write_board_reads(text, index)
    _write_results(text, index)
    text.open("if (thread == 0 && part == 0)")
    for place, value in enumerate(board_values(text)):
        if text.plan.level[value.id] == index + 1:
            text.line(f"board[VALUES + row * ROW_VALUES + {place}] = static_cast<float>(v{value.id});")
    text.close()
    if is_last:
        _write_row_outputs(text)
    text.close()


def _write_row_loads(text: CudaText) -> None:
    for load, name in text.pointers.items():
        if not load.col_stride:
            _write_row_pointer(text, load, name)


def _write_row_pointer(text: CudaText, load: Load, name: str) -> None:
    start = f"{load.argument}_data"
    if load.dtype == "bool":
        start = f"reinterpret_cast<const uint8_t*>({start})"
    text.line(f"[[maybe_unused]] const {memory_type(load)}* {name} = {start} + {row_offset(load, text.program.rows)};")


def _write_board_reads(text: CudaText, index: int) -> None:
    for place, value in enumerate(board_values(text)):
        if 0 < text.plan.level[value.id] <= index:
            text.declare(value, f"board[VALUES + row * ROW_VALUES + {place}]")


# ------------------------------------------------------------------------------------------------ per-row values


def _write_row_values(text: CudaText, level: int, done: Iterable[int]) -> None:
    """Write what is known once a row before the sweep numbered `level`."""
    for value in text.plan.row_values:
        is_here = text.plan.level[value.id] == level and value.id not in done
        if not is_here or value.op in ("literal", "scalar") or value.op in REDUCTIONS:
            continue
        if value.load is not None:
            text.declare(value, text.converted(value.load, f"{text.pointers[value.load]}[0]"))
        else:
            text.declare(value, text.expression(value))


def _write_results(text: CudaText, index: int) -> None:
    """Write a sweep's reductions as values, then everything that is made of them once a row."""
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
            for value in text.row_chain(reduction.shift):
                if value.id not in done:
                    text.declare(value, text.expression(value))
                    done.add(value.id)
            sums = f"sums{index}.a{reduction.target.id}"
            shift = text.name(reduction.shift)
            text.declare(reduction.target, f"{sums}.total * expf(rl_origin({sums}.top) - {shift})")
    _write_row_values(text, index + 1, done)


def _write_row_outputs(text: CudaText) -> None:
    outputs = [o for o in text.row_outputs() if not o.value.space & Space.COL]
    if outputs:
        text.open("if (thread == 0 && part == 0)")
        for output in outputs:
            text.line(f"{output.argument}_data[row] = {text.stored(output)};")
        text.close()
