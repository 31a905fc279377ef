"""Small charts as inline SVG, without a library or a script; colours come from the page's CSS variables.

All text is escaped. Lengths are in the units of the viewBox; the page scales the whole.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 900, 400
LEFT, RIGHT, TOP, BOTTOM = 72, 236, 18, 84  # right: "max-autotune with TF32 0.840 ms" in a wide font
_LANE = 26  # height of the lane of failed candidates below the plot
_LINE_GAP = 17  # two labels closer than this overlap
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
    """Rounds to x, and speedups to y on a logarithmic axis: 2× up and 2× down are equally far from 1×."""

    rounds: int
    low: float
    high: float

    def x(self, position: float) -> float:
        """Return the x of a position in rounds; round n fills [n, n + 1]."""
        return LEFT + (WIDTH - LEFT - RIGHT) * position / (self.rounds + 1)

    def y(self, speedup: float) -> float:
        """Return the y of a speedup; a speedup outside of the scale lies on the edge."""
        inside = min(max(speedup, self.low), self.high)
        share = math.log(inside / self.low) / math.log(self.high / self.low)
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share


def trajectory(dots: Sequence[Dot], lines: Sequence[Line], best_so_far: Sequence[tuple[int, float]]) -> str:
    """Return the chart of every candidate by round, the best so far as steps, baselines and floor as lines."""
    scale = _fit(dots, lines, best_so_far)
    body = [
        _grid(scale),
        *(_level(scale, line) for line in lines),
        _steps(scale, best_so_far),
        *_dots(scale, dots),
        *_labels(scale, lines, best_so_far),
    ]
    title = "Speedup over eager PyTorch of every candidate, by round"
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{title}">{"".join(body)}</svg>'


def _fit(dots: Sequence[Dot], lines: Sequence[Line], best_so_far: Sequence[tuple[int, float]]) -> Scale:
    timed = [d.speedup for d in dots if d.speedup] + [s for _, s in best_so_far]
    levels = [line.speedup for line in lines] + [1.0]
    ends = [d.interval[1] for d in dots if d.interval and math.isfinite(d.interval[1])]
    highest = max(timed + levels)
    high = max([highest, *(min(end, 1.5 * highest) for end in ends)]) * 1.15  # a very wide interval is cut
    low = max(min(timed + levels) / 1.15, high / 100)  # kernels over 100 times slower than the best lie on the edge
    return Scale(rounds=max([d.round for d in dots] + [r for r, _ in best_so_far], default=0), low=low, high=high)


def _grid(scale: Scale) -> str:
    bottom = HEIGHT - BOTTOM
    right = WIDTH - RIGHT
    parts = []
    for tick in _ticks(scale):
        y = scale.y(tick)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(_text(LEFT - 9, y + 4, f"{tick:g}×", "tick end"))
    for number in range(scale.rounds + 1):
        edge = scale.x(number)
        if number % 2:
            width = scale.x(number + 1) - edge
            parts.append(f'<rect class="band" x="{edge:.1f}" y="{TOP}" width="{width:.1f}" height="{bottom - TOP}"/>')
        if number % _every(scale.rounds) == 0:
            name = "seeds" if number == 0 else str(number)
            parts.append(_text(scale.x(number + 0.5), bottom + _LANE + 18, name, "tick middle"))
    parts.append(_text((LEFT + right) / 2, HEIGHT - 16, "round", "axis middle"))
    middle = (TOP + bottom) / 2
    parts.append(
        f'<text class="axis middle" transform="translate(15 {middle:.0f}) rotate(-90)">'
        "speedup over eager, log scale</text>"
    )
    parts.append(_text(LEFT - 9, bottom + _LANE / 2 + 5, "failed", "tick end"))
    return "".join(parts)


def _ticks(scale: Scale) -> list[float]:
    steps = _FINE if scale.high / scale.low < 12 else _COARSE
    return [m * 10.0**e for e in range(-3, 5) for m in steps if scale.low <= m * 10.0**e <= scale.high]


def _every(rounds: int) -> int:
    return max(1, math.ceil((rounds + 1) / 16))


def _level(scale: Scale, line: Line) -> str:
    y = scale.y(line.speedup)
    return f'<line class="{line.css}" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'


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
    tip = f"<title>{escape(dot.label)}</title>"
    if dot.speedup is None:
        y = HEIGHT - BOTTOM + _LANE / 2
        arm, side = size * 0.83, size * 1.66
        path = f"M{x - arm:.1f},{y - arm:.1f}l{side:g},{side:g}m0,-{side:g}l-{side:g},{side:g}"
        return f'<path class="failed" d="{path}">{tip}</path>'
    circle = f'<circle class="{dot.css}" cx="{x:.1f}" cy="{scale.y(dot.speedup):.1f}" r="{size:g}">{tip}</circle>'
    return _whisker(scale, dot, x) + circle


def _whisker(scale: Scale, dot: Dot, x: float) -> str:
    """Return a dot's interval as a line through it, cut at the edges of the plot."""
    if dot.interval is None or not 0 < dot.interval[0] <= dot.interval[1]:
        return ""
    low, high = (scale.y(end) for end in dot.interval)
    return f'<line class="whisker" x1="{x:.1f}" x2="{x:.1f}" y1="{low:.1f}" y2="{high:.1f}"/>'


