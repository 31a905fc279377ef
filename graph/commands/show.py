"""`ridgeline show`: what a run found."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.result import show_run
from ridgeline.checkpoints.runs import find_run
from ridgeline.graph.embed import RUNS
from ridgeline.tools.counted import counted


def execute(args: argparse.Namespace) -> int:
    """Print rounds, ideas, the lineage of the best and the cost; one JSON object with `--json`."""
    with Archive.open_read_only(find_run(RUNS, args.run)) as archive:
        shown = show_run(archive)
    if args.json:
        sys.stdout.write(json.dumps(shown, indent=2) + "\n")
        return 0
    console = Console(highlight=False)
    console.print(f"{shown['problem']} ({shown['run']}): {shown['state']}", markup=False)
    _print_baselines(console, shown)
    _print_rounds(console, shown["rounds"])
    _print_ideas(console, shown["ideas"])
    _print_lineage(console, shown["lineage"])
    _print_certificate(console, shown)
    _print_cost(console, shown["cost"])
    return 0


def _print_baselines(console: Console, shown: dict[str, Any]) -> None:
    times = [f"{b['name']} {b['median_ms']:.3f} ms" for b in shown["baselines"] if b["median_ms"] is not None]
    floor = f"; floor {shown['floor_ms']:.3f} ms" if shown["floor_ms"] is not None else ""
    console.print(f"PyTorch: {', '.join(times) or 'not measured'}{floor}", markup=False)


def _print_rounds(console: Console, rounds: list[dict[str, Any]]) -> None:
    for entry in rounds:
        speedup = entry.get("best_speedup")
        best = f"best {speedup:.2f}x eager ({entry.get('best_id')})" if speedup else "no correct kernel yet"
        console.print(f"  round {entry['round']}: {best}", markup=False)


def _print_ideas(console: Console, ideas: list[dict[str, Any]]) -> None:
    table = Table("idea", "title", "category", "model", "best", box=None, pad_edge=False)
    for idea in ideas:
        outcome = f"{idea['best_speedup']:.2f}x" if idea["best_speedup"] else idea["failure"] or "not judged"
        table.add_row(idea["id"], Text(idea["title"]), idea["category"], idea["model"], Text(outcome[:60]))
    console.print(table)


def _print_lineage(console: Console, lineage: list[dict[str, Any]]) -> None:
    if not lineage:
        return
    console.print("lineage of the best, newest first:")
    for step in lineage:
        speedup = f"{step['speedup']:.2f}x" if step.get("speedup") else "-"
        console.print(f"  {step['id']:<16} {speedup:>7}  {step.get('idea') or step['origin']}", markup=False)


def _print_certificate(console: Console, shown: dict[str, Any]) -> None:
    certificate, best = shown["certificate"], shown["best"]
    if not certificate or not best:
        console.print("not certified")
        return
    verdict = "certified" if certificate["passed"] else f"not certified: {certificate['reason']}"
    seed = f", {best['speedup_vs_seed']:.2f}x the best seed kernel" if best["speedup_vs_seed"] else ""
    console.print(f"{verdict}: {best['id']}, {best['speedup']:.2f}x eager{seed}", markup=False, soft_wrap=True)


def _print_cost(console: Console, cost: dict[str, Any]) -> None:
    calls = cost["model_calls"]
    on_gpu = f" and {cost['gpu_seconds']:.0f} s on the GPU" if cost["gpu_seconds"] else ""
    console.print(
        f"cost: {counted(calls['calls'], 'model call')}, {counted(cost['tokens'], 'token')}, ${cost['usd']:.2f}; "
        f"judging took {cost['cpu_seconds']:.0f} s on the CPU{on_gpu}; "
        f"{cost['wall_s'] or 0:.0f} s in all",
        markup=False,
        soft_wrap=True,
    )
