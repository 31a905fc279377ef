"""The entry point of a CUDA source: the kernels in order, their blocks, their shared memory."""

from __future__ import annotations

from ridgeline.graph.offline.rowwise.cuda.geometry import Mode
from ridgeline.graph.offline.rowwise.cuda.split_rows import board_values
from ridgeline.graph.offline.rowwise.cuda.structures import Structure
from ridgeline.graph.offline.rowwise.cuda.text import CudaText
from ridgeline.graph.offline.text.frame import prototype
from ridgeline.tools.records.vocabulary import ArgKind

WORKSPACE = 'extern "C" size_t workspace_bytes() { return BOARD_FLOATS * sizeof(float); }'
"""The workspace is a board of floats in device memory."""


def write_board(text: CudaText) -> None:
    """Write the layout of the workspace, before the kernels that use it."""
    sizes = [f"sizeof(Sums{i})" for i, sweep in enumerate(text.plan.sweeps) if sweep.reductions]
    if not sizes or not text.is_mode(Mode.GRID, Mode.SPLIT):
        return
    largest = sizes[0]
    for size in sizes[1:]:
        largest = f"({largest} > {size} ? {largest} : {size})"
    text.line(f"constexpr int WORDS = static_cast<int>({largest} / 4);  // of a part's sums on the board")
    if text.is_mode(Mode.GRID):
        text.line("// 64 words of counters, then two boards in turn for each sweep")
        count = 2 * len(text.plan.sweeps)
        text.line(f"constexpr size_t BOARD_FLOATS = 64 + static_cast<size_t>({count}) * TEAMS * PARTS * WORDS;")
    else:
        text.line(f"constexpr int ROW_VALUES = {len(board_values(text))};")
        text.line("constexpr int64_t VALUES = ROWS * PARTS * WORDS;  // where they begin")
        text.line("constexpr size_t BOARD_FLOATS = static_cast<size_t>(VALUES + ROWS * ROW_VALUES);")


def write_run(text: CudaText) -> None:
    """Write `run` and, with a board, `workspace_bytes`."""
    has_board = text.is_mode(Mode.GRID, Mode.SPLIT) and any(s.reductions for s in text.plan.sweeps)
    if has_board:
        text.line(WORKSPACE)
    text.open(prototype(text.signature, "[[maybe_unused]] void* workspace", "cudaStream_t stream"))
    text.line(f"float* board = {'static_cast<float*>(workspace)' if has_board else 'nullptr'};")
    if text.is_mode(Mode.SPLIT):
        _write_split(text)
    elif text.is_mode(Mode.GRID):
        _write_grid(text)
    else:
        _write_rows(text)
    text.close()


def _arguments(text: CudaText) -> str:
    names = [
        f"{a.name}_{'value' if a.kind is ArgKind.SCALAR else 'data'}"
        for a in text.signature.args
        if a.kind is not ArgKind.NONE
    ]
    return ", ".join([*names, "board"])


def _write_split(text: CudaText) -> None:
    arguments = _arguments(text)
    for index, sweep in enumerate(text.plan.sweeps):
        blocks = "static_cast<unsigned>(ROWS / ROW_BLOCK * PARTS)"
        text.line(f"rl_sweep{index}<<<{blocks}, THREADS, 0, stream>>>({arguments});")
        if sweep.reductions:
            text.line(f"rl_finish{index}<<<static_cast<unsigned>(ROWS), THREADS, 0, stream>>>({arguments});")


def _write_more_shared(text: CudaText) -> None:
    if text.staged or text.has(Structure.SHARED):
        text.line("static const cudaError_t more_shared =")
        text.line("    cudaFuncSetAttribute(rl_rows, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES);")
        text.line("if (more_shared != cudaSuccess) return;  // the launch would fail, and the outputs say so")


def _write_grid(text: CudaText) -> None:
    """Write a launch that only succeeds when all blocks are resident at once: they wait for each other."""
    _write_more_shared(text)
    text.line("cudaMemsetAsync(board, 0, 64 * sizeof(float), stream);")
    text.line("cudaLaunchConfig_t config = {};")
    text.line("config.gridDim = dim3(PARTS * TEAMS);")
    text.line("config.blockDim = dim3(THREADS);")
    text.line("config.dynamicSmemBytes = SHARED_BYTES;")
    text.line("config.stream = stream;")
    text.line("cudaLaunchAttribute attribute = {};")
    text.line("attribute.id = cudaLaunchAttributeCooperative;")
    text.line("attribute.val.cooperative = 1;")
    text.line("config.attrs = &attribute;")
    text.line("config.numAttrs = 1;")
    text.line(f"cudaLaunchKernelEx(&config, rl_rows, {_arguments(text)});")


def _write_rows(text: CudaText) -> None:
    _write_more_shared(text)
    rows_each = "THREADS / 32" if text.is_mode(Mode.WARP) else "1"
    text.line(f"constexpr int64_t NEEDED = (ROWS + {rows_each} - 1) / ({rows_each});")
    blocks = "NEEDED"
    if text.has(Structure.PERSIST) or text.staged:
        _write_resident(text)
        blocks = "(NEEDED < resident ? NEEDED : resident)"
    text.line(f"const unsigned blocks = static_cast<unsigned>({blocks} * PARTS);")
    text.line(f"rl_rows<<<blocks, THREADS, SHARED_BYTES, stream>>>({_arguments(text)});")


def _write_resident(text: CudaText) -> None:
    """Write how many rows the device works on at once."""
    text.open("static const int64_t resident = []")
    text.line("int count = 0;")
    if text.is_mode(Mode.CLUSTER):
        text.line("cudaLaunchConfig_t config = {};")
        text.line("config.gridDim = dim3(PARTS);")
        text.line("config.blockDim = dim3(THREADS);")
        text.line("config.dynamicSmemBytes = SHARED_BYTES;")
        text.line("cudaLaunchAttribute attribute = {};")
        text.line("attribute.id = cudaLaunchAttributeClusterDimension;")
        text.line("attribute.val.clusterDim.x = PARTS;")
        text.line("attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;")
        text.line("config.attrs = &attribute;")
        text.line("config.numAttrs = 1;")
        text.line("cudaOccupancyMaxActiveClusters(&count, rl_rows, &config);")
    else:
        text.line("cudaOccupancyMaxActiveBlocksPerMultiprocessor(&count, rl_rows, THREADS, SHARED_BYTES);")
        text.line("count *= MULTIPROCESSORS;")
    text.line("return static_cast<int64_t>(count > 0 ? count : 1);")
    text.close("();")
