"""The parts of a CUDA contraction that do not depend on its unit: types, extents, addresses, shared memory."""

from __future__ import annotations

from ridgeline.graph.offline.matmul.cuda.structures import Structure
from ridgeline.graph.offline.matmul.extents import batch_offset, extents
from ridgeline.graph.offline.matmul.kernel import Kernel
from ridgeline.graph.offline.matmul.read import Contraction
from ridgeline.tools.build.header import C_TYPES


def head_lines(kernel: Kernel) -> list[str]:
    """Return includes, types, extents and the size of a group of tiles."""
    contraction = kernel.contraction
    output = contraction.epilogue.output.dtype
    is_small = contraction.batch * contraction.m * contraction.n < 1 << 31
    group = (
        kernel.choose("GROUP", (8, 16, 4), (4, 8, 16, 32))
        if kernel.has(Structure.GROUPED)
        else "constexpr int GROUP = 1;"
    )
    lines = ['#include "problem.h"', "", "#include <cmath>", "#include <cstdint>", ""]
    lines += ["#define HALF_OUTPUT"] if output != "float32" else []
    lines += [f"using Element = {C_TYPES[contraction.dtype]};", f"using Output = {C_TYPES[output]};"]
    lines += [f"using Index = {'int32_t' if is_small else 'int64_t'};", *extents(contraction, "int"), group]
    return lines


def offset_lines(contraction: Contraction) -> list[str]:
    """Return the functions that give where each operand's matrix of a batch starts."""
    lines = []
    for name, operand in (("left", contraction.left), ("right", contraction.right)):
        parameter = "int batch" if operand.batch_terms else "int"
        value = batch_offset(operand, contraction.batch)
        lines.append(f"__device__ __forceinline__ int64_t {name}_offset({parameter}) {{ return {value}; }}")
    return [*lines, ""]


def attribute_line(kernel_name: str) -> str:
    """Return the statement that allows a kernel all of a block's shared memory."""
    return (
        f"  static const cudaError_t raised =\n      cudaFuncSetAttribute({kernel_name}, "
        "cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES);\n  if (raised != cudaSuccess) return;"
    )
