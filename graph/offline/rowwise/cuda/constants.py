"""The constants of a CUDA kernel: sizes, tunables, and how a row falls to parts, threads and steps."""

from __future__ import annotations

from ridgeline.graph.offline.rowwise.cuda.geometry import (
    GRID_THREADS,
    MAX_CLUSTER,
    Mode,
    row_bytes,
    vectors,
    width_of,
)
from ridgeline.graph.offline.rowwise.cuda.structures import Structure
from ridgeline.graph.offline.rowwise.cuda.text import CudaText
from ridgeline.graph.offline.text.frame import choice
from ridgeline.tools.records.dtypes import element_bytes
from ridgeline.tools.records.problem import Device


def write_constants(text: CudaText, device: Device) -> None:
    """Write everything before the native helpers."""
    for line in ('#include "problem.h"', "", "#include <cstdint>", "#include <cstring>", ""):
        text.line(line)
    text.line("#define RL_INFINITY __builtin_inff()")
    text.line(f"#define RL_EXP {'rl_exp' if text.has(Structure.FAST) else 'expf'}")
    if text.has(Structure.FAST) and text.has(Structure.ONLINE):
        text.line("__device__ __forceinline__ float rl_exp(float x);")
    text.line("")
    text.line(f"constexpr int64_t ROWS = {text.program.rows};")
    text.line(f"constexpr int COLS = {text.program.cols};")
    _tunables(text, device)
    _layout(text, device)
    _on_chip(text, device)


def _tunables(text: CudaText, device: Device) -> None:
    geometry = text.geometry
    _tunable(text, "THREADS", geometry.threads, _thread_options(text, device))
    if text.has(Structure.VECTOR):
        _tunable(text, "VEC", geometry.vector, sorted(v for v in vectors(text.program) if v > 1))
    else:
        text.line("constexpr int VEC = 1;  // columns a thread takes at once")
    _tunable(text, "UNROLL", _unroll(text), [1, 2, 4, 8])
    if geometry.mode is Mode.CLUSTER:
        _tunable(text, "CLUSTER", geometry.parts, [c for c in (2, 4, MAX_CLUSTER) if c >= geometry.least_parts])
    if geometry.mode is Mode.SPLIT:
        around = sorted({max(geometry.parts >> 1, 1), geometry.parts, geometry.parts << 1})
        _tunable(text, "SPLIT", geometry.parts, around)
        _tunable(text, "ROW_BLOCK", geometry.row_block, [r for r in (1, 2, 4, 8, 16) if text.program.rows % r == 0])
    if geometry.mode is Mode.GRID and not _holds(text):
        _tunable(text, "TEAMS", geometry.teams, [1, 2, 4])
    if geometry.stages and geometry.mode is not Mode.GRID:
        _tunable(text, "AHEAD", geometry.stages, [1, 2, 3])


def _tunable(text: CudaText, name: str, value: int, values: list[int]) -> None:
    text.line(choice(name, value, values))


def _holds(text: CudaText) -> bool:
    return bool(text.keeps.slots or text.staged)


def _thread_options(text: CudaText, device: Device) -> list[int]:
    geometry = text.geometry
    if geometry.mode is Mode.WARP:
        in_shared = text.keeps.slots * text.program.cols * 4 if text.has(Structure.SHARED) else 0
        return [t for t in (64, 128, 256) if t // 32 * in_shared <= row_bytes(device)]
    if geometry.mode is Mode.GRID:
        return [GRID_THREADS] if _holds(text) else [256, 512, 1024]
    width = width_of(text.program.cols, geometry.least_parts)
    kept = text.keeps.slots * width if text.has(Structure.REGISTERS) else 0
    options = [t for t in (64, 128, 256, 512, 1024) if kept <= 128 * t and t * geometry.vector < 2 * width]
    return sorted({*options, geometry.threads})


def _unroll(text: CudaText) -> int:
    """Return the number of vectors that a thread loads before it uses the first: 32 registers, 16 beside a kept row."""
    registers = 16 if text.has(Structure.REGISTERS) else 32
    wanted = registers // text.geometry.vector
    return next((u for u in (8, 4, 2) if u <= wanted), 1)


def _layout(text: CudaText, device: Device) -> None:
    geometry = text.geometry
    if geometry.mode is Mode.GRID or (geometry.mode is not Mode.CLUSTER and _is_resident(text)):
        text.line(f"constexpr int MULTIPROCESSORS = {device.cores};")
    text.line(f"constexpr int GROUP = {'32' if geometry.mode is Mode.WARP else 'THREADS'};  // threads of one part")
    if geometry.mode is Mode.GRID:
        if _holds(text):
            text.line("constexpr int TEAMS = 1;")
        text.line(f"constexpr int BLOCKS_EACH = {GRID_THREADS} / THREADS;")
    parts = {
        Mode.CLUSTER: "CLUSTER",
        Mode.SPLIT: "SPLIT",
        Mode.GRID: "MULTIPROCESSORS * BLOCKS_EACH / TEAMS",
    }.get(geometry.mode, "1")
    text.line(f"constexpr int PARTS = {parts};  // blocks that share a row")
    text.line("constexpr int WIDTH = PARTS == 1 ? COLS : (COLS + 32 * PARTS - 1) / (32 * PARTS) * 32;")
    text.line("constexpr int STEPS = (WIDTH + GROUP * VEC - 1) / (GROUP * VEC);")
    text.open("__host__ __device__ constexpr int rl_batch(int loads)")
    text.line("// vectors of a thread under way at once, of a sweep that loads so many tensors")
    text.line("return UNROLL / loads < 1 ? 1 : UNROLL / loads < STEPS ? UNROLL / loads : STEPS;")
    text.close()
    text.line(
        "constexpr bool EXACT = static_cast<int64_t>(PARTS) * WIDTH == COLS && STEPS * GROUP * VEC == WIDTH;"
        "  // no thread is ever past the end"
    )


def _is_resident(text: CudaText) -> bool:
    return bool(text.staged) or text.has(Structure.PERSIST)


def _on_chip(text: CudaText, device: Device) -> None:
    if text.has(Structure.REGISTERS) and not text.is_mode(Mode.WARP, Mode.GRID):
        text.line(f"constexpr int KEPT = {text.keeps.slots} * STEPS * VEC;  // registers of each thread")
        text.line("constexpr int BLOCKS_EACH = KEPT <= 32 && THREADS < 1024 ? 1024 / THREADS : 1;")
    at = "0"
    for load in text.staged:
        name = text.pointers[load]
        text.line(f"constexpr int {name}_byte = {at};")
        at = f"{name}_byte + (WIDTH * {element_bytes(load.dtype)} + 127) / 128 * 128"
    if text.staged:
        text.line(f"constexpr int STAGE_BYTES = {at};")
        ahead = f"AHEAD * STAGE_BYTES <= {row_bytes(device)} ? AHEAD : 1"
        text.line(f"constexpr int STAGES = {'1' if text.is_mode(Mode.GRID) else ahead};")
    shared = "0"
    if text.staged:
        shared = "STAGES * STAGE_BYTES"
    elif text.has(Structure.SHARED):
        shared = f"THREADS / GROUP * {text.keeps.slots} * WIDTH * 4"
    if not text.is_mode(Mode.SPLIT):
        text.line(f"constexpr int SHARED_BYTES = {shared};  // of each block")
