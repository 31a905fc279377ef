"""CUDA for a convolution: an implicit matrix product whose operand is gathered from input rows in shared memory."""

from __future__ import annotations

import math
from dataclasses import replace

from ridgeline.graph.offline.convolution.cuda import tiling as cuts
from ridgeline.graph.offline.convolution.cuda.structures import Structure
from ridgeline.graph.offline.convolution.cuda.tiling import SLAB, Tiling
from ridgeline.graph.offline.convolution.extents import shape_constants
from ridgeline.graph.offline.convolution.read import Convolution
from ridgeline.graph.offline.convolution.text import choice_including, sections
from ridgeline.graph.offline.text.epilogue import epilogue_made, epilogue_text
from ridgeline.graph.offline.text.frame import constant, flag, prototype, used
from ridgeline.tools.machine.occupancy import block_shared_bytes, multiprocessor
from ridgeline.tools.records.problem import Device, Signature

Chosen = frozenset[str]


def tiling_of(layer: Convolution, chosen: Chosen, device: Device, variation: int = 0) -> Tiling:
    """Return the tiling that a kernel of these structures starts with.

    Raises:
        NotCovered: no tile fits shared memory.
    """
    use_tensor_cores = bool(chosen & {Structure.MMA, Structure.WGMMA})
    of_channels = use_tensor_cores and cuts.quad_of_channels(layer)
    unit = cuts.unit_channels(layer, of_channels=of_channels) if use_tensor_cores else 1
    is_pooled = Structure.POOL in chosen
    filters = cuts.warp_filters(layer.filters, 48, 16)
    is_resident = Structure.RESIDENT in chosen
    cut = Tiling(
        layer=layer,
        shared_limit=block_shared_bytes(device.arch),
        processors=device.cores,
        use_tensor_cores=use_tensor_cores,
        use_wgmma=Structure.WGMMA in chosen,
        is_pooled=is_pooled,
        is_resident=is_resident,
        stages=2 if Structure.ASYNC in chosen else 1,
        shift=shift_of(layer, is_pooled=is_pooled) if Structure.VECTOR in chosen else 0,
        plane_bank=cuts.plane_bank(layer) if of_channels else 0,
        rows=1,
        cols=cuts.tile_cols(layer, is_pooled=is_pooled),
        warp_groups=2,
        warp_filters=filters,
        filter_warps=1,
        of_channels=of_channels,
        unit=unit,
        chunk=unit,
    )
    if use_tensor_cores:
        return cuts.chosen(cut, ((cuts.warp_filters(layer.filters, 96, 16), 1), (filters, 1)), variation)
    return cuts.chosen(cut, ((filters, 1 if layer.filters <= filters else 2), (filters, 1)), variation)


def shift_of(layer: Convolution, *, is_pooled: bool) -> int:
    """Return the elements between a tile's first input column and the 16-byte boundary before it."""
    before = layer.pool.padding[1] if is_pooled and layer.pool else 0
    return (-before * layer.stride[1] - layer.padding[1]) % 4


def can_vectorise(layer: Convolution, *, is_pooled: bool) -> bool:
    """Tell whether every tile's input rows start at the same offset from a 16-byte boundary."""
    step = layer.pool.stride[1] if is_pooled and layer.pool else 1
    cols = cuts.tile_cols(layer, is_pooled=is_pooled)
    is_one_tile = cols >= (layer.pool.size[1] if is_pooled and layer.pool else layer.out_size[1])
    is_fixed = is_one_tile or (cols * step * layer.stride[1]) % 4 == 0
    return layer.x.dtype == "float32" and layer.size[1] % 4 == 0 and is_fixed


def write_source(layer: Convolution, signature: Signature, chosen: Chosen, *, device: Device, variation: int) -> str:
    """Return the whole source but its first line."""
    cut = tiling_of(layer, chosen, device, variation)
    parts = [
        '#include "problem.h"\n\n#include <cmath>\n#include <cstdint>\n',
        sections("cuda.h", ["tile"]),
        epilogue_text(layer.epilogue, cuda=True),
        _body(layer, cut, chosen),
        _run(layer, signature, chosen),
    ]
    defined = used([*shape_constants(layer), *_cut(cut, chosen, device)], "\n".join(parts))
    return "\n".join([parts[0], "\n".join(defined) + "\n", *parts[1:]])


