"""The CUDA kernels of split rows: one for each sweep over parts, one that finishes each sweep's sums."""

from __future__ import annotations

from ridgeline.graph.offline.program.ir import Value
from ridgeline.graph.offline.rowwise.cuda.rows import (
    kernel_parameters,
    write_place,
    write_pointers,
    write_results,
    write_row_outputs,
    write_row_pointer,
    write_row_values,
)
from ridgeline.graph.offline.rowwise.cuda.sweeps import write_sweep
from ridgeline.graph.offline.rowwise.cuda.text import CudaText


def write_split_rows(text: CudaText) -> None:
    """Write the kernels in the order of their launch."""
    last = len(text.plan.sweeps) - 1
    for index, sweep in enumerate(text.plan.sweeps):
        _write_part(text, index, is_last=index == last and not sweep.reductions)
        if sweep.reductions:
            _write_finish(text, index, is_last=index == last)


def board_values(text: CudaText) -> list[Value]:
    """Return the per-row values that a split row's later kernels read, in their places on the board."""
    return [v for v in text.plan.row_values if text.plan.level[v.id] > 0 and v.op not in ("literal", "scalar")]


def _write_part(text: CudaText, index: int, *, is_last: bool) -> None:
    sweep = text.plan.sweeps[index]
    text.open(f"__global__ void __launch_bounds__(THREADS) rl_sweep{index}(\n    {kernel_parameters(text)})")
    # Every other sweep goes backwards: the end of the previous sweep is still in the second-level cache.
    text.line(f"const int64_t index = {'gridDim.x - 1 - blockIdx.x' if index % 2 else 'blockIdx.x'};")
    write_place(text)
    if sweep.reductions:
        text.line(f"__shared__ alignas(16) char scratch{index}[(THREADS / 32) * sizeof(Sums{index})];")
    text.line("const int64_t first = index / PARTS * ROW_BLOCK;")
    text.line("#pragma unroll 1")
    text.open("for (int64_t row = first; row < first + ROW_BLOCK; ++row)")
    write_pointers(text)
    write_row_values(text, 0, ())
    _write_board_reads(text, index)
    write_sweep(text, index)
    if sweep.reductions:
        text.line(f"sums{index} = rl_all<THREADS>(sums{index}, reinterpret_cast<Sums{index}*>(scratch{index}));")
        text.line(f"if (thread == 0) rl_put(board + (row * PARTS + part) * WORDS, sums{index});")
    if is_last:
        write_row_outputs(text)
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
    write_row_values(text, 0, ())
    _write_board_reads(text, index)
    write_results(text, index)
    text.open("if (thread == 0 && part == 0)")
    for place, value in enumerate(board_values(text)):
        if text.plan.level[value.id] == index + 1:
            text.line(f"board[VALUES + row * ROW_VALUES + {place}] = static_cast<float>(v{value.id});")
    text.close()
    if is_last:
        write_row_outputs(text)
    text.close()


def _write_row_loads(text: CudaText) -> None:
    for load, name in text.pointers.items():
        if not load.col_stride:
            write_row_pointer(text, load, name)


def _write_board_reads(text: CudaText, index: int) -> None:
    """Write the per-row values that earlier sweeps left on the board."""
    for place, value in enumerate(board_values(text)):
        if 0 < text.plan.level[value.id] <= index:
            text.declare(value, f"board[VALUES + row * ROW_VALUES + {place}]")
