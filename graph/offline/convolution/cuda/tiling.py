"""Tilings of a convolution for a GPU: the tiles that fit a multiprocessor, and their cost."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from ridgeline.graph.offline.convolution.read import Convolution, Pair, Pool
from ridgeline.graph.offline.program.ir import NotCovered

STAGE_SHARE = 0.43
"""A stage's share of a block's shared memory, with which two blocks fit a multiprocessor."""
SLAB = 4
"""Sums of a lane that pass through shared memory together on their way to the pool."""
NO_POOL = Pool(kernel=(1, 1), stride=(1, 1), padding=(0, 0), dilation=(1, 1), size=(0, 0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Tiling:
    """One cut into tiles. The written source repeats these formulas, since tunables change their values."""

    layer: Convolution
    shared_limit: int  # bytes of a block
    processors: int
    use_tensor_cores: bool
    use_wgmma: bool
    is_pooled: bool  # the max pool is taken inside the tile
    is_resident: bool
    stages: int
    shift: int  # elements before the patch's first column, so that it starts at 16 bytes
    plane_bank: int
    rows: int  # of results in a tile
    cols: int
    warp_groups: int
    warp_filters: int
    filter_warps: int
    of_channels: bool  # a quad is four channels, else four neighbours in a row of the kernel
    unit: int  # channels that a loop's body covers
    chunk: int  # channels of a stage

    @property
    def window(self) -> Pool:
        return self.layer.pool if self.is_pooled and self.layer.pool else NO_POOL

    @property
    def tile(self) -> Pair:
        """Return the convolution's own rows and columns in a tile."""
        return _covered(self.rows, self.window, 0), _covered(self.cols, self.window, 1)

    @property
    def groups_x(self) -> int:
        return -(-self.tile[1] // 8)

    @property
    def groups(self) -> int:
        return self.tile[0] * self.groups_x

    @property
    def warps(self) -> int:
        count = -(-self.groups // self.warp_groups) * self.filter_warps
        return -(-count // 4) * 4 if self.use_wgmma else count

    @property
    def row_quads(self) -> int:
        return -(-self.layer.taps[1] // 4)

    @property
    def unit_quads(self) -> int:
        rows, cols = self.layer.taps
        return self.unit // 4 * rows * cols if self.of_channels else self.unit * rows * self.row_quads

    @property
    def unit_steps(self) -> int:
        return -(-self.unit_quads // 2)

    @property
    def unit_weights(self) -> int:
        """Return the floats of a unit's packed weights."""
        if self.use_tensor_cores:
            return self.unit_steps * self.warp_filters * 8
        return math.prod(self.layer.taps) * self.warp_filters * self.filter_warps

    @property
    def overhang(self) -> int:
        """Return the columns past the patch that a short quad may read."""
        return 0 if self.of_channels else (4 * self.row_quads - self.layer.taps[1]) * self.layer.dilation[1]

    @property
    def patch_floats(self) -> int:
        layer = self.layer
        rows = (self.tile[0] - 1) * layer.stride[0] + (layer.taps[0] - 1) * layer.dilation[0] + 1
        cols = (8 * self.groups_x - 1) * layer.stride[1] + (layer.taps[1] - 1) * layer.dilation[1] + 1 + self.shift
        plane = rows * (-(-(cols + self.overhang) // 4) * 4)
        plane += (self.plane_bank + 32 - plane % 32) % 32
        return -(-self.chunk * plane // 32) * 32

    @property
    def chunks(self) -> int:
        return -(-self.layer.channels // self.chunk)

    @property
    def filter_blocks(self) -> int:
        return -(-self.layer.filters // (self.warp_filters * self.filter_warps))

    @property
    def shared_bytes(self) -> int:
        weights = self.chunk // self.unit * self.unit_weights
        staged = self.stages * (self.patch_floats + (0 if self.is_resident else weights))
        staged += self.chunks * weights if self.is_resident else 0
        pool = 4 * SLAB * self.filter_warps * (8 * self.groups + 4) if self.is_pooled else 0
        is_apart = self.stages > 1 or self.is_resident
        return 4 * (staged + pool if is_apart else max(staged, pool))

    @property
    def registers(self) -> int:
        """Return the registers of a block, in whole warps for each quarter of a multiprocessor."""
        return 32 * (-(-self.warps // 4) * 4) * (self.warp_groups * self.warp_filters // 4 + self.lane_registers)

    @property
    def lane_registers(self) -> int:
        """Return the registers of a lane beside its sums, without which the compiler spills."""
        if not self.use_tensor_cores:
            return 90 if self.is_pooled else 60
        return 76 if self.stages > 1 and not self.use_wgmma else 60

    @property
    def fits(self) -> bool:
        return self.shared_bytes <= self.shared_limit and self.warps <= 32 and self.registers <= 65536

    @property
    def wasted(self) -> float:
        """Return (computed outputs) / (wanted outputs)."""
        rows, cols = self.window.size if self.is_pooled else self.layer.out_size
        tiles = -(-rows // self.rows) * -(-cols // self.cols)
        return (
            tiles * -(-self.groups // self.warp_groups) * self.warp_groups * 8 / max(math.prod(self.layer.out_size), 1)
        )

    def with_chunk(self) -> Tiling:
        """Return the cut with the most channels in a stage that keep it within its share of shared memory."""
        target = STAGE_SHARE * self.shared_limit // self.stages
        chunk = best = self.unit
        while chunk < self.layer.channels:
            chunk = min(2 * chunk, -(-self.layer.channels // self.unit) * self.unit)
            grown = replace(self, chunk=chunk)
            stage = grown.patch_floats + (0 if self.is_resident else chunk // self.unit * self.unit_weights)
            if 4 * stage > target or not grown.fits:
                break
            best = chunk
        return replace(self, chunk=best)


def row_choices(tiling: Tiling) -> list[int]:
    """Return the tile heights that fit, at most an output's height."""
    height = tiling.window.size[0] if tiling.is_pooled else tiling.layer.out_size[0]
    return [r for r in (1, 2, 3, 4, 5, 6, 8, 16) if r <= height and replace(tiling, rows=r).fits]


def group_choices(tiling: Tiling) -> list[int]:
    """Return the numbers of groups of 8 outputs that a warp may have."""
    choices = (2, 4, 6) if tiling.use_tensor_cores else (2, 4, 7, 8)
    return [g for g in choices if replace(tiling, warp_groups=g).fits and g < 2 * max(tiling.groups, 2)]


def chosen(tiling: Tiling, filters: tuple[Pair, ...], variation: int) -> Tiling:
    """Return the cut with the cheapest tile, or for a variation a later one.

    `filters` lists pairs: filters of a warp, warps that share the outputs.

    Raises:
        NotCovered: not even the smallest tile fits.
    """
    fitting = []
    for of_warp, warps in dict.fromkeys(filters):
        narrow = replace(tiling, warp_filters=of_warp, filter_warps=warps)
        for groups in (2, 4, 6) if tiling.use_tensor_cores else (2, 4, 7, 8):
            wide = replace(narrow, warp_groups=groups)
            fitting += [replace(wide, rows=rows).with_chunk() for rows in row_choices(wide)]
    if not fitting:
        raise NotCovered("a convolution whose smallest tile does not fit shared memory")
    fitting.sort(key=_cost)
    return fitting[2 * variation % len(fitting)]


def _cost(tiling: Tiling) -> float:
    """Return a tile's cost: unwanted outputs, reads of shared memory, idle warps, idle multiprocessors."""
    layer = tiling.layer
    rows, cols = tiling.window.size if tiling.is_pooled else layer.out_size
    tiles = layer.images * -(-rows // tiling.rows) * -(-cols // tiling.cols) * tiling.filter_blocks
    idle = -(-tiles // tiling.processors) * tiling.processors / tiles
    blocks = max(1, min(65536 // tiling.registers, tiling.shared_limit // max(tiling.shared_bytes, 1), 4))
    busy = min(1.0, tiling.warps * blocks / 12)
    computed = tiling.filter_blocks * tiling.warp_filters * tiling.filter_warps / layer.filters
    return tiling.wasted * computed * idle * (1 + _shared_reads(tiling)) / busy


def _shared_reads(tiling: Tiling) -> float:
    """Return about (cycles that read shared memory) / (cycles of arithmetic)."""
    groups, filters = tiling.warp_groups, tiling.warp_filters
    if tiling.use_wgmma:
        return 16 / filters + 0.5
    if tiling.use_tensor_cores:  # m16n8k8: 2 reads for a group, 2 for 8 filters; an instruction takes 1.6 cycles
        return (2 * groups + filters / 4) / (groups * filters / 16) / 1.6
    return 4 * (groups + filters / 16) / (groups * filters / 4)


def warp_filters(filters: int, most: int, multiple: int) -> int:
    """Return the filters of a warp, at most `most`: the multiple that wastes least, the largest of equals."""
    sizes = range(multiple, most + 1, multiple)
    return min(sizes, key=lambda n: (-(-filters // n) * n, -n))


def plane_bank(layer: Convolution) -> int:
    """Return the distance in banks between the starts of neighbouring planes, for quads of channels."""
    return {1: 8, 2: 16}.get(layer.stride[1], 4)


def quad_of_channels(layer: Convolution) -> bool:
    """Tell whether quads of four channels waste fewer products than quads along a row of the kernel."""
    channels, (rows, cols) = layer.channels, layer.taps
    return -(-channels // 4) * 4 * rows * cols < channels * rows * (-(-cols // 4) * 4)


def unit_channels(layer: Convolution, *, of_channels: bool) -> int:
    """Return the channels of one unrolled body: an even number of quads, at least four."""
    base = 4 if of_channels else 1
    quads = layer.taps[0] * (layer.taps[1] if of_channels else -(-layer.taps[1] // 4))
    unit = 1
    while (((quads * unit) % 2 and quads * unit < 32) or quads * unit < 4) and base * unit * 2 < 2 * layer.channels:
        unit *= 2
    return base * unit


def _covered(results: int, window: Pool, axis: int) -> int:
    return (results - 1) * window.stride[axis] + (window.kernel[axis] - 1) * window.dilation[axis] + 1


def tile_cols(layer: Convolution, *, is_pooled: bool) -> int:
    """Return the results of a tile's row: all of them, or an even part of at most 64 outputs of the convolution."""
    pool = layer.pool if is_pooled and layer.pool else NO_POOL
    width = layer.pool.size[1] if is_pooled and layer.pool else layer.out_size[1]
    parts = 1
    while _covered(-(-width // parts), pool, 1) > 64 and parts < width:
        parts += 1
    cols = -(-width // parts)
    return cols if parts == 1 or is_pooled else -(-cols // 8) * 8
