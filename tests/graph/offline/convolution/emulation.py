"""Composed CUDA convolutions as C++ for a CPU, so that their indices are tested where no GPU is.

What it cannot show: whether a copy was waited for, whether a barrier is missing, whether the hardware reads a
descriptor as it is read here.
"""

import re
from pathlib import Path

HEADER = Path(__file__).parent / "emulation.h"
REPLACED = (
    (r'asm\("cvt\.rna.*?;", *: *.*?;|asm\("cvt\.rna[^\n]*;', "rounded = __float_as_uint(emulated::to_tf32(value));"),
    (r'asm volatile\("cp\.async\.cg.*?: "memory"\);', "emulated::copy(to, from, 16, is_read), (void)address;"),
    (
        r'asm volatile\("cp\.async\.ca.*?: "memory"\);',
        "emulated::copy(to + col, from + (is_read ? at : 0), 4, is_read), (void)address;",
    ),
    (r'asm volatile\(\s*"mma\.sync.*?\)\)\);', "emulated::mma(low, high, a, b0, b1);"),
    (r'asm volatile\(\s*"\{\.reg.*?\(weights\)\);', "emulated::wgmma(low, high, a, weights, 2 * LANE_FILTERS * 2);"),
    (r'asm volatile\("[^;"]*;?" :[^;]*: *"memory"\);', ""),
    (
        r"extern __shared__ __align__\(128\) float shared\[\];",
        "float* shared = reinterpret_cast<float*>(emulated::shared);",
    ),
    (r"(\w+)<<<(.*?), (\w+), (\w+), stream>>>\((.*?)\);\n", r"emulated::launch(\2, \3, \4, [&] { \1(\5); });\n"),
    (r"  cudaFuncSetAttribute\(.*?\);\n", ""),
    (r"cudaOccupancyMaxActiveBlocksPerMultiprocessor\(.*?\);", "fitting = 1;"),
    (r"PROCESSORS = \d+", "PROCESSORS = 2"),  # so that blocks take several tiles
    (r",\n    cudaStream_t stream\)", ")"),
)


def on_cpu(source):
    """Return C++ with the product's entry that does what the source does on a GPU."""
    for pattern, text in REPLACED:
        source = re.sub(pattern, text, source, flags=re.DOTALL)
    assert "asm" not in source, re.findall(r".*asm.*", source)
    return HEADER.read_text() + source.replace('#include "problem.h"', "")
