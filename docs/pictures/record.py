"""Record a search for the README's picture of the live view, and draw it.

PYTHONPATH=src .venv/bin/python docs/pictures/record.py search EVENTS.jsonl [--rounds N] [--run-dir DIR]
PYTHONPATH=src .venv/bin/python docs/pictures/record.py draw EVENTS.jsonl docs/pictures/live.svg --at SECONDS

`search` searches the quickstart problem without a key, and writes each event with the seconds since the search began.
`draw` gives the live view the events that had come by then, and writes what a terminal of 112 columns shows.
"""

from __future__ import annotations

import argparse
import io
import json
import re
import time
from pathlib import Path
from typing import Any

COLUMNS, LINES = 112, 24


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
    args = parser.parse_args()
    args.execute(args)


if __name__ == "__main__":
    main()