def _labels(scale: Scale, lines: Sequence[Line], best_so_far: Sequence[tuple[int, float]]) -> list[str]:
    wanted = [(scale.y(line.speedup), line.label, f"label {line.css}-label") for line in lines]
    if best_so_far:
        last = best_so_far[-1][1]
        wanted.append((scale.y(last), f"best in the search {last:.2f}×", "label best-label"))
    edge = WIDTH - RIGHT
    drawn = []
    for y, (anchor, label, css) in zip(spread([w[0] for w in wanted]), wanted, strict=True):
        lead = f"M{edge:.1f},{anchor:.1f}L{edge + 12},{y:.1f}"
        drawn.append(f'<path class="lead" d="{lead}"/>{_text(edge + 16, y + 4, label, css)}')
    return drawn


def spread(positions: Sequence[float], gap: float = _LINE_GAP) -> list[float]:
    """Return positions near the wanted ones, in the same order along the axis, at least `gap` apart."""
    order = sorted(range(len(positions)), key=lambda i: positions[i])
    clusters: list[list[int]] = []
    for i in order:
        clusters.append([i])
        while len(clusters) > 1 and _start(clusters[-1], positions, gap) < _end(clusters[-2], positions, gap) + gap:
            last = clusters.pop()
            clusters[-1] += last
    placed = [0.0] * len(positions)
    for cluster in clusters:
        for place, i in enumerate(cluster):
            placed[i] = _start(cluster, positions, gap) + place * gap
    return placed


def _start(cluster: list[int], positions: Sequence[float], gap: float) -> float:
    middle = sum(positions[i] for i in cluster) / len(cluster)
    return middle - gap * (len(cluster) - 1) / 2


def _end(cluster: list[int], positions: Sequence[float], gap: float) -> float:
    return _start(cluster, positions, gap) + gap * (len(cluster) - 1)


def bars(counts: Sequence[tuple[str, int, str]]) -> str:
    """Return horizontal bars with their numbers: (label, count, CSS class) from top to bottom."""
    row, name_width, width = 26, 116, 420
    most = max([count for _, count, _ in counts], default=1) or 1
    drawn = []
    for place, (label, count, css) in enumerate(counts):
        y = place * row
        length = (width - name_width - 40) * count / most
        drawn.append(_text(name_width - 8, y + 17, label, "tick end"))
        drawn.append(
            f'<rect class="bar {css}" x="{name_width}" y="{y + 5}" width="{length:.1f}" height="{row - 10}" rx="3"/>'
        )
        drawn.append(_text(name_width + length + 7, y + 17, str(count), "tick"))
    height = max(row * len(counts), row)
    return f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="How evaluations ended">{"".join(drawn)}</svg>'


def _text(x: float, y: float, text: str, css: str) -> str:
    return f'<text class="{css}" x="{x:.1f}" y="{y:.1f}">{escape(text)}</text>'
