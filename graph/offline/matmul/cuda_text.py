"""CUDA for a contraction: products in registers, by warp-wide or by warpgroup-wide tensor core instructions."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ridgeline.graph.offline.epilogue import epilogue_made, epilogue_text
from ridgeline.graph.offline.matmul.contraction import Contraction, Operand
from ridgeline.graph.offline.matmul.frame import batch_offset, extents
from ridgeline.graph.offline.source_frame import native_sections, prototype, tunable
from ridgeline.tools.build.header import C_TYPES
from ridgeline.tools.machine.occupancy import block_shared_bytes
from ridgeline.tools.records.dtypes import element_bytes
from ridgeline.tools.records.problem import Signature

VECTOR, ASYNC, GROUPED = "vector-loads", "async-copies", "grouped-blocks"
TENSOR, WARPGROUP = "tensor-cores", "warpgroup-mma"
PERSISTENT, WIDE, SPLIT = "persistent-blocks", "wide-stores", "split-k"
CLUSTER = "cluster-multicast"

SHAPES = {
    "float32": "m16n8k8.row.col.f32.tf32.tf32.f32",
    "float16": "m16n8k16.row.col.f32.f16.f16.f32",
    "bfloat16": "m16n8k16.row.col.f32.bf16.bf16.f32",
}
WARPGROUP_TYPES = {"float32": "tf32", "float16": "f16", "bfloat16": "bf16"}
MAP_TYPES = {"float32": "TFLOAT32", "float16": "FLOAT16", "bfloat16": "BFLOAT16"}
MAX_LINE_BYTES = 1 << 40
"""A tensor map's strides are below it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CudaKernel:
    """One kernel to be written."""

    contraction: Contraction
    signature: Signature
    cores: int
    arch: str
    structures: frozenset[str]
    variation: int = 0

    def has(self, structure: str) -> bool:
        """Tell whether the kernel is composed of it."""
        return structure in self.structures

    def source(self) -> str:
        """Return the whole source but its first line."""
        return _warpgroup_source(self) if self.has(WARPGROUP) else _block_source(self)

    def choose(self, name: str, defaults: tuple[int, ...], values: tuple[int, ...]) -> str:
        """Return a tunable's line; variations start at its defaults in turn, or at the largest value that there is."""
        default = defaults[self.variation % len(defaults)]
        return tunable(name, default if default in values else max(values), values)


def _head(kernel: CudaKernel) -> list[str]:
    contraction = kernel.contraction
    output = contraction.epilogue.output.dtype
    is_small = contraction.batch * contraction.m * contraction.n < 1 << 31
    group = kernel.choose("GROUP", (8, 16, 4), (4, 8, 16, 32)) if kernel.has(GROUPED) else "constexpr int GROUP = 1;"
    lines = ['#include "problem.h"', "", "#include <cmath>", "#include <cstdint>", ""]
    lines += ["#define HALF_OUTPUT"] if output != "float32" else []
    lines += [f"using Element = {C_TYPES[contraction.dtype]};", f"using Output = {C_TYPES[output]};"]
    lines += [f"using Index = {'int32_t' if is_small else 'int64_t'};", *extents(contraction, "int"), group]
    return lines


def _offsets(contraction: Contraction) -> list[str]:
    lines = []
    for name, operand in (("left", contraction.left), ("right", contraction.right)):
        parameter = "int batch" if operand.batch_terms else "int"
        value = batch_offset(operand, contraction.batch)
        lines.append(f"__device__ __forceinline__ int64_t {name}_offset({parameter}) {{ return {value}; }}")
    return [*lines, ""]


def _attribute(kernel_name: str) -> str:
    return (
        f"  static const cudaError_t raised =\n      cudaFuncSetAttribute({kernel_name}, "
        "cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES);\n  if (raised != cudaSuccess) return;"
    )


