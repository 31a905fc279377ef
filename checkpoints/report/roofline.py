"""A search's roofline: what its kernels reach of the rates that the device was seen to reach, as inline SVG.

Operations and bytes are the reference's: FLOPs by formula, each input read once and each output written once. So every
kernel of a search stands at one intensity, and a faster one stands higher. The marks are set side by side to be told
apart.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ridgeline.checkpoints.report.floors import binding_floor
from ridgeline.checkpoints.report.svg import LogScale, circle, labels, line, picture, text, tip, upright
from ridgeline.tools.records.baselines import Floor
from ridgeline.tools.records.problem import Description

WIDTH, HEIGHT = 900, 430
LEFT, RIGHT, TOP, BOTTOM = 84, 246, 30, 62  # right: "tf32 900 GFLOP/s, not this problem's" in a wide font
_COLUMN = 120  # width in which the marks stand side by side


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """One kernel, or eager PyTorch, by its time."""

    ms: float
    label: str
    css: str
    interval_ms: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceilings:
    """The rates of one problem's roofline."""

    flops: int
    bytes: int
    gbps: float  # bytes / the floor of memory: of compulsory bytes, parameters at a cache's rate
    units: Mapping[str, float]  # GFLOP/s by class; the fastest that the problem allows is `unit`
    unit: str
    floor_ms: float  # the higher one of both floors
    floor_name: str

    @property
    def intensity(self) -> float:
        """FLOPs a byte."""
        return self.flops / self.bytes

    def roof(self, intensity: float) -> float:
        """Return the GFLOP/s that nothing exceeds at this intensity."""
        return min(self.gbps * intensity, self.units[self.unit])


