"""CUDA for a contraction by warpgroup-wide tensor core instructions on panels that the copy engine brings."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ridgeline.graph.offline.matmul.cuda.frame import attribute_line, head_lines, offset_lines
from ridgeline.graph.offline.matmul.cuda.structures import Structure
from ridgeline.graph.offline.matmul.kernel import Kernel
from ridgeline.graph.offline.matmul.read import Contraction, Operand
from ridgeline.graph.offline.text.epilogue import epilogue_made, epilogue_text
from ridgeline.graph.offline.text.frame import flag, prototype
from ridgeline.graph.offline.text.sections import native_sections
from ridgeline.tools.machine.occupancy import block_shared_bytes
from ridgeline.tools.records.dtypes import element_bytes

WARPGROUP_TYPES = {"float32": "tf32", "float16": "f16", "bfloat16": "bf16"}
MAP_TYPES = {"float32": "TFLOAT32", "float16": "FLOAT16", "bfloat16": "BFLOAT16"}
MAX_LINE_BYTES = 1 << 40
"""The limit of a tensor map's strides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperandSide:
    """One operand in the order in which the tensor cores read it."""

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
        """Tell whether each batch has a matrix of its own."""
        return bool(self.operand.batch_terms)


def sides_of(contraction: Contraction) -> tuple[OperandSide, OperandSide, bool]:
    """Return the operands over the tensor cores' rows and columns, and whether the first comes from registers.

    A tf32 descriptor reads k-major memory only. One operand whose outer dimension is contiguous is loaded into registers
    instead, as the operand over rows; the other is copied into k-major order first.
    """
    left = OperandSide(
        is_left=True, operand=contraction.left, outer=contraction.m,
        is_repacked=not _is_mapped(contraction.left, contraction),
    )  # fmt: skip
    right = OperandSide(
        is_left=False, operand=contraction.right, outer=contraction.n,
        is_repacked=not _is_mapped(contraction.right, contraction),
    )  # fmt: skip
    if contraction.element_bytes == 2:
        return left, right, False
    for first, second in ((right, left), (left, right)):
        if not first.along_k:
            return first, _along_k(second), True
    return left, right, False


def _along_k(side: OperandSide) -> OperandSide:
    return OperandSide(
        is_left=side.is_left, operand=side.operand, outer=side.outer, is_repacked=not side.along_k or side.is_repacked
    )  # fmt: skip


def _is_mapped(operand: Operand, contraction: Contraction) -> bool:
    """Tell whether a tensor map can describe an operand as it lies."""
    terms = operand.batch_terms
    is_simple = not terms or (len(terms) == 1 and terms[0][0] == 1 and terms[0][1] == contraction.batch)
    spans = [operand.pitch, *(t[2] for t in terms)]
    is_near = all(s * contraction.element_bytes < MAX_LINE_BYTES for s in spans)
    return is_simple and is_near and contraction.is_chunked(operand)


def write_warpgroups(kernel: Kernel) -> str:
    """Return the whole source but its first line."""
    native = native_sections("ridgeline.graph.offline.matmul", "wgmma.h")
    shared = native_sections("ridgeline.graph.offline.matmul", "cuda.h")
    contraction = kernel.contraction
    first, second, from_registers = sides_of(contraction)
    is_swapped = not first.is_left
    lines = head_lines(kernel)
    lines.insert(lines.index("#include <cmath>"), "#include <cuda.h>\n#include <cudaTypedefs.h>\n")
    lines += _warpgroup_constants(kernel, first, second, from_registers=from_registers)
    wide = kernel.has(Structure.WIDE) and not from_registers
    body = [epilogue_text(contraction.epilogue, cuda=True)]
    repacked = first.is_repacked or second.is_repacked
    body += [*offset_lines(contraction), native["repack"]] if repacked else []
    body += [shared["tiles"], shared["store"], native["barriers"], native["tensor_maps"], native["warpgroup"]]
    body += [multiply_text(contraction.dtype, _widths(from_registers=from_registers), from_registers=from_registers)]
    body += [shared["exchange"]] if wide else []
    body += [native["wgmma_kernel"], native["cluster_barriers" if kernel.has(Structure.CLUSTER) else "single_barriers"]]
    body += [native["wgmma_produce"]]
    body += [native["wgmma_registers"]] if from_registers else [native["wgmma_descriptors"]]
    body += [] if from_registers else [native["wgmma_each_wide" if wide else "wgmma_each"]]
    place = "place_swapped" if is_swapped else "place_rows" if from_registers else "place_lines"
    entry = native["wgmma_entry"].replace(
        "@CLUSTER@", "__cluster_dims__(CLUSTER, 1, 1) " if kernel.has(Structure.CLUSTER) else ""
    )
    # A block that ended early could not be signalled by the cluster's other block.
    entry = entry.replace("@END@", "  meet();\n" if kernel.has(Structure.CLUSTER) else "")
    body += [native[place], entry, _warpgroup_run(kernel, first, second)]
    return "\n".join([*lines, *body])


