"""What the command line says when a search begins again and when it ends."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from typing import TYPE_CHECKING, Any

from ridgeline.checkpoints.journal import Journal
from ridgeline.checkpoints.result import STATE_WORDS
from ridgeline.tools.counted import counted
from ridgeline.tools.records import Origin

if TYPE_CHECKING:
    from pathlib import Path

    from ridgeline.checkpoints.archive import Archive
    from ridgeline.graph.driver import SearchResult


HOW_TO_CALL = "docs/use-the-kernel.md"


def resume_line(archive: Archive) -> str:
    """Return one line on what a resumed search finds done and does not do again."""
    calls = Journal(archive).totals()
    written = len(archive.candidates(origin=Origin.MODEL))
    judged = len(archive.evaluations())
    rounds = archive.rounds()
    again = calls["in_flight"] + calls["failed"]
    line = (
        f"skipped, because it is stored: {counted(len(rounds), 'finished round')}, "
        f"{counted(calls['calls'] - again, 'model reply')}, {counted(written, 'written kernel')}, "
        f"{counted(judged, 'evaluation')}"
    )
    return f"{line}; asked again, because the reply never came: {counted(again, 'model call')}" if again else line


def resume_command(run_dir: Path) -> str:
    """Return the command that goes on with this run, one that works here: also where `ridgeline` is not on PATH."""
    words = ["ridgeline", "run"] if shutil.which("ridgeline") else [_python(), "-m", "ridgeline.graph.run"]
    return shlex.join([*words, "--resume", str(run_dir)])


def _python() -> str:
    near = os.path.relpath(sys.executable)
    near = near if os.sep in near else f".{os.sep}{near}"
    return min(sys.executable, near, key=len)


def closing_lines(result: SearchResult) -> list[str]:
    """Return the last lines of a run: how it ended, the winner in words and figures, where everything lies."""
    report = result.report
    lines = ["", STATE_WORDS.get(result.state, result.state)]
    if result.state == "budget" and not result.certified:
        lines.append("no kernel was certified as faster than eager PyTorch yet")
    lines += _history(report)
    lines += _winner(result, report.get("best"))
    lines.append(f"result:  {result.run_dir / 'result.json'}")
    lines.append(f"report:  {result.run_dir / 'report.html'}")
    if result.state == "stopped":
        lines.append(f"resume:  {resume_command(result.run_dir)}")
    if result.state == "budget":
        lines.append(f"go on:   {resume_command(result.run_dir)} with a larger --max-…")
    return lines


def _history(report: dict[str, Any]) -> list[str]:
    lines = []
    for entry in report.get("history", []):
        speedup = entry.get("best_speedup")
        best = f"best {speedup:.2f}x eager ({entry.get('best_id')})" if speedup else "no correct kernel yet"
        lines.append(f"  round {entry['round']}: {best}")
    return lines


def _winner(result: SearchResult, best: dict[str, Any] | None) -> list[str]:
    if not best:
        return ["winner:  none"]
    lines = [f"winner:  {best['id']}: {best['idea'] or 'a seed kernel'}"]
    lines.append(f"         {_ratio(best, 'speedup')} eager PyTorch{_of_best(best)}{_of_seed(best)}")
    lines.append(f"         {best['median_ms']:.4f} ms, {best['precision_class']}{_labels(best)}")
    lines.append(f"         {'certified' if result.certified else 'not certified'}; source {result.best_source_path}")
    if (proof := result.run_dir / "certificate.md").exists():
        lines.append(f"         what that rests on: {proof}")
    lines.append(f"         how to call it: {HOW_TO_CALL} in Ridgeline's repository")
    return lines


def _ratio(best: dict[str, Any], name: str) -> str:
    interval = best.get(f"{name}_ci95")
    span = f" (95 % {interval[0]:.2f} to {interval[1]:.2f})" if interval else ""
    return f"{best[name]:.2f}x{span}" if best.get(name) is not None else "not timed against"


def _of_best(best: dict[str, Any]) -> str:
    return f", {best['speedup_vs_best']:.2f}x its best configuration" if best.get("speedup_vs_best") else ""


def _of_seed(best: dict[str, Any]) -> str:
    return f", {_ratio(best, 'speedup_vs_seed')} the best seed kernel" if best.get("speedup_vs_seed") else ""


def _labels(best: dict[str, Any]) -> str:
    return f" [{', '.join(best['labels'])}]" if best.get("labels") else ""
