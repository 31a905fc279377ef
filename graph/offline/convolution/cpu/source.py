"""C++ for a convolution: register blocks over padded input rows, shared among threads by images and rows."""

from __future__ import annotations

from ridgeline.graph.offline.convolution.cpu.structures import Structure
from ridgeline.graph.offline.convolution.extents import shape_constants
from ridgeline.graph.offline.convolution.read import Convolution
from ridgeline.graph.offline.convolution.text import choice_including, sections
from ridgeline.graph.offline.text.epilogue import epilogue_made, epilogue_text
from ridgeline.graph.offline.text.frame import constant, prototype, used
from ridgeline.tools.records.problem import Signature

Chosen = frozenset[str]
MAX_BUFFER_BYTES = 8 << 20
"""The limit of the input rows that a thread holds; larger buffers exceed its second-level cache many times over."""


def buffer_bytes(layer: Convolution, rows: int) -> int:
    """Return about the size of the input rows of a block of output rows."""
    lines = (rows - 1) * layer.stride[0] + (layer.taps[0] - 1) * layer.dilation[0] + 1
    cols = (layer.out_size[1] + 64) * layer.stride[1] + (layer.taps[1] - 1) * layer.dilation[1]
    return 4 * layer.channels * lines * cols


def write_source(layer: Convolution, signature: Signature, chosen: Chosen, *, cores: int, variation: int) -> str:
    """Return the whole source but its first line."""
    is_fused = Structure.POOL in chosen
    kind = "filters" if Structure.FILTERS in chosen else "cols"
    names = ["vectors", "copy_rows", *(["prefetch"] if Structure.PREFETCH in chosen else [])]
    names += ["pack_filters"] if Structure.FILTERS in chosen else []
    names += [f"block_{kind}"]
    body = [
        sections("cpu.h", names),
        epilogue_text(layer.epilogue, cuda=False, inline=True),
        _filled(sections("cpu.h", ["compute_rows"]), layer, chosen),
        *([sections("cpu.h", ["pool_row"])] if layer.pool else []),
        _run(layer, signature, chosen),
    ]
    text = "\n".join(body)
    constants = [*shape_constants(layer), *_constants(layer, chosen, variation)]
    if layer.pool:
        constants += _segments(layer, cores or 1) if is_fused else []
    head = '#include "problem.h"\n\n#include <cmath>\n#include <cstdint>\n'
    return "\n".join([head, "\n".join(used(constants, text)) + "\n", text])


def _constants(layer: Convolution, chosen: Chosen, variation: int) -> list[str]:
    row_blocks = [r for r in (2, 4, 8) if r < 2 * layer.out_size[0] and buffer_bytes(layer, r) <= MAX_BUFFER_BYTES]
    rows = row_blocks[variation % len(row_blocks)] if Structure.ROWS in chosen and row_blocks else 1
    panels = [p for p in (1, 4, 16) if p < layer.channels]
    panel = panels[variation % len(panels)] if Structure.PANEL in chosen and panels else layer.channels
    is_fused = Structure.POOL in chosen and layer.pool is not None
    window = (layer.pool.kernel[0] - 1) * layer.pool.dilation[0] + 1 if is_fused and layer.pool else 0
    held = f"{window} + ROW_BLOCK - 1" if is_fused else "OUT_ROWS"
    target = "float" if layer.pool else "Result"
    return [
        choice_including("ROW_BLOCK", rows, row_blocks if Structure.ROWS in chosen else ()),
        choice_including("PANEL", panel, panels if Structure.PANEL in chosen else ()),
        *(_filter_blocks(layer, variation) if Structure.FILTERS in chosen else _col_blocks(layer, variation)),
        constant("TARGET_ROWS", held),
        constant("ROW_BLOCKS", "(OUT_ROWS + ROW_BLOCK - 1) / ROW_BLOCK"),
        f"using Target = {target};",
        f"using Weight = {'float' if Structure.FILTERS in chosen else 'Element'};",
    ]