def _widths(*, from_registers: bool) -> tuple[int, ...]:
    return (64, 128) if from_registers else (64, 128, 192, 256)


def _warpgroup_constants(kernel: Kernel, first: OperandSide, second: OperandSide, *, from_registers: bool) -> list[str]:
    contraction = kernel.contraction
    pitch = -(-contraction.k * contraction.element_bytes // 16) * 16 // contraction.element_bytes
    tiles = math.ceil(first.outer / 128) * math.ceil(second.outer / 256) * contraction.batch
    width = 128 if from_registers or tiles < kernel.device.cores else 256
    lines = [kernel.choose("BN", (width, 128, 192), _widths(from_registers=from_registers))]
    lines += [kernel.choose("CONSUMERS", (2, 2, 2), (1, 2)), kernel.choose("MAX_STAGES", (8, 4, 3), (3, 4, 8))]
    most = block_shared_bytes(kernel.device.arch) - 1024  # 1 KiB is left to barriers
    lines += [f"constexpr int CLUSTER = {2 if kernel.has(Structure.CLUSTER) else 1};"]
    lines += [f"constexpr int BLOCKS = {2 if from_registers else 1}, SHARED_LIMIT = {most};"]
    lines += [f"[[maybe_unused]] constexpr int64_t PACKED_PITCH = {pitch};"]
    lines += [f"constexpr auto TENSOR_TYPE = CU_TENSOR_MAP_DATA_TYPE_{MAP_TYPES[contraction.dtype]};"]
    for name, side in (("FIRST", first), ("SECOND", second)):
        lines.append(
            f"constexpr int {name}_OUTER = {'M' if side.is_left else 'N'};  constexpr bool {name}_ALONG_K = "
            f"{flag(is_set=side.along_k)}, {name}_BATCHED = {flag(is_set=side.is_batched)};"
        )
    return [*lines, ""]


def multiply_text(dtype: str, widths: tuple[int, ...], *, from_registers: bool) -> str:
    """Return `multiply` for each width: one instruction on 64 rows x `width` columns of sums."""
    return "\n".join(_multiply(dtype, width, from_registers=from_registers) for width in widths)


def _multiply(dtype: str, width: int, *, from_registers: bool) -> str:
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


def _warpgroup_run(kernel: Kernel, first: OperandSide, second: OperandSide) -> str:
    contraction = kernel.contraction
    lines = [prototype(kernel.signature, "void* workspace", "cudaStream_t stream") + " {", attribute_line("matmul")]
    used = "0"
    for name, side, lines_in_box in (("first", first, "BM"), ("second", second, "BN / CLUSTER")):
        lines += _map_lines(kernel, name, side, lines_in_box, used)
        used = f"{used} + {_packed_elements(contraction, side)}" if side.is_repacked else used
    most = f"{kernel.device.cores} / CLUSTER"
    blocks = f"(TILES < {most} ? TILES : {most})" if kernel.has(Structure.PERSISTENT) else "TILES"
    out = contraction.epilogue.output.argument
    lines += [f"  matmul<<<{blocks} * CLUSTER, THREADS, SHARED_BYTES, stream>>>("]
    lines += [f"      first, second, {epilogue_made(contraction.epilogue)}, {out}_data);", "}", ""]
    if first.is_repacked or second.is_repacked:
        lines += [f'extern "C" size_t workspace_bytes() {{ return ({used}) * sizeof(Element); }}', ""]
    return "\n".join(lines)


def _packed_elements(contraction: Contraction, side: OperandSide) -> str:
    """Return the size of a repacked operand, rounded up to 128 elements, which keep tensors aligned."""
    batches = contraction.batch if side.is_batched else 1
    return f"(size_t{{{batches * side.outer}}} * PACKED_PITCH + 127) / 128 * 128"


def _map_lines(kernel: Kernel, name: str, side: OperandSide, box: str, used: str) -> list[str]:
    contraction, operand = kernel.contraction, side.operand
    batches = contraction.batch if side.is_batched else 1
    which = "LEFT" if side.is_left else "RIGHT"
    source = f"{operand.argument}_data"
    if side.is_repacked:
        blocks = f"dim3((K + 31) / 32, {min(-(-side.outer // 32), 65535)}, {batches})"
        template = f"{flag(is_set=side.is_left)}, {which}_OUTER, {which}_K, {side.outer}"
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
