"""The parts of the report's pictures: a logarithmic scale, texts, lines and labels as inline SVG.

All text is escaped here. Lengths are in the units of the viewBox; the page scales the whole.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

_LINE_GAP = 17  # two labels closer than this overlap


@dataclass(frozen=True, slots=True, kw_only=True)
class LogScale:
    """Values to positions on a logarithmic axis, on which 2× up and 2× down are equally far from 1×."""

    low: float
    high: float
    begin: float  # where `low` lies
    end: float

    def at(self, value: float) -> float:
        """Return the position of a value; one outside of the scale lies on the edge."""
        inside = min(max(value, self.low), self.high)
        share = math.log(inside / self.low) / math.log(self.high / self.low)
        return self.begin + (self.end - self.begin) * share


def picture(width: float, height: float, label: str, body: Sequence[str]) -> str:
    """Return a picture of this size; `label` says what it shows to who does not see it."""
    size = f'viewBox="0 0 {width} {height}"'
    return f'<svg {size} role="img" aria-label="{escape(label)}">{"".join(body)}</svg>'


def text(x: float, y: float, words: str, css: str) -> str:
    """Return a text that begins at x, with its foot at y."""
    return f'<text class="{css}" x="{x:.1f}" y="{y:.1f}">{escape(words)}</text>'


def upright(x: float, y: float, words: str, css: str) -> str:
    """Return a text that is read upwards, with its middle at y."""
    return f'<text class="{css} middle" transform="translate({x:g} {y:.0f}) rotate(-90)">{escape(words)}</text>'


def line(x1: float, y1: float, x2: float, y2: float, css: str) -> str:
    """Return a straight line."""
    return f'<line class="{css}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def circle(x: float, y: float, radius: float, css: str, label: str) -> str:
    """Return a mark that tells its label where a pointer rests on it."""
    return f'<circle class="{css}" cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}">{tip(label)}</circle>'


def tip(label: str) -> str:
    """Return the title of the element around it."""
    return f"<title>{escape(label)}</title>"


def labels(edge: float, wanted: Sequence[tuple[float, str, str]]) -> list[str]:
    """Return labels (y, words, CSS class) to the right of an edge, each led to from its y, none over another."""
    placed = spread([y for y, _, _ in wanted])
    return [
        f'<path class="lead" d="M{edge:.1f},{anchor:.1f}L{edge + 12:.1f},{y:.1f}"/>{text(edge + 16, y + 4, words, css)}'
        for y, (anchor, words, css) in zip(placed, wanted, strict=True)
    ]


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
