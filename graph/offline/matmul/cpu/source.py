"""C++ for a contraction: packed panels, sums in vector registers, tiles shared among threads."""

from __future__ import annotations

from ridgeline.graph.offline.matmul.cpu.structures import Structure
from ridgeline.graph.offline.matmul.extents import batch_offset, extents
from ridgeline.graph.offline.matmul.kernel import Kernel
from ridgeline.graph.offline.text.epilogue import epilogue_made, epilogue_text
from ridgeline.graph.offline.text.frame import prototype
from ridgeline.graph.offline.text.sections import native_sections
from ridgeline.tools.build.header import C_TYPES

NO_LIMIT = 1 << 30
AHEAD_LINES = "__builtin_prefetch(right + (k + PREFETCH_STEPS) * NR);"


def write_source(kernel: Kernel) -> str:
    """Return the whole source but its first line."""
    native = native_sections("ridgeline.graph.offline.matmul", "cpu.h")
    epilogue = kernel.contraction.epilogue
    parts = [
        *_head(kernel),
        "",
        epilogue_text(epilogue, cuda=False, inline=kernel.has(Structure.POLY)),
        *_offsets(kernel),
    ]
    parts += [native["finish"]]
    parts += _tiled(kernel, native) if kernel.has(Structure.PANELS) else [native["rows"]]
    return "\n".join([*parts, _run(kernel)])


def _has_pairs(kernel: Kernel) -> bool:
    """Tell whether panels hold pairs of bf16."""
    return kernel.has(Structure.DOT) and kernel.contraction.dtype == "bfloat16"


def _head(kernel: Kernel) -> list[str]:
    contraction = kernel.contraction
    lines = ['#include "problem.h"', "", "#include <omp.h>", "", "#include <algorithm>", "#include <cmath>"]
    lines += ["#include <cstdint>"]
    lines += ["#include <immintrin.h>"] if kernel.has(Structure.PANELS) and _has_pairs(kernel) else []
    lines += ["", f"using Element = {C_TYPES[contraction.dtype]};"]
    lines += [f"using Output = {C_TYPES[contraction.epilogue.output.dtype]};"]
    lines += extents(contraction, "int64_t")
    return lines


def _offsets(kernel: Kernel) -> list[str]:
    lines = []
    for name, operand in (("left", kernel.contraction.left), ("right", kernel.contraction.right)):
        parameter = "int64_t batch" if operand.batch_terms else "int64_t"
        value = batch_offset(operand, kernel.contraction.batch)
        lines.append(f"static inline int64_t {name}_offset({parameter}) {{ return {value}; }}")
    return [*lines, ""]


def _tiled(kernel: Kernel, native: dict[str, str]) -> list[str]:
    right_batches = "BATCH" if kernel.contraction.right.batch_terms else "1"
    lines = [f"using Packed = {'uint32_t' if _has_pairs(kernel) else 'float'};"]
    lines += [f"constexpr int64_t PER_PACKED = {2 if _has_pairs(kernel) else 1}, RIGHT_BATCHES = {right_batches};"]
    lines += [kernel.choose("VECTORS", (2, 3, 4), (1, 2, 3, 4)), *_tile_sizes(kernel)]
    ahead = kernel.has(Structure.PREFETCH)
    lines += [kernel.choose("PREFETCH_STEPS", (8, 16, 32), (4, 8, 16, 32))] if ahead else []
    pairs = "_pairs" if _has_pairs(kernel) else ""
    products = native[f"products{pairs}"].replace("    @PREFETCH@\n", f"    {AHEAD_LINES}\n" if ahead else "")
    return [*lines, "", native["vectors"], products, native[f"pack{pairs}"], native["sizes"], _product(kernel, native)]


def _tile_sizes(kernel: Kernel) -> list[str]:
    has_depths, has_tiles = kernel.has(Structure.DEPTHS), kernel.has(Structure.TILES)
    lines = [kernel.choose("K_BLOCK", (384, 256, 768), (128, 256, 384, 512, 768)) if has_depths else _free("K_BLOCK")]
    lines += [
        kernel.choose("TILE_PANELS", (8, 4, 16), (2, 4, 8, 16)) if has_depths or has_tiles else _one("TILE_PANELS")
    ]
    lines += [kernel.choose("TILE_COL_PANELS", (8, 16, 4), (4, 8, 16, 32)) if has_tiles else _free("TILE_COL_PANELS")]
    lines += [kernel.choose("SPLITS", (2, 4, 8), (2, 4, 8)) if kernel.has(Structure.SPLIT) else _one("SPLITS")]
    return lines + ([kernel.choose("CHUNK", (1, 2, 4), (1, 2, 4))] if kernel.has(Structure.DYNAMIC) else [])


def _free(name: str) -> str:
    return f"constexpr int {name} = {NO_LIMIT};"


def _one(name: str) -> str:
    return f"constexpr int {name} = 1;"


def _product(kernel: Kernel, native: dict[str, str]) -> str:
    is_split = kernel.has(Structure.SPLIT)
    threads = "static_cast<size_t>(omp_get_max_threads())"
    parts = f"reinterpret_cast<float*>(workspace + RIGHT_BYTES + LEFT_BYTES * {threads})"
    own = "reinterpret_cast<float*>(own + LEFT_BYTES)"
    filled = {
        "@OWN_SUMS@": "0" if is_split else "SUMS_BYTES",
        "@SCHEDULE@": "dynamic, CHUNK" if kernel.has(Structure.DYNAMIC) else "static",
        "@SUMS@": "parts + task * TM * TN" if is_split else own,
        "      @FINISH@\n": "" if is_split else native["finish_tile"],
        "    @ADD@\n": native["add_parts"] if is_split else "",
    }
    text = native["tiled"]
    for mark, value in filled.items():
        text = text.replace(mark, value)
    if is_split:
        first = "  Packed* const packed_right"
        text = text.replace(first, f"  float* const parts = {parts};\n{first}", 1)
    return text


def _run(kernel: Kernel) -> str:
    contraction = kernel.contraction
    epilogue = contraction.epilogue
    arguments = [f"{contraction.left.argument}_data", f"{contraction.right.argument}_data", epilogue_made(epilogue)]
    arguments += [f"{epilogue.output.argument}_data"]
    arguments += ["static_cast<char*>(workspace)"] if kernel.has(Structure.PANELS) else []
    workspace = "void* workspace" if kernel.has(Structure.PANELS) else "void*"
    lines = [prototype(kernel.signature, workspace) + " {"]
    lines += [f"  product({', '.join(arguments)});", "}", ""]
    if kernel.has(Structure.PANELS):
        own = "LEFT_BYTES" if kernel.has(Structure.SPLIT) else "(LEFT_BYTES + SUMS_BYTES)"
        size = f"RIGHT_BYTES + {own} * static_cast<size_t>(omp_get_max_threads())"
        size += " + SUMS_BYTES * TILES * SPLITS" if kernel.has(Structure.SPLIT) else ""
        lines += [f'extern "C" size_t workspace_bytes() {{ return {size}; }}', ""]
    return "\n".join(lines)
