"""Small charts as inline SVG, without a library or a script; colours come from the page's CSS variables.

Lengths are in the units of the viewBox; see svg.py.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ridgeline.checkpoints.report.svg import LogScale, circle, labels, line, picture, text, tip, upright

WIDTH, HEIGHT = 900, 400
LEFT, RIGHT, TOP, BOTTOM = 72, 236, 18, 84  # right: "max-autotune with TF32 0.840 ms" in a wide font
_LANE = 26  # height of the lane of failed candidates below the plot
_COARSE, _FINE = (1, 2, 5), (1, 1.5, 2, 3, 4, 5, 7)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dot:
    """One candidate; `speedup` is None when it failed."""

    round: int
    speedup: float | None
    label: str
    css: str = "dot"
    interval: tuple[float, float] | None = None  # 95 %


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A horizontal line at a speedup: a baseline or the floor."""

    speedup: float
    label: str
    css: str = "baseline"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Rounds to x, and speedups to y."""

    rounds: int
    speedups: LogScale

    def x(self, position: float) -> float:
        """Return the x of a position in rounds; round n fills [n, n + 1]."""
        return LEFT + (WIDTH - LEFT - RIGHT) * position / (self.rounds + 1)

    def y(self, speedup: float) -> float:
        """Return the y of a speedup; a speedup outside of the scale lies on the edge."""
        return self.speedups.at(speedup)


def trajectory(dots: Sequence[Dot], lines: Sequence[Line], best_so_far: Sequence[tuple[int, float]]) -> str:
    """Return the chart of every candidate by round, the best so far as steps, baselines and floor as lines."""
    scale = _fit(dots, lines, best_so_far)
    body = [
        _grid(scale),
        *(_level(scale, level) for level in lines),
        _steps(scale, best_so_far),
        *_dots(scale, dots),
        *_labels(scale, lines, best_so_far),
    ]
    return picture(WIDTH, HEIGHT, "Speedup over eager PyTorch of every candidate, by round", body)


def _fit(dots: Sequence[Dot], lines: Sequence[Line], best_so_far: Sequence[tuple[int, float]]) -> Scale:
    timed = [d.speedup for d in dots if d.speedup] + [s for _, s in best_so_far]
    levels = [level.speedup for level in lines] + [1.0]
    ends = [d.interval[1] for d in dots if d.interval and math.isfinite(d.interval[1])]
    highest = max(timed + levels)
    high = max([highest, *(min(end, 1.5 * highest) for end in ends)]) * 1.15  # a very wide interval is cut
    low = max(min(timed + levels) / 1.15, high / 100)  # kernels over 100 times slower than the best lie on the edge
    rounds = max([d.round for d in dots] + [r for r, _ in best_so_far], default=0)
    return Scale(rounds=rounds, speedups=LogScale(low=low, high=high, begin=HEIGHT - BOTTOM, end=TOP))


def _grid(scale: Scale) -> str:
    bottom = HEIGHT - BOTTOM
    right = WIDTH - RIGHT
    parts = []
    for tick in _ticks(scale):
        y = scale.y(tick)
        parts.append(line(LEFT, y, right, y, "grid"))
        parts.append(text(LEFT - 9, y + 4, f"{tick:g}×", "tick end"))
    for number in range(scale.rounds + 1):
        edge = scale.x(number)
        if number % 2:
            width = scale.x(number + 1) - edge
            parts.append(f'<rect class="band" x="{edge:.1f}" y="{TOP}" width="{width:.1f}" height="{bottom - TOP}"/>')
        if number % _every(scale.rounds) == 0:
            name = "seeds" if number == 0 else str(number)
            parts.append(text(scale.x(number + 0.5), bottom + _LANE + 18, name, "tick middle"))
    parts.append(text((LEFT + right) / 2, HEIGHT - 16, "round", "axis middle"))
    parts.append(upright(15, (TOP + bottom) / 2, "speedup over eager, log scale", "axis"))
    parts.append(text(LEFT - 9, bottom + _LANE / 2 + 5, "failed", "tick end"))
    return "".join(parts)


def _ticks(scale: Scale) -> list[float]:
    low, high = scale.speedups.low, scale.speedups.high
    steps = _FINE if high / low < 12 else _COARSE
    return [m * 10.0**e for e in range(-3, 5) for m in steps if low <= m * 10.0**e <= high]


def _every(rounds: int) -> int:
    return max(1, math.ceil((rounds + 1) / 16))


def _level(scale: Scale, level: Line) -> str:
    y = scale.y(level.speedup)
    return line(LEFT, y, WIDTH - RIGHT, y, level.css)


def _steps(scale: Scale, best_so_far: Sequence[tuple[int, float]]) -> str:
    if not best_so_far:
        return ""
    path = []
    for number, speedup in best_so_far:
        y = scale.y(speedup)
        path += [f"{scale.x(number):.1f},{y:.1f}", f"{scale.x(number + 1):.1f},{y:.1f}"]
    return f'<polyline class="best" points="{" ".join(path)}"/>'


def _dots(scale: Scale, dots: Sequence[Dot]) -> list[str]:
    drawn = []
    by_round: dict[int, list[Dot]] = {}
    for dot in dots:
        by_round.setdefault(dot.round, []).append(dot)
    for number, group in by_round.items():
        for place, dot in enumerate(group):
            x = scale.x(number + 0.12 + 0.76 * (place + 0.5) / len(group))
            drawn.append(_mark(scale, dot, x, 4.2 if len(dots) < 150 else 3.0))
    return drawn


def _mark(scale: Scale, dot: Dot, x: float, size: float) -> str:
    if dot.speedup is None:
        y = HEIGHT - BOTTOM + _LANE / 2
        arm, side = size * 0.83, size * 1.66
        path = f"M{x - arm:.1f},{y - arm:.1f}l{side:g},{side:g}m0,-{side:g}l-{side:g},{side:g}"
        return f'<path class="failed" d="{path}">{tip(dot.label)}</path>'
    return _whisker(scale, dot, x) + circle(x, scale.y(dot.speedup), size, dot.css, dot.label)


def _whisker(scale: Scale, dot: Dot, x: float) -> str:
    """Return a dot's interval as a line through it, cut at the edges of the plot."""
    if dot.interval is None or not 0 < dot.interval[0] <= dot.interval[1]:
        return ""
    low, high = (scale.y(end) for end in dot.interval)
    return line(x, low, x, high, "whisker")


def _labels(scale: Scale, lines: Sequence[Line], best_so_far: Sequence[tuple[int, float]]) -> list[str]:
    wanted = [(scale.y(level.speedup), level.label, f"label {level.css}-label") for level in lines]
    if best_so_far:
        last = best_so_far[-1][1]
        wanted.append((scale.y(last), f"best in the search {last:.2f}×", "label best-label"))
    return labels(WIDTH - RIGHT, wanted)


def bars(counts: Sequence[tuple[str, int, str]]) -> str:
    """Return horizontal bars with their numbers: (label, count, CSS class) from top to bottom."""
    row, name_width, width = 26, 116, 420
    most = max([count for _, count, _ in counts], default=1) or 1
    drawn = []
    for place, (label, count, css) in enumerate(counts):
        y = place * row
        length = (width - name_width - 40) * count / most
        drawn.append(text(name_width - 8, y + 17, label, "tick end"))
        drawn.append(
            f'<rect class="bar {css}" x="{name_width}" y="{y + 5}" width="{length:.1f}" height="{row - 10}" rx="3"/>'
        )
        drawn.append(text(name_width + length + 7, y + 17, str(count), "tick"))
    height = max(row * len(counts), row)
    return picture(width, height, "How judged kernels ended", drawn)
