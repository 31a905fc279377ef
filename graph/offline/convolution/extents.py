"""A convolution's extents as constants of a source, the same for both devices."""

from __future__ import annotations

from ridgeline.graph.offline.convolution.read import Convolution
from ridgeline.graph.offline.text.frame import constant
from ridgeline.tools.build.header import C_TYPES


def shape_constants(layer: Convolution) -> list[str]:
    """Return the convolution's extents and types as definitions."""
    pairs = {
        ("HEIGHT", "WIDTH"): layer.size,
        ("TAP_ROWS", "TAP_COLS"): layer.taps,
        ("STRIDE_Y", "STRIDE_X"): layer.stride,
        ("PAD_Y", "PAD_X"): layer.padding,
        ("DILATION_Y", "DILATION_X"): layer.dilation,
        ("OUT_ROWS", "OUT_COLS"): layer.out_size,
    }
    if layer.pool:
        pairs |= {
            ("POOL_ROWS", "POOL_COLS"): layer.pool.kernel,
            ("POOL_STRIDE_Y", "POOL_STRIDE_X"): layer.pool.stride,
            ("POOL_PAD_Y", "POOL_PAD_X"): layer.pool.padding,
            ("POOL_DILATION_Y", "POOL_DILATION_X"): layer.pool.dilation,
            ("POOLED_ROWS", "POOLED_COLS"): layer.pool.size,
        }
    lines = [constant("IMAGES", layer.images), constant("CHANNELS", layer.channels), constant("FILTERS", layer.filters)]
    lines += [
        constant(name, value) for names, values in pairs.items() for name, value in zip(names, values, strict=True)
    ]
    return [
        *lines,
        f"using Element = {C_TYPES[layer.x.dtype]};",
        f"using Result = {C_TYPES[layer.output.dtype]};",
    ]
