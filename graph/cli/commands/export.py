"""`ridgeline export`: a run's archive as one file that travels, its candidates as training data, or its recording."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ridgeline.checkpoints.export import export_archive, export_jsonl, jsonl_lines
from ridgeline.checkpoints.recording.file import write_recording
from ridgeline.checkpoints.runs.folders import find_run
from ridgeline.graph.session.options import RUNS
from ridgeline.tools.errors import RunError
from ridgeline.tools.wording import counted

LINES_SUFFIXES = (".jsonl", ".ndjson")
"""Of --out: it asks for lines as --jsonl does."""


def execute(args: argparse.Namespace) -> int:
    """Write the file and say where it lies."""
    run = find_run(RUNS, args.run)
    if args.replay is not None:
        return _export_replay(run, args)
    if not args.jsonl and Path(args.out or "").suffix not in LINES_SUFFIXES:
        out = Path(args.out) if args.out else Path(f"{run.resolve().name}.sqlite")
        sys.stdout.write(f"wrote {export_archive(run, out, is_users=bool(args.out))}\n")
        return 0
    if args.out is None:
        sys.stdout.writelines(f"{line}\n" for line in jsonl_lines(run))
        return 0
    count = export_jsonl(run, Path(args.out))
    sys.stdout.write(f"wrote {counted(count, 'candidate')} to {args.out}\n")
    return 0


def _export_replay(run: Path, args: argparse.Namespace) -> int:
    if args.jsonl or args.out:
        raise RunError("--replay: names its own file; leave --jsonl and --out out")
    written = write_recording(run, Path(args.replay))
    calls, measured = counted(len(written.calls), "answer"), counted(len(written.measurements), "measurement")
    sys.stdout.write(f"wrote {calls} and {measured} to {args.replay}: ridgeline run --replay {args.replay}\n")
    return 0
