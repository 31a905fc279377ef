"""CUDA for a contraction whose blocks multiply panels in registers or by warp-wide tensor core instructions."""

from __future__ import annotations

import math

from ridgeline.graph.offline.matmul.cuda.frame import attribute_line, head_lines, offset_lines
from ridgeline.graph.offline.matmul.cuda.structures import Structure
from ridgeline.graph.offline.matmul.kernel import Kernel
from ridgeline.graph.offline.text.epilogue import epilogue_made, epilogue_text
from ridgeline.graph.offline.text.frame import flag, prototype
from ridgeline.graph.offline.text.sections import native_sections
from ridgeline.tools.machine.occupancy import block_shared_bytes

SHAPES = {
    "float32": "m16n8k8.row.col.f32.tf32.tf32.f32",
    "float16": "m16n8k16.row.col.f32.f16.f16.f32",
    "bfloat16": "m16n8k16.row.col.f32.bf16.bf16.f32",
}


def write_blocks(kernel: Kernel) -> str:
    """Return the whole source but its first line."""
    native = native_sections("ridgeline.graph.offline.matmul", "cuda.h")
    contraction = kernel.contraction
    is_tensor = kernel.has(Structure.TENSOR)
    lines = head_lines(kernel)
    lines += _tiles(kernel) + _panels(kernel)
    lines += [
        kernel.choose("SPLITS", (4, 2, 8), (2, 4, 8, 16))
        if kernel.has(Structure.SPLIT)
        else "constexpr int SPLITS = 1;",
        "",
    ]
    sums = native["fragments"] if is_tensor else native["registers"]
    each = native["fragments_each_wide" if kernel.has(Structure.WIDE) else "fragments_each"]
    sums = sums.replace("@SHAPE@", SHAPES[contraction.dtype]).replace("@EACH@", each.rstrip())
    body = [
        epilogue_text(contraction.epilogue, cuda=True),
        *offset_lines(contraction),
        native["tiles"],
        native["store"],
    ]
    body += [native["panels"], *([native["exchange"]] if is_tensor and kernel.has(Structure.WIDE) else []), sums]
    body += [native["keep"]] if kernel.has(Structure.SPLIT) else []
    text = native["kernel"] if kernel.has(Structure.SPLIT) else _without_splits(native["kernel"])
    body += [text, *([native["add_parts"]] if kernel.has(Structure.SPLIT) else []), _block_run(kernel)]
    return "\n".join([*lines, *body])


def _without_splits(text: str) -> str:
    """Return the kernel that applies the epilogue to its own sums."""
    start, middle = text.index("    if constexpr (SPLITS > 1) {"), text.index("    } else {\n      sums.each")
    end = text.index("    }\n    wait_copies<0>")
    kept = text[middle + len("    } else {\n") : end]
    return text[:start] + "\n".join(line[2:] for line in kept.split("\n")) + text[end + len("    }\n") :]


