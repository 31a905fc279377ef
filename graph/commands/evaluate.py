"""`ridgeline evaluate`: judge kernel files without a search."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from rich.console import Console

from ridgeline.graph.embed import evaluate


def execute(args: argparse.Namespace) -> int:
    """Print one verdict a file, as one JSON line each with `--json`; 0 whatever the verdicts."""
    lines = evaluate(
        args.problem, [Path(f) for f in args.files], device=args.device, allow_unsafe=args.unsafe_no_sandbox
    )
    console = Console(highlight=False)
    for line in lines:
        if args.json:
            sys.stdout.write(json.dumps(line) + "\n")
        else:
            console.print(describe(line), markup=False, soft_wrap=True)
    return 0


def describe(line: dict[str, Any]) -> str:
    """Return a verdict in words."""
    if line["status"] != "ok":
        return f"{line['file']}: {line['status']} ({line['reason_code']}): {line['reason']}"
    low, high = line["speedup_ci95"]
    labels = f" [{', '.join(line['labels'])}]" if line["labels"] else ""
    return (
        f"{line['file']}: ok, {line['speedup']:.2f}x eager (95 % {low:.2f} to {high:.2f}), {line['median_ms']:.4f} ms "
        f"against {line['reference_ms']:.4f} ms; {line['precision_class']}, error {line['rel_error']:.1e}{labels}"
    )