def ceilings_of(floor: Floor, description: Description) -> Ceilings | None:
    """Return a problem's ceilings; None where a rate, the operations or the bytes are not known."""
    units = {name: rate for name, rate in floor.class_gflops.items() if rate > 0 and math.isfinite(rate)}
    if floor.gflops > 0 and math.isfinite(floor.gflops):
        units.setdefault(floor.unit or "arithmetic", floor.gflops)
    unit = floor.unit or "arithmetic"
    known = (floor.floor_ms, floor.compute_floor_ms, description.flops, description.compulsory_bytes)
    if unit not in units or not all(value > 0 and math.isfinite(value) for value in known):
        return None
    name, highest_ms = binding_floor(floor.floor_ms, floor.compute_floor_ms)
    return Ceilings(
        flops=description.flops,
        bytes=description.compulsory_bytes,
        gbps=description.compulsory_bytes / floor.floor_ms / 1e6,
        units=units,
        unit=unit,
        floor_ms=highest_ms,
        floor_name=name,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Axes:
    """Intensity to x and GFLOP/s to y, both logarithmic."""

    x: LogScale
    y: LogScale


def roofline(ceilings: Ceilings, marks: Sequence[Mark]) -> str:
    """Return the picture: the memory ceiling as a slope, each unit's as a level, the floor, and the marks."""
    rates = [ceilings.flops / mark.ms / 1e6 for mark in marks if mark.ms > 0]
    axes = _fit(ceilings, rates)
    body = [_grid(axes), _slope(axes, ceilings)]
    wanted: list[tuple[float, str, str]] = []
    for name, rate in sorted(ceilings.units.items(), key=lambda unit: unit[1]):
        css = "level" if name == ceilings.unit else "level other"
        begin = axes.x.at(max(rate / ceilings.gbps, axes.x.low))
        body.append(line(begin, axes.y.at(rate), WIDTH - RIGHT, axes.y.at(rate), css))
        allowed = "" if name == ceilings.unit else ", not this problem's"
        wanted.append((axes.y.at(rate), f"{name} {rate:,.0f} GFLOP/s{allowed}", "level-label"))
    x, top = axes.x.at(ceilings.intensity), axes.y.at(ceilings.roof(ceilings.intensity))
    body.append(_column(x, ceilings))
    body.append(line(x, top, x, HEIGHT - BOTTOM, "lead"))
    body.append(_floor(x, top, ceilings))
    body += _marks(axes, ceilings, marks)
    body += labels(WIDTH - RIGHT, wanted)
    title = (
        f"Roofline: {ceilings.intensity:.3g} FLOPs a byte; memory {ceilings.gbps:.3g} GB/s, "
        f"{ceilings.unit} {ceilings.units[ceilings.unit]:.4g} GFLOP/s; {len(marks)} marks"
    )
    return picture(WIDTH, HEIGHT, title, body)


def _fit(ceilings: Ceilings, rates: Sequence[float]) -> _Axes:
    ridge = ceilings.units[ceilings.unit] / ceilings.gbps
    near = (ceilings.intensity, ridge)
    high = max(ceilings.units.values())
    low = min([*rates, ceilings.roof(ceilings.intensity)])
    lowest = max(low / 2, high / 1e5)  # a kernel slower than that lies on the edge
    return _Axes(
        x=LogScale(low=min(near) / 6, high=max(near) * 6, begin=LEFT, end=WIDTH - RIGHT),
        y=LogScale(low=lowest, high=max([high, *rates]) * 1.6, begin=HEIGHT - BOTTOM, end=TOP),
    )


def _grid(axes: _Axes) -> str:
    bottom, right, parts = HEIGHT - BOTTOM, WIDTH - RIGHT, []
    for tick in _ticks(axes.y.low, axes.y.high):
        parts.append(line(LEFT, axes.y.at(tick), right, axes.y.at(tick), "grid"))
        parts.append(text(LEFT - 9, axes.y.at(tick) + 4, f"{tick:,g}", "tick end"))
    for tick in _ticks(axes.x.low, axes.x.high):
        parts.append(line(axes.x.at(tick), TOP, axes.x.at(tick), bottom, "grid"))
        parts.append(text(axes.x.at(tick), bottom + 18, f"{tick:,g}", "tick middle"))
    parts.append(text((LEFT + right) / 2, HEIGHT - 14, "FLOPs a compulsory byte, log scale", "axis middle"))
    parts.append(upright(16, (TOP + bottom) / 2, "GFLOP/s, log scale", "axis"))
    return "".join(parts)


def _ticks(low: float, high: float) -> list[float]:
    """Return round numbers between both, powers of ten alone where the range is wide."""
    steps = (1, 2, 5) if high / low < 2000 else (1,)
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    return [m * 10.0**e for e in range(first, last + 1) for m in steps if low <= m * 10.0**e <= high]


def _slope(axes: _Axes, ceilings: Ceilings) -> str:
    """Return the ceiling of memory up to the fastest unit's, with its rate along it."""
    begin = max(axes.x.low, axes.y.low / ceilings.gbps)
    end = min(max(ceilings.units.values()) / ceilings.gbps, axes.x.high)
    x1, y1, x2, y2 = axes.x.at(begin), axes.y.at(begin * ceilings.gbps), axes.x.at(end), axes.y.at(end * ceilings.gbps)
    angle = math.degrees(math.atan2(y2 - y1, x2 - x1))
    share = 0.3
    x, y = x1 + (x2 - x1) * share, y1 + (y2 - y1) * share
    words = (
        f'<text class="floor-label middle" transform="translate({x - 6:.1f} {y - 8:.1f}) rotate({angle:.1f})">'
        f"memory {ceilings.gbps:,.4g} GB/s</text>"
    )
    return line(x1, y1, x2, y2, "floor") + words


def _column(x: float, ceilings: Ceilings) -> str:
    """Return the column that stands for one intensity, with its words."""
    height = HEIGHT - TOP - BOTTOM
    band = f'<rect class="band" x="{x - _COLUMN / 2:.1f}" y="{TOP}" width="{_COLUMN}" height="{height}"/>'
    return band + text(x, TOP - 7, f"all at {ceilings.intensity:.3g} FLOPs a byte", "tick middle")


def _floor(x: float, y: float, ceilings: Ceilings) -> str:
    size = 6
    path = f"M{x:.1f},{y - size:.1f}l{size},{size}l-{size},{size}l-{size},-{size}z"
    return f'<path class="roof" d="{path}">{tip(f"{ceilings.floor_name}: {ceilings.floor_ms:.4g} ms")}</path>'


def _marks(axes: _Axes, ceilings: Ceilings, marks: Sequence[Mark]) -> list[str]:
    drawn = []
    with_whiskers = len(marks) <= 150
    for place, mark in enumerate(marks):
        if not mark.ms > 0:
            continue
        x = axes.x.at(ceilings.intensity) + _COLUMN * ((place + 0.5) / len(marks) - 0.5)
        y = axes.y.at(ceilings.flops / mark.ms / 1e6)
        if mark.interval_ms and with_whiskers and min(mark.interval_ms) > 0:
            ends = [axes.y.at(ceilings.flops / ms / 1e6) for ms in mark.interval_ms]
            drawn.append(line(x, ends[0], x, ends[1], "whisker"))
        size = 5.5 if "eager" in mark.css or "best-dot" in mark.css else 3.6
        drawn.append(circle(x, y, size, mark.css, mark.label))
    return drawn