def is_chunked(operand: Operand, contraction: Contraction) -> bool:
    """Tell whether 16-byte runs of an operand are aligned."""
    return operand.is_aligned(16 // contraction.element_bytes)


# --------------------------------------------------------------------------------------- registers and warps


def _block_source(kernel: CudaKernel) -> str:
    native = native_sections("native/matmul_cuda.h")
    contraction = kernel.contraction
    is_tensor = kernel.has(TENSOR)
    lines = _head(kernel)
    lines += _tiles(kernel) + _panels(kernel)
    lines += [
        kernel.choose("SPLITS", (4, 2, 8), (2, 4, 8, 16)) if kernel.has(SPLIT) else "constexpr int SPLITS = 1;",
        "",
    ]
    sums = native["fragments"] if is_tensor else native["registers"]
    each = native["fragments_each_wide" if kernel.has(WIDE) else "fragments_each"]
    sums = sums.replace("@SHAPE@", SHAPES[contraction.dtype]).replace("@EACH@", each.rstrip())
    body = [epilogue_text(contraction.epilogue, cuda=True), *_offsets(contraction), native["tiles"], native["store"]]
    body += [native["panels"], *([native["exchange"]] if is_tensor and kernel.has(WIDE) else []), sums]
    body += [native["keep"]] if kernel.has(SPLIT) else []
    text = native["kernel"] if kernel.has(SPLIT) else _without_splits(native["kernel"])
    body += [text, *([native["add_parts"]] if kernel.has(SPLIT) else []), _block_run(kernel)]
    return "\n".join([*lines, *body])


def _without_splits(text: str) -> str:
    """Return the kernel that applies the epilogue to its own sums."""
    start, middle = text.index("    if constexpr (SPLITS > 1) {"), text.index("    } else {\n      sums.each")
    end = text.index("    }\n    wait_copies<0>")
    kept = text[middle + len("    } else {\n") : end]
    return text[:start] + "\n".join(line[2:] for line in kept.split("\n")) + text[end + len("    }\n") :]


def _fitting(kernel: CudaKernel, widths: tuple[int, ...], depths: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Return the values of BN and BK of which every pair leaves room for two panels of each operand.

    The widest tiles go first, then the deepest: 99 KiB hold no two panels of 128 + 256 lines of 32 floats.
    """
    size, pad = (kernel.contraction.element_bytes, 8) if kernel.has(TENSOR) else (4, 4)
    limit = block_shared_bytes(kernel.arch)
    while 2 * size * (128 + max(widths) + 2 * pad) * (max(depths) + pad) > limit and len(widths) + len(depths) > 2:
        widths, depths = (widths[:-1], depths) if max(widths) > 128 else (widths, depths[:-1])
    return widths, depths


def _tiles(kernel: CudaKernel) -> list[str]:
    contraction = kernel.contraction
    is_small = math.ceil(contraction.m / 128) * math.ceil(contraction.n / 128) * contraction.batch < kernel.cores
    wide = 64 if is_small else 128
    if not kernel.has(TENSOR):
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


def _panels(kernel: CudaKernel) -> list[str]:
    contraction, is_tensor = kernel.contraction, kernel.has(TENSOR)
    copies_async = kernel.has(ASYNC) and (is_tensor or contraction.element_bytes == 4)
    stages = kernel.choose("MAX_STAGES", (3, 4, 2), (2, 3, 4)) if copies_async else "constexpr int MAX_STAGES = 2;"
    stages += f"\nconstexpr int SHARED_LIMIT = {block_shared_bytes(kernel.arch)};  // of a block on {kernel.arch}"
    pads = (16 // contraction.element_bytes, 8) if is_tensor else (4, 4)
    lines = [stages, f"constexpr bool ASYNC = {str(copies_async).lower()};"]
    lines += [f"constexpr int CHUNK = 16 / sizeof(Element), PAD_K = {pads[0]}, PAD_OUTER = {pads[1]};"]
    lines += [f"using Shared = {'Element' if is_tensor else 'float'};"]
    for name, operand in (("LEFT", contraction.left), ("RIGHT", contraction.right)):
        along_k = is_tensor and operand.is_k_major
        is_same = operand.is_k_major == along_k and (is_tensor or contraction.element_bytes == 4)
        chunked = is_same and is_chunked(operand, contraction) and (kernel.has(VECTOR) or copies_async)
        lines.append(
            f"constexpr bool {name}_ALONG_K = {str(along_k).lower()}, {name}_CHUNKED = {str(chunked).lower()};"
        )
    return lines


def _block_run(kernel: CudaKernel) -> str:
    contraction = kernel.contraction
    out, made = contraction.epilogue.output.argument, epilogue_made(contraction.epilogue)
    left, right = contraction.left.argument, contraction.right.argument
    workspace = "static_cast<float*>(workspace)" if kernel.has(SPLIT) else "nullptr"
    lines = [prototype(kernel.signature, "void* workspace", "cudaStream_t stream") + " {", _attribute("matmul")]
    lines += [f"  const Epilogue epilogue = {made};"]
    blocks = "TILES"
    if kernel.has(PERSISTENT):
        lines += ["  int resident = 1;"]
        lines += ["  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, matmul, THREADS, SHARED_BYTES);"]
        lines += [f"  const int fitting = (resident > 0 ? resident : 1) * {kernel.cores};"]
        blocks = "TILES < fitting ? TILES : fitting"
    lines += [f"  const dim3 blocks({blocks}, SPLITS);"]
    lines += ["  matmul<<<blocks, THREADS, SHARED_BYTES, stream>>>("]
    lines += [f"      {left}_data, {right}_data, epilogue, {out}_data, {workspace});"]
    if kernel.has(SPLIT):
        lines += [f"  add_parts<<<{kernel.cores * 8}, 256, 0, stream>>>({workspace}, epilogue, {out}_data);"]
    lines += ["}", ""]
    if kernel.has(SPLIT):
        size = "static_cast<size_t>(SPLITS) * BATCH * M * N * sizeof(float)"
        lines += [f'extern "C" size_t workspace_bytes() {{ return {size}; }}', ""]
    return "\n".join(lines)


# ---------------------------------------------------------------------------------------------- warpgroups


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One operand as the tensor cores get it."""

    is_left: bool
    operand: Operand
    outer: int  # extent
    is_repacked: bool  # read from a copy in the workspace, along k

    @property
    def along_k(self) -> bool:
        """Tell whether neighbours in shared memory lie along k."""
        return self.is_repacked or self.operand.is_k_major

    @property
    def is_batched(self) -> bool:
        """Tell whether it differs from batch to batch."""
        return bool(self.operand.batch_terms)


def sides_of(contraction: Contraction) -> tuple[Side, Side, bool]:
    """Return what lies over the tensor cores' rows and columns, and whether the first comes from registers.

    A tf32 descriptor reads k-major memory only. An operand whose outer dimension is contiguous is loaded into
    registers instead, which the rows' operand may come from; what remains is copied into k-major order first.
    """
    left = Side(
        is_left=True, operand=contraction.left, outer=contraction.m,
        is_repacked=not _is_mapped(contraction.left, contraction),
    )  # fmt: skip
    right = Side(
        is_left=False, operand=contraction.right, outer=contraction.n,
        is_repacked=not _is_mapped(contraction.right, contraction),
    )  # fmt: skip
    if contraction.element_bytes == 2:
        return left, right, False
    for first, second in ((right, left), (left, right)):
        if not first.along_k:
            return first, _along_k(second), True
    return left, right, False


def _along_k(side: Side) -> Side:
    return Side(
        is_left=side.is_left, operand=side.operand, outer=side.outer, is_repacked=not side.along_k or side.is_repacked
    )  # fmt: skip


def _is_mapped(operand: Operand, contraction: Contraction) -> bool:
    """Tell whether a tensor map can describe an operand as it lies."""
    terms = operand.batch_terms
    is_simple = not terms or (len(terms) == 1 and terms[0][0] == 1 and terms[0][1] == contraction.batch)
    spans = [operand.pitch, *(t[2] for t in terms)]
    is_near = all(s * contraction.element_bytes < MAX_LINE_BYTES for s in spans)
    return is_simple and is_near and is_chunked(operand, contraction)


def _warpgroup_source(kernel: CudaKernel) -> str:
    native, shared = native_sections("native/matmul_wgmma.h"), native_sections("native/matmul_cuda.h")
    contraction = kernel.contraction
    first, second, from_registers = sides_of(contraction)
    is_swapped = not first.is_left
    lines = _head(kernel)
    lines.insert(lines.index("#include <cmath>"), "#include <cuda.h>\n#include <cudaTypedefs.h>\n")
    lines += _warpgroup_constants(kernel, first, second, from_registers=from_registers)
    wide = kernel.has(WIDE) and not from_registers
    body = [epilogue_text(contraction.epilogue, cuda=True)]
    repacked = first.is_repacked or second.is_repacked
    body += [*_offsets(contraction), native["repack"]] if repacked else []
    body += [shared["tiles"], shared["store"], native["barriers"], native["tensor_maps"], native["warpgroup"]]
    body += [multiply_text(contraction.dtype, _widths(from_registers), from_registers=from_registers)]
    body += [shared["exchange"]] if wide else []
    body += [native["wgmma_kernel"], native["cluster_barriers" if kernel.has(CLUSTER) else "single_barriers"]]
    body += [native["wgmma_produce"]]
    body += [native["wgmma_registers"]] if from_registers else [native["wgmma_descriptors"]]
    body += [] if from_registers else [native["wgmma_each_wide" if wide else "wgmma_each"]]
    place = "place_swapped" if is_swapped else "place_rows" if from_registers else "place_lines"
    entry = native["wgmma_entry"].replace(
        "@CLUSTER@", "__cluster_dims__(CLUSTER, 1, 1) " if kernel.has(CLUSTER) else ""
    )
    # A block that ended could not be told of stages any more.
    entry = entry.replace("@END@", "  meet();\n" if kernel.has(CLUSTER) else "")
    body += [native[place], entry, _warpgroup_run(kernel, first, second)]
    return "\n".join([*lines, *body])


def _widths(from_registers: bool) -> tuple[int, ...]:  # noqa: FBT001
    return (64, 128) if from_registers else (64, 128, 192, 256)


def _warpgroup_constants(kernel: CudaKernel, first: Side, second: Side, *, from_registers: bool) -> list[str]:
    contraction = kernel.contraction
    pitch = -(-contraction.k * contraction.element_bytes // 16) * 16 // contraction.element_bytes
    tiles = math.ceil(first.outer / 128) * math.ceil(second.outer / 256) * contraction.batch
    width = 128 if from_registers or tiles < kernel.cores else 256
    lines = [kernel.choose("BN", (width, 128, 192), _widths(from_registers))]
    lines += [kernel.choose("CONSUMERS", (2, 2, 2), (1, 2)), kernel.choose("MAX_STAGES", (8, 4, 3), (3, 4, 8))]
    most = block_shared_bytes(kernel.arch) - 1024  # less what barriers take
    lines += [f"constexpr int CLUSTER = {2 if kernel.has(CLUSTER) else 1};"]
    lines += [f"constexpr int BLOCKS = {2 if from_registers else 1}, SHARED_LIMIT = {most};"]
    lines += [f"[[maybe_unused]] constexpr int64_t PACKED_PITCH = {pitch};"]
    lines += [f"constexpr auto TENSOR_TYPE = CU_TENSOR_MAP_DATA_TYPE_{MAP_TYPES[contraction.dtype]};"]
    for name, side in (("FIRST", first), ("SECOND", second)):
        lines.append(
            f"constexpr int {name}_OUTER = {'M' if side.is_left else 'N'};  constexpr bool {name}_ALONG_K = "
            f"{str(side.along_k).lower()}, {name}_BATCHED = {str(side.is_batched).lower()};"
        )
    return [*lines, ""]


def multiply_text(dtype: str, widths: tuple[int, ...], *, from_registers: bool) -> str:
    """Return `multiply` for each width: one instruction on 64 rows x `width` columns of sums."""
    return "\n".join(_multiply(dtype, width, from_registers) for width in widths)


def _multiply(dtype: str, width: int, from_registers: bool) -> str:  # noqa: FBT001
    kind, depth = WARPGROUP_TYPES[dtype], 32 // element_bytes(dtype)
    count = width // 2
    sums = ", ".join(f"%{i}" for i in range(count))
    outputs = ", ".join(f'"+f"(sums[{i}])' for i in range(count))
    first = f"{{%{count}, %{count + 1}, %{count + 2}, %{count + 3}}}" if from_registers else f"%{count}"
    second = count + (4 if from_registers else 1)
    has_orders = element_bytes(dtype) == 2
    orders = f", %{second + 2}, %{second + 3}" if has_orders else ""
    inputs = ['"r"(first[0]), "r"(first[1]), "r"(first[2]), "r"(first[3])' if from_registers else '"l"(first)']
    inputs += ['"l"(second)', '"r"(static_cast<int>(accumulates))']
    inputs += ['"n"(FIRST_K ? 0 : 1)', '"n"(SECOND_K ? 0 : 1)'] if has_orders else []
    head = "" if from_registers else "template <bool FIRST_K, bool SECOND_K>\n"
    parameter = "const unsigned (&first)[4]" if from_registers else "uint64_t first"
    return f"""{head}__device__ __forceinline__ void multiply(
    float (&sums)[{count}], {parameter}, uint64_t second, bool accumulates) {{
  asm volatile(
      "{{\\n.reg .pred p;\\nsetp.ne.b32 p, %{second + 1}, 0;\\n"
      "wgmma.mma_async.sync.aligned.m64n{width}k{depth}.f32.{kind}.{kind} "
      "{{{sums}}}, "
      "{first}, %{second}, p, 1, 1{orders};\\n}}\\n"
      : {outputs}
      : {", ".join(inputs)});
}}
"""


def _warpgroup_run(kernel: CudaKernel, first: Side, second: Side) -> str:
    contraction = kernel.contraction
    lines = [prototype(kernel.signature, "void* workspace", "cudaStream_t stream") + " {", _attribute("matmul")]
    used = "0"
    for name, side, lines_in_box in (("first", first, "BM"), ("second", second, "BN / CLUSTER")):
        lines += _map_lines(kernel, name, side, lines_in_box, used)
        used = f"{used} + {_packed_elements(contraction, side)}" if side.is_repacked else used
    most = f"{kernel.cores} / CLUSTER"
    blocks = f"(TILES < {most} ? TILES : {most})" if kernel.has(PERSISTENT) else "TILES"
    out = contraction.epilogue.output.argument
    lines += [f"  matmul<<<{blocks} * CLUSTER, THREADS, SHARED_BYTES, stream>>>("]
    lines += [f"      first, second, {epilogue_made(contraction.epilogue)}, {out}_data);", "}", ""]
    if first.is_repacked or second.is_repacked:
        lines += [f'extern "C" size_t workspace_bytes() {{ return ({used}) * sizeof(Element); }}', ""]
    return "\n".join(lines)


def _packed_elements(contraction: Contraction, side: Side) -> str:
    """Return the size of a repacked operand, up to a multiple of what tensors are aligned to."""
    batches = contraction.batch if side.is_batched else 1
    return f"(size_t{{{batches * side.outer}}} * PACKED_PITCH + 127) / 128 * 128"


def _map_lines(kernel: CudaKernel, name: str, side: Side, box: str, used: str) -> list[str]:
    contraction, operand = kernel.contraction, side.operand
    batches = contraction.batch if side.is_batched else 1
    which = "LEFT" if side.is_left else "RIGHT"
    source = f"{operand.argument}_data"
    if side.is_repacked:
        blocks = f"dim3((K + 31) / 32, {min(-(-side.outer // 32), 65535)}, {batches})"
        template = f"{str(side.is_left).lower()}, {which}_OUTER, {which}_K, {side.outer}"
        return [
            f"  Element* const {name}_packed = static_cast<Element*>(workspace) + ({used});",
            f"  repack<{template}><<<{blocks}, 256, 0, stream>>>({source}, {name}_packed);",
            f"  const CUtensorMap {name} = tensor_map(",
            f"      {name}_packed, K, {side.outer}, {batches}, PACKED_PITCH, {side.outer} * PACKED_PITCH, {box});",
        ]
    inner, lines = ("K", str(side.outer)) if operand.is_k_major else (str(side.outer), "K")
    stride = operand.batch_terms[0][2] if side.is_batched else operand.pitch
    start = f"{source} + {operand.offset}" if operand.offset else source
    box = box if operand.is_k_major else "BK"
    return [
        f"  const CUtensorMap {name} = tensor_map(",
        f"      {start}, {inner}, {lines}, {batches}, {operand.pitch}, {stride}, {box});",
    ]
