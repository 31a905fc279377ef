"""`ridgeline ship`: a run's winner as a folder that can be installed without Ridgeline."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
from pathlib import Path

from ridgeline.checkpoints.runs.folders import find_run
from ridgeline.graph.session.options import RUNS
from ridgeline.graph.shipping.ship import Shipped, ShipRequest, ship
from ridgeline.tools.records.printable import printable


def execute(args: argparse.Namespace) -> int:
    """Write the folder and say how it is used."""
    request = ShipRequest(
        run=find_run(RUNS, args.run),
        out=Path(args.out),
        name=args.name,
        layout=args.layout,
        gradients=args.gradients,
        takes_uncertified=args.uncertified,
    )
    shipped = ship(request, on_warning=_warn)
    if args.json:
        said = {
            "out": str(shipped.out),
            "name": shipped.name,
            "kernel": shipped.winner.best.candidate.id,
            "certified": shipped.winner.is_certified,
        }
        sys.stdout.write(f"{json.dumps(said)}\n")
    else:
        sys.stdout.writelines(f"{printable(line)}\n" for line in _lines(shipped, args.layout))
    return 0


def _warn(words: str) -> None:
    sys.stderr.write(f"warning: {printable(words)}\n")


def _lines(shipped: Shipped, layout: str) -> list[str]:
    kernel = shipped.winner.best.candidate.id
    certified = "certified" if shipped.winner.is_certified else "NOT certified, searched"
    lines = [f"wrote {shipped.out}: {kernel}, {certified} on {shipped.winner.device.name}"]
    if layout == "package":
        # pip takes `out` for a name
        place = str(shipped.out) if shipped.out.is_absolute() else os.path.join(".", shipped.out)
        lines.append(f"install: pip install {shlex.quote(place)}")
        lines.append(f"check:   python -m {shipped.name}")
    else:
        lines.append(f"build:   kernel-builder build-and-copy, in {shipped.out}")
    return [
        *lines,
        "Installing it means to trust the kernel: outside of Ridgeline no sandbox is around it. Read it first.",
    ]
