"""suite.html: the problems of a suite in one table, each with its interval as a bar and a link to its run's report."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from markupsafe import Markup

from ridgeline.checkpoints.history.gains import Gain
from ridgeline.checkpoints.report.figures import span_text
from ridgeline.checkpoints.report.page import page_environment
from ridgeline.checkpoints.report.svg import LogScale, line, picture
from ridgeline.checkpoints.report.wording import PROOF_CSS
from ridgeline.checkpoints.runs.suite import FAST_P, Row, Suite, scores
from ridgeline.checkpoints.storage.own_files import replace_file

FILE_NAME = "suite.html"
_BAR_WIDTH, _BAR_HEIGHT, _MARGIN = 240, 22, 8


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shown:
    """One problem as the page shows it."""

    row: Row
    gain: Gain | None
    bar: Markup
    link: str  # of its run's report, relative to the page; "" before there is one


def write_suite_page(folder: Path, suite: Suite) -> None:
    """Put suite.html into the suite's folder in one step.

    Raises:
        StorageError: the folder cannot be written or the disk is full.
    """
    reported = {row.run for row in suite.rows if (folder / row.run / "report.html").is_file()}
    replace_file(folder / FILE_NAME, render_suite(suite, name=folder.name, reported=reported))


def render_suite(suite: Suite, *, name: str, reported: set[str]) -> str:
    """Return the page of a suite; `reported` are the run folders that hold a report."""
    scale = _scale(suite.rows)
    shown = [_shown(row, scale, has_report=row.run in reported) for row in suite.rows]
    template = page_environment().get_template("suite.html.j2")
    return template.render(
        name=name,
        suite=suite,
        rows=shown,
        scores=scores(suite.rows),
        fast_p=[f"{p:g}" for p in FAST_P],
        has_bars=any(each.bar for each in shown),
    )


def _shown(row: Row, scale: LogScale, *, has_report: bool) -> _Shown:
    gain = Gain(ratio=row.speedup, interval=row.speedup_ci95, is_side_by_side=True) if row.speedup else None
    # "./" keeps a folder's name from being read as a scheme
    link = f"./{quote(row.run)}/report.html" if has_report else ""
    return _Shown(row=row, gain=gain, bar=_bar(gain, scale) if gain else Markup(), link=link)


def _scale(rows: Sequence[Row]) -> LogScale:
    """Return the one scale of speedups that shows every row, and 1."""
    ends = [end for row in rows for end in (*(row.speedup_ci95 or ()), row.speedup) if end]
    known = [end for end in ends if end > 0 and math.isfinite(end)]
    low, high = min([*known, 1.0]) / 1.1, max([*known, 1.0]) * 1.1
    return LogScale(low=low, high=high, begin=_MARGIN, end=_BAR_WIDTH - _MARGIN)


def _bar(gain: Gain, scale: LogScale) -> Markup:
    """Return a row's interval as a bar with its figure as a dot, and a line at 1."""
    middle, one = _BAR_HEIGHT / 2, scale.at(1.0)
    low, high = (scale.at(end) for end in gain.interval or (gain.ratio, gain.ratio))
    words = f"{gain.ratio:.2f}" + (f", {span_text(gain.interval)}" if gain.interval else "")
    css = f"{PROOF_CSS[gain.proof]}-bar"
    body = (
        line(one, 0, one, _BAR_HEIGHT, "lead"),
        f'<rect class="{css}" x="{low:.1f}" y="{middle - 5:g}" width="{max(high - low, 1.5):.1f}" height="10" rx="2"/>',
        f'<circle class="point" cx="{scale.at(gain.ratio):.1f}" cy="{middle:g}" r="2.6"/>',
    )
    return Markup(picture(_BAR_WIDTH, _BAR_HEIGHT, words, body))
