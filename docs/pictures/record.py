"""Record a search for the README's picture of the live view, and draw it; draw the picture of a run's report.

PYTHONPATH=src .venv/bin/python docs/pictures/record.py search EVENTS.jsonl [--rounds N] [--run-dir DIR]
PYTHONPATH=src .venv/bin/python docs/pictures/record.py draw EVENTS.jsonl docs/pictures/live.svg --at SECONDS
PYTHONPATH=src .venv/bin/python docs/pictures/record.py report RUN docs/pictures/report.svg

`search` searches the quickstart problem without a key, and writes each event with the seconds since the search began.
`draw` gives the live view the events that had come by then, and writes what a terminal of 112 columns shows.
`report` writes the verdict and the trajectory of a run's report, in the report's own colours, light or dark. The README's
is of the recorded search: `ridgeline run --replay benchmarks/recordings/attention_causal.jsonl --replay-timings`.
"""

from __future__ import annotations

import argparse
import io
import json
import re
import time
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

COLUMNS, LINES = 112, 24
WIDTH, HEIGHT, MARGIN, CHART_TOP = 948, 560, 24, 104
"""Of the report's picture."""
LONGEST = 92
"""Characters of a line beside its figure."""
_LEGEND = (
    ('<circle class="dot" r="4"/>', "written by a model"),
    ('<circle class="dot tuned" r="3.6"/>', "tuned"),
    ('<circle class="dot proven" r="4"/>', "faster than its parent, proven"),
    ('<path class="whisker" d="M0,-6v12"/><circle class="dot" r="2.6"/>', "95 % interval"),
    ('<path class="failed" d="M-4,-4l8,8m0,-8l-8,8"/>', "failed"),
)


def search(args: argparse.Namespace) -> None:
    """Write the events of a real search."""
    import ridgeline

    began_s = time.monotonic()
    with args.events.open("w") as file:

        def note(event: Any) -> None:
            file.write(json.dumps({"at_s": round(time.monotonic() - began_s, 2), **event}) + "\n")
            file.flush()

        result = ridgeline.search(
            "quickstart", models=["offline"], rounds=args.rounds, bank=None, run_dir=args.run_dir, on_event=note
        )
    print(result.state, result.speedup, result.run_dir)


def draw(args: argparse.Namespace) -> None:
    """Write the picture of one moment of a recorded search."""
    from rich.console import Console

    from ridgeline.graph.cli.view.board import Board
    from ridgeline.graph.cli.view.progress import Drawing

    clock_s = 0.0
    board = Board(problem="quickstart", device="cpu", models=("offline",), clock=lambda: clock_s)
    for event in map(json.loads, args.events.read_text().splitlines()):
        if event["at_s"] > args.at:
            break
        clock_s = event["at_s"]
        board.apply(event)
    clock_s = args.at
    console = Console(file=io.StringIO(), record=True, force_terminal=True, width=COLUMNS, height=LINES)
    console.print(Drawing(board))
    svg = console.export_svg(title="ridgeline run quickstart")
    args.picture.write_text(_lighter(svg))
    print(f"{args.picture}: {args.picture.stat().st_size} bytes")


def report(args: argparse.Namespace) -> None:
    """Write the picture of a run's report."""
    from ridgeline.checkpoints.archive import Archive
    from ridgeline.checkpoints.report.charts import trajectory_chart
    from ridgeline.checkpoints.report.search_records import SearchRecords
    from ridgeline.checkpoints.report.wording import doubt
    from ridgeline.checkpoints.result import build_result
    from ridgeline.checkpoints.stored_certificate import certifies

    with Archive.open_read_only(args.run) as archive:
        result, chart = build_result(archive), trajectory_chart(SearchRecords.read(archive), None)
        is_certified = certifies(archive.certificate(), result["best"]["id"])
    best = result["best"]
    low, high = best["speedup_ci95"]
    standing = "certified" if is_certified else doubt(best["speedup"], certified=False)
    about = f"{result['problem']}: {len(result['history'])} rounds, {result['candidates']} kernels"
    parts = [
        f"<title>The report of ridgeline: {escape(about)}</title><style>{_chart_style()}</style>",
        f'<rect class="page" x="0.5" y="0.5" width="{WIDTH - 1}" height="{HEIGHT - 1}" rx="10"/>',
        f'<text class="figure{"" if is_certified else " soft"}" x="{MARGIN}" y="74">{best["speedup"]:.2f}×</text>',
        _words(0, f"as fast as eager PyTorch, {standing}; 95 % interval {low:.2f} to {high:.2f}"),
        _words(1, about),
        _words(2, best["idea"] or "a seed kernel", css=" soft"),
        chart.replace("<svg ", f'<svg x="{MARGIN}" y="{CHART_TOP}" width="900" height="400" ', 1),
        *_legend(),
    ]
    size = f'viewBox="0 0 {WIDTH} {HEIGHT}"'
    args.picture.write_text(f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{"".join(parts)}</svg>\n')
    print(f"{args.picture}: {args.picture.stat().st_size} bytes")


def _words(line: int, words: str, css: str = "") -> str:
    shown = words if len(words) <= LONGEST else f"{words[: LONGEST - 1]}…"
    return f'<text class="words{css}" x="{MARGIN + 178}" y="{44 + 21 * line}">{escape(shown)}</text>'


def _chart_style() -> str:
    """Return the rules of the report's own style by which its charts are drawn."""
    from ridgeline.checkpoints.report.page import read_template

    style = read_template("style.css")
    colours = style[: style.index("* {")]
    charts = style[style.index("svg text {") : style.index(".bars {")]
    own = """text { font-family: system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
.page { fill: var(--card); stroke: var(--rule); } svg .figure { font-size: 50px; font-weight: 700; fill: var(--accent); }
svg .words { font-size: 15px; } svg .soft { fill: var(--soft); }"""
    return f"{colours}{charts}{own}"


def _legend() -> Iterator[str]:
    left = MARGIN + 60
    for mark, words in _LEGEND:
        yield f'<g transform="translate({left} {HEIGHT - 26})">{mark}<text class="tick" x="11" y="4">{words}</text></g>'
        left += 46 + 7 * len(words)


def _lighter(svg: str) -> str:
    """Return the picture without the fonts that a page would have to load, which GitHub does not let it."""
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)
    svg = svg.replace("font-family: Fira Code, monospace", "font-family: ui-monospace, Menlo, Consolas, monospace")
    return re.sub(r"[ \t]+\n|\n\s*\n", "\n", svg)


def main() -> None:
    """Take the command's words."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    searching = commands.add_parser("search")
    searching.add_argument("events", type=Path)
    searching.add_argument("--rounds", type=int, default=2)
    searching.add_argument("--run-dir", type=Path)
    searching.set_defaults(execute=search)
    drawing = commands.add_parser("draw")
    drawing.add_argument("events", type=Path)
    drawing.add_argument("picture", type=Path)
    drawing.add_argument("--at", type=float, required=True)
    drawing.set_defaults(execute=draw)
    reporting = commands.add_parser("report")
    reporting.add_argument("run", type=Path)
    reporting.add_argument("picture", type=Path)
    reporting.set_defaults(execute=report)
    args = parser.parse_args()
    args.execute(args)


if __name__ == "__main__":
    main()