def _cut(cut: Tiling, chosen: Chosen, device: Device) -> list[str]:
    window = cut.window
    layer, limits = cut.layer, multiprocessor(device.arch)
    results = window.size if cut.is_pooled else layer.out_size
    is_small = layer.images * layer.filters * math.prod(layer.out_size) < 1 << 31
    chunks = [
        c
        for c in (cut.unit, 2 * cut.unit, 4 * cut.unit, cut.chunk)
        if replace(cut, chunk=c).fits and c < 2 * layer.channels
    ]
    lines = [
        choice_including("TILE_RESULT_ROWS", cut.rows, cuts.row_choices(cut)),
        choice_including("WARP_GROUPS", cut.warp_groups, cuts.group_choices(cut)),
        choice_including("CHUNK", cut.chunk, chunks),
        constant("TILE_RESULT_COLS", cut.cols),
        constant("TILE_COLS", cut.tile[1]),
        constant("GROUPS_X", cut.groups_x),
        constant("RESULT_ROWS", results[0]),
        constant("RESULT_COLS", results[1]),
        constant("RESULT_STEP_Y", window.stride[0]),
        constant("RESULT_STEP_X", window.stride[1]),
        constant("RESULT_PAD_Y", window.padding[0]),
        constant("RESULT_PAD_X", window.padding[1]),
        constant(
            "TILE_ROWS", f"(TILE_RESULT_ROWS - 1) * RESULT_STEP_Y + {(window.kernel[0] - 1) * window.dilation[0] + 1}"
        ),
        constant("WARP_FILTERS", cut.warp_filters),
        constant("FILTER_WARPS", cut.filter_warps),
        constant("WARP_MULTIPLE", 4 if cut.use_wgmma else 1),
        constant("SHIFT", cut.shift),
        constant("OVERHANG", cut.overhang if cut.use_tensor_cores else 0),
        constant("PLANE_BANK", cut.plane_bank),
        constant("UNIT", cut.unit),
        constant("STAGES", cut.stages),
        constant("SLAB", SLAB),
        constant("RESIDENT", flag(is_set=cut.is_resident), "bool"),
        constant("FUSED_POOL", flag(is_set=cut.is_pooled), "bool"),
        constant("ROUND_STAGED", flag(is_set=cut.use_tensor_cores and Structure.ASYNC not in chosen), "bool"),
        constant("OTHER_REGISTERS", cut.lane_registers),
        constant("PROCESSORS", cut.processors),
        constant("SHARED_LIMIT", cut.shared_limit),
        constant("MULTIPROCESSOR_SHARED", limits.shared_bytes if limits else cut.shared_limit),
        constant("RESERVED_SHARED", limits.reserved_shared if limits else 0),
        constant("INFINITE", "__builtin_inff()", "float"),
        f"using Index = {'int32_t' if is_small else 'int64_t'};",
        f"using Target = {'float' if layer.pool and not cut.is_pooled else 'Result'};",
    ]
    return [*lines, *_units(cut, chosen)]


def _units(cut: Tiling, chosen: Chosen) -> list[str]:
    if not cut.use_tensor_cores:
        # Bodies of up to a thousand instructions or so stay in the instruction cache.
        unroll = max(1, min(cut.layer.taps[1], 12))
        return [constant("TAP_UNROLL", unroll), constant("UNIT_WEIGHTS", cut.unit_weights)]
    lines = [
        constant("QUAD_OF_CHANNELS", flag(is_set=cut.of_channels), "bool"),
        constant("ROW_QUADS", cut.row_quads),
        constant("UNIT_QUADS", cut.unit_quads),
        constant("UNIT_STEPS", cut.unit_steps),
        constant("UNIT_WEIGHTS", "UNIT_STEPS * WARP_FILTERS * 8"),
    ]
    return [*lines, choice_including("BATCH", 2, (1, 2, 4))] if Structure.WGMMA in chosen else lines


def _body(layer: Convolution, cut: Tiling, chosen: Chosen) -> str:
    is_async, is_vector = Structure.ASYNC in chosen, Structure.VECTOR in chosen
    copies = "async" if is_async else "sync"
    names = ["place", copies, f"copy_{copies}{'_vector' if is_vector else ''}", "patch", "stage"]
    if cut.use_tensor_cores:
        names += ["pack_wgmma" if cut.use_wgmma else "pack_mma", "pack_quads", "lanes_mma", "offset"]
    else:
        names += ["pack_taps", "lanes_taps"]
    text = sections("cuda.h", names)
    if cut.use_wgmma:
        text += "\n" + _wgmma(cut.warp_filters)
    kind = "wgmma" if cut.use_wgmma else "mma" if cut.use_tensor_cores else "taps"
    finish = "finish_pool" if cut.is_pooled else "finish_store"
    text += "\n" + sections("cuda.h", [f"multiply_{kind}", finish])
    text += "\n" + _convolve(layer, cut, is_async=is_async)
    if layer.pool and not cut.is_pooled:
        text += "\n" + sections("cuda.h", ["pool"])
    return text