def _filter_blocks(layer: Convolution, variation: int) -> list[str]:
    """Return a block of filter vectors x outputs: at most 24 sums, few unwanted outputs."""
    vectors = min((1, 2, 3), key=lambda n: (-(-layer.filters // (16 * n)) * n, -n))
    widths = sorted(range(1, 24 // vectors + 1), key=lambda w: (-(-layer.out_size[1] // w) * (w + 3), -w))
    width = widths[variation % min(len(widths), 3)]
    return [
        constant("FILTER_VECTORS", vectors),
        choice_including("BLOCK_COLS", width, widths[:4]),
        constant("BLOCK_FILTERS", "16 * FILTER_VECTORS"),
        constant("PHASES", 1),
        constant("COL_STEP", "STRIDE_X"),
    ]


def _col_blocks(layer: Convolution, variation: int) -> list[str]:
    vectors = min((1, 2, 3, 4), key=lambda n: (-(-layer.out_size[1] // (16 * n)) * n, -n))
    heights = sorted(range(1, 24 // vectors + 1), key=lambda h: (-(-layer.filters // h) * (h + 2), -h))
    height = heights[variation % min(len(heights), 3)]
    return [
        constant("COL_VECTORS", vectors),
        choice_including("BLOCK_FILTERS", height, heights[:4]),
        constant("BLOCK_COLS", "16 * COL_VECTORS"),
        constant("PHASES", "STRIDE_X"),
        constant("COL_STEP", 1),
    ]


def _segments(layer: Convolution, cores: int) -> list[str]:
    """Return the parts of an image's pooled rows: enough for every thread, few, since halos are computed twice."""
    rows = layer.result_size[0]
    parts = min(rows, max(1, -(-4 * cores // layer.images)))
    segment = -(-rows // parts)
    return [constant("SEGMENT", segment), constant("SEGMENTS", -(-rows // segment))]


def _run(layer: Convolution, signature: Signature, chosen: Chosen) -> str:
    is_fused, is_packed = Structure.POOL in chosen, Structure.FILTERS in chosen
    packed = "FILTER_BLOCKS * CHANNELS * TAPS * BLOCK_FILTERS * sizeof(float)"
    between = "static_cast<size_t>(IMAGES) * FILTERS * OUT_ROWS * OUT_COLS * sizeof(float)"
    out = f"{layer.output.name}_data"
    is_apart = layer.pool is not None and not is_fused
    sizes = ["PACKED_BYTES"] if is_packed else []
    sizes += [between] if is_apart else []
    lines = []
    if is_packed:
        lines.append(f"constexpr size_t PACKED_BYTES = (static_cast<size_t>({packed}) + 63) / 64 * 64;\n")
    if is_fused:
        lines.append("alignas(64) static thread_local float ring[FILTERS * TARGET_ROWS * OUT_COLS];\n")
    if sizes:
        lines.append(f'extern "C" size_t workspace_bytes() {{ return {" + ".join(sizes)}; }}\n')
    lines.append(f"{prototype(signature, 'void* workspace')} {{")
    lines.append(f"  const Epilogue epilogue{epilogue_made(layer.epilogue).removeprefix('Epilogue')};")
    weights = "static_cast<float*>(workspace)" if is_packed else f"{layer.weight.name}_data"
    lines.append(f"  {'float' if is_packed else 'const Element'}* const weights = {weights};")
    if not is_fused:
        offset = "static_cast<char*>(workspace)" + (" + PACKED_BYTES" if is_packed else "")
        lines.append(f"  Target* const target = {f'reinterpret_cast<float*>({offset})' if is_apart else out};")
    lines += ["#pragma omp parallel", "  {"]
    if is_packed:
        lines.append(f"    pack_weights({layer.weight.name}_data, weights);")
    loops = ["run_pooled"] if is_fused else ["run_rows", *(["run_pool"] if layer.pool else [])]
    lines.append(_filled(sections("cpu.h", loops), layer, chosen).rstrip())
    return "\n".join([*lines, "  }", "}\n"])


def _filled(text: str, layer: Convolution, chosen: Chosen) -> str:
    """Return a section with the names of arguments and the choices of the structures filled in."""
    ahead = "next + ROW_BLOCK" if Structure.POOL in chosen else "first + ROW_BLOCK"
    bias = layer.bias.name if layer.bias else ""
    values = {
        "BIAS_PARAMETER ": "const Element* bias, " if bias else "",
        "BIAS_START": "static_cast<float>(bias[first_filter + i])" if bias else "0.0f",
        "BIAS_ARGUMENT ": f"{bias}_data, " if bias else "",
        "MULTIPLY_FILTERS": "" if Structure.FILTERS in chosen else ", filters",
        "PREFETCH_NEXT": f"prefetch_rows({layer.x.name}_data, image, {ahead});" if Structure.PREFETCH in chosen else "",
        "X_DATA": f"{layer.x.name}_data",
        "OUT_DATA": f"{layer.output.name}_data",
        "SCHEDULE": "schedule(dynamic)" if Structure.DYNAMIC in chosen else "schedule(static)",
    }
    for name, value in values.items():
        text = text.replace(name, value)
    return "\n".join(line.rstrip() for line in text.split("\n") if line.strip()) + "\n"