def _fitting(kernel: Kernel, widths: tuple[int, ...], depths: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Return the values of BN and BK of which every pair leaves room for two panels of each operand.

    The widest tiles go first, then the deepest: 99 KiB hold no two panels of 128 + 256 lines of 32 floats.
    """
    size, pad = (kernel.contraction.element_bytes, 8) if kernel.has(Structure.TENSOR) else (4, 4)
    limit = block_shared_bytes(kernel.device.arch)
    while 2 * size * (128 + max(widths) + 2 * pad) * (max(depths) + pad) > limit and len(widths) + len(depths) > 2:
        widths, depths = (widths[:-1], depths) if max(widths) > 128 else (widths, depths[:-1])
    return widths, depths


def _tiles(kernel: Kernel) -> list[str]:
    contraction = kernel.contraction
    is_small = math.ceil(contraction.m / 128) * math.ceil(contraction.n / 128) * contraction.batch < kernel.device.cores
    wide = 64 if is_small else 128
    if not kernel.has(Structure.TENSOR):
        widths, depths = _fitting(kernel, (64, 128), (8, 16, 32))
        lines = [kernel.choose("BM", (wide, 128, 64), (64, 128)), kernel.choose("BN", (wide, 128, 128), widths)]
        lines += [kernel.choose("BK", (16, 8, 32), depths), "constexpr int THREADS = BM / 8 * (BN / 8);"]
        return lines
    starts = (32, 64) if contraction.element_bytes == 2 else (16, 32)
    widths, depths = _fitting(kernel, (64, 128, 256), starts)
    lines = [kernel.choose("BM", (wide, 128, 128), (64, 128))]
    lines += [kernel.choose("BN", (wide, 256, 128), widths), kernel.choose("BK", starts, depths)]
    lines += [kernel.choose("WM", (wide // 2, 64, 64), (32, 64)), kernel.choose("WN", (32, 64, 64), (32, 64))]
    return [*lines, "constexpr int THREADS = BM / WM * (BN / WN) * 32;"]


def _panels(kernel: Kernel) -> list[str]:
    contraction, is_tensor = kernel.contraction, kernel.has(Structure.TENSOR)
    copies_async = kernel.has(Structure.ASYNC) and (is_tensor or contraction.element_bytes == 4)
    stages = kernel.choose("MAX_STAGES", (3, 4, 2), (2, 3, 4)) if copies_async else "constexpr int MAX_STAGES = 2;"
    stages += f"\nconstexpr int SHARED_LIMIT = {block_shared_bytes(kernel.device.arch)};  // of a block on {kernel.device.arch}"
    pads = (16 // contraction.element_bytes, 8) if is_tensor else (4, 4)
    lines = [stages, f"constexpr bool ASYNC = {flag(is_set=copies_async)};"]
    lines += [f"constexpr int CHUNK = 16 / sizeof(Element), PAD_K = {pads[0]}, PAD_OUTER = {pads[1]};"]
    lines += [f"using Shared = {'Element' if is_tensor else 'float'};"]
    for name, operand in (("LEFT", contraction.left), ("RIGHT", contraction.right)):
        along_k = is_tensor and operand.is_k_major
        is_same = operand.is_k_major == along_k and (is_tensor or contraction.element_bytes == 4)
        chunked = is_same and contraction.is_chunked(operand) and (kernel.has(Structure.VECTOR) or copies_async)
        lines.append(
            f"constexpr bool {name}_ALONG_K = {flag(is_set=along_k)}, {name}_CHUNKED = {flag(is_set=chunked)};"
        )
    return lines


def _block_run(kernel: Kernel) -> str:
    contraction = kernel.contraction
    out, made = contraction.epilogue.output.argument, epilogue_made(contraction.epilogue)
    left, right = contraction.left.argument, contraction.right.argument
    workspace = "static_cast<float*>(workspace)" if kernel.has(Structure.SPLIT) else "nullptr"
    lines = [prototype(kernel.signature, "void* workspace", "cudaStream_t stream") + " {", attribute_line("matmul")]
    lines += [f"  const Epilogue epilogue = {made};"]
    blocks = "TILES"
    if kernel.has(Structure.PERSISTENT):
        lines += ["  int resident = 1;"]
        lines += ["  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, matmul, THREADS, SHARED_BYTES);"]
        lines += [f"  const int fitting = (resident > 0 ? resident : 1) * {kernel.device.cores};"]
        blocks = "TILES < fitting ? TILES : fitting"
    lines += [f"  const dim3 blocks({blocks}, SPLITS);"]
    lines += ["  matmul<<<blocks, THREADS, SHARED_BYTES, stream>>>("]
    lines += [f"      {left}_data, {right}_data, epilogue, {out}_data, {workspace});"]
    if kernel.has(Structure.SPLIT):
        lines += [f"  add_parts<<<{kernel.device.cores * 8}, 256, 0, stream>>>({workspace}, epilogue, {out}_data);"]
    lines += ["}", ""]
    if kernel.has(Structure.SPLIT):
        size = "static_cast<size_t>(SPLITS) * BATCH * M * N * sizeof(float)"
        lines += [f'extern "C" size_t workspace_bytes() {{ return {size}; }}', ""]
    return "\n".join(lines)