def _convolve(layer: Convolution, cut: Tiling, *, is_async: bool) -> str:
    """Return the kernel with its bias and its way of staging filled in."""
    fence = '\n    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");' if cut.use_wgmma else ""
    commit = 'asm volatile("cp.async.commit_group;" ::: "memory");'
    next_copy = "if (next_tile < TILES) copy_stage(shared + {to}, x, packed, next_tile, next_chunk);"
    if is_async:
        first = f"copy_stage(shared, x, packed, tile, chunk);\n  {commit}"
        staged = f"{next_copy.format(to='(1 - stage) * STAGE')}\n    {commit}"
        staged += f'\n    asm volatile("cp.async.wait_group 1;" ::: "memory");{fence}'
        after = ""
    else:
        first, after = "copy_stage(shared, x, packed, tile, chunk);", next_copy.format(to="0")
        staged = fence.strip()
    lane_tap = "0"
    if cut.use_tensor_cores:
        lane_tap = f"static_cast<int>(threadIdx.x) % 4 * {'PLANE' if cut.of_channels else 'DILATION_X'}"
    text = sections("cuda.h", ["convolve"])
    for name, value in {
        "BIAS_PARAMETER": "const Element* __restrict__ bias," if layer.bias else "",
        "BIAS_START": "static_cast<float>(bias[filters + lane_filter(j)])" if layer.bias else "0.0f",
        "LANE_TAP": lane_tap,
        "STAGE_FIRST": first,
        "STAGE_NEXT": staged,
        "STAGE_AFTER": after,
    }.items():
        text = text.replace(name, value)
    return "\n".join(line.rstrip() for line in text.split("\n") if line.strip()) + "\n"


def _wgmma(filters: int) -> str:
    """Return one product of 64 outputs x `filters` x 8 taps for four warps, each with a quarter of the outputs."""
    sums = filters // 2
    registers = ", ".join(f"%{i}" for i in range(sums))
    bound = ", ".join(
        f'"+f"({half}[{2 * block + i}])' for block in range(filters // 8) for half in ("low", "high") for i in (0, 1)
    )
    return (
        "__device__ __forceinline__ void multiply_add(float (&low)[LANE_FILTERS], float (&high)[LANE_FILTERS],\n"
        "                                             const unsigned (&a)[4], uint64_t weights) {\n"
        "  asm volatile(\n"
        '      "{.reg .pred add; setp.ne.b32 add, 1, 0; "\n'
        f'      "wgmma.mma_async.sync.aligned.m64n{filters}k8.f32.tf32.tf32 "\n'
        f'      "{{{registers}}}, "\n'
        f'      "{{%{sums}, %{sums + 1}, %{sums + 2}, %{sums + 3}}}, %{sums + 4}, add, 1, 1;}}"\n'
        f"      : {bound}\n"
        '      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(weights));\n'
        "}\n"
    )


def _run(layer: Convolution, signature: Signature, chosen: Chosen) -> str:
    out = f"{layer.output.name}_data"
    is_apart = layer.pool is not None and Structure.POOL not in chosen
    between = "reinterpret_cast<float*>(static_cast<char*>(workspace) + PACKED_BYTES)"
    size = "PACKED_BYTES + sizeof(float) * IMAGES * FILTERS * OUT_ROWS * OUT_COLS" if is_apart else "PACKED_BYTES"
    bias = f"{layer.bias.name}_data, " if layer.bias else ""
    grid = ["const int blocks = TILES;"]
    if chosen & {Structure.ASYNC, Structure.RESIDENT}:
        grid = [
            "int fitting = 0;  // blocks that stay on their multiprocessor and take tile after tile",
            "cudaOccupancyMaxActiveBlocksPerMultiprocessor(&fitting, convolve, THREADS, SHARED_BYTES);",
            "fitting = PROCESSORS * fitting / FILTER_BLOCKS * FILTER_BLOCKS;",
            "const int blocks = TILES < fitting || fitting < 1 ? TILES : fitting;",
        ]
    lines = [
        "float* const packed = static_cast<float*>(workspace);",
        f"Target* const target = {between if is_apart else out};",
        f"pack_weights<<<(PACKED + 255) / 256, 256, 0, stream>>>({layer.weight.name}_data, packed);",
        "cudaFuncSetAttribute(convolve, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES);",
        *grid,
        "convolve<<<blocks, THREADS, SHARED_BYTES, stream>>>(",
        f"    {layer.x.name}_data, packed, {bias}target, {epilogue_made(layer.epilogue)});",
    ]
    if is_apart:
        lines += [
            "constexpr size_t POOLED = static_cast<size_t>(IMAGES) * FILTERS * POOLED_ROWS * POOLED_COLS;",
            f"pool_planes<<<static_cast<unsigned>((POOLED + 255) / 256), 256, 0, stream>>>(target, {out});",
        ]
    head = prototype(signature, "void* workspace", "cudaStream_t stream")
    return "\n".join(
        [
            "constexpr size_t PACKED_BYTES = (sizeof(float) * PACKED + 255) / 256 * 256;",
            "",
            f'extern "C" size_t workspace_bytes() {{ return {size}; }}',
            "",
            f"{head} {{",
            *(f"  {line}" for line in lines),
            "}\n",
        ]
    )
