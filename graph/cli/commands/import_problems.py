"""`ridgeline import`: problems made from the files of another suite, and whether each runs on a device."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from ridgeline.graph.cli.console import make_console
from ridgeline.problems.kernelbench import Imported, import_file, kernelbench_files
from ridgeline.problems.spec import load_problem
from ridgeline.tools.judge.memory_check import in_gb
from ridgeline.tools.wording import counted

Row = dict[str, Any]


def execute(args: argparse.Namespace) -> int:
    """Write a problem folder for each file and print a table, or one JSON array with `--json`."""
    files = kernelbench_files(Path(args.path), tuple(args.level or ()))
    imported = [import_file(file, Path(args.out), args.tolerance) for file in files]
    rows = list(_checked(imported, args.device)) if args.check else [_row(each) for each in imported]
    if args.json:
        sys.stdout.write(json.dumps(rows, indent=2) + "\n")
        return 0
    _print(rows, Path(args.out), is_checked=args.check)
    return 0


def _row(imported: Imported) -> Row:
    """Return a file's row without a check: `runnable` is null unless the import found a reason against it."""
    return {
        "id": imported.file.id,
        "level": imported.file.level,
        "file": str(imported.file.path),
        "problem": str(imported.problem) if imported.problem else None,
        "runnable": False if imported.code else None,
        "code": imported.code,
        "reason": imported.reason,
        "judge_bytes": None,
    }


def _checked(imported: list[Imported], device_name: str) -> Iterator[Row]:
    """Yield the rows, each reference outlined for the device; a process of its own imports torch."""
    from ridgeline.tools.judge.outline import OPEN
    from ridgeline.tools.judge.outline_process import OutlineProcess
    from ridgeline.tools.machine.devices import detect_device
    from ridgeline.tools.records.vocabulary import PrecisionClass

    device = detect_device(device_name)
    with OutlineProcess() as outlines:
        for each in imported:
            row = _row(each)
            if each.problem is None:
                yield row
                continue
            spec = load_problem(each.problem)
            found = outlines.outline(spec.reference_source(device.kind), PrecisionClass(spec.tolerance)).on(device)
            yield row | {
                "runnable": None if found.code in OPEN else not found.code,
                "code": found.code,
                "reason": found.reason,
                "judge_bytes": found.judge_bytes(device) if found.signature else None,
            }


def _print(rows: list[Row], out: Path, *, is_checked: bool) -> None:
    console = make_console()
    table = Table(box=None, pad_edge=False)
    for name in ("file", "problem", "judging, about", "runs", "reason"):
        table.add_column(name, overflow="fold")
    for row in rows:
        name = Path(row["problem"]).parent.name if row["problem"] else Path(row["file"]).name
        runs = {True: "yes", False: "no", None: "not known"}[row["runnable"]]
        judging = "" if row["judge_bytes"] is None else in_gb(row["judge_bytes"])
        table.add_row(row["id"], name, judging, runs, Text(row["reason"]))
    console.print(table)
    for level in sorted({row["level"] for row in rows}):
        console.print(_summary(level, [row for row in rows if row["level"] == level]), markup=False, soft_wrap=True)
    console.print(f"\nthe problems lie in {out}", markup=False, soft_wrap=True)
    if not is_checked:
        console.print("--check says which of them run, without running them", markup=False, soft_wrap=True)


def _summary(level: int, rows: list[Row]) -> str:
    parsed = sum(row["problem"] is not None for row in rows)
    runnable = sum(row["runnable"] is True for row in rows)
    codes = Counter(row["code"] for row in rows if row["code"])
    reasons = "".join(f", {number} {code}" for code, number in codes.most_common())
    return f"level {level}: {counted(len(rows), 'file')}, {parsed} parsed, {runnable} known to run{reasons}"
