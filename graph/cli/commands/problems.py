"""`ridgeline problems`: the problems that ship with Ridgeline, or what one problem asks of a kernel."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from rich.table import Table

from ridgeline.graph.cli.console import make_console
from ridgeline.graph.cli.keyless import keyless_targets
from ridgeline.graph.cli.outlined import outline_problem, problem_lines, refuse_too_large, tells_of_wait
from ridgeline.graph.models.model_names import check_name
from ridgeline.graph.session.problem import find_problem
from ridgeline.problems.spec import ProblemSpec, load_problem, shipped_problems
from ridgeline.tools.errors import ModelError
from ridgeline.tools.judge.outline import outline_limit_s
from ridgeline.tools.judge.outline_process import OutlineProcess


def execute(args: argparse.Namespace) -> int:
    """Print a table, or one JSON array with `--json`; of a problem that is named its signature and problem.h."""
    if args.problem is not None:
        return _tell_one(args.problem, is_json=args.json)
    known = keyless_targets()
    rows = [_row(name, path, known.get(name, [])) for name, path in sorted(shipped_problems().items())]
    if args.json:
        sys.stdout.write(json.dumps(rows, indent=2) + "\n")
        return 0
    table = Table(box=None, pad_edge=False)
    for heading in ("problem", "interface", "targets", "tolerance", "keyless"):
        table.add_column(heading, no_wrap=True)
    table.add_column("seed kernels", overflow="fold")
    for row in rows:
        targets, seeds = " ".join(row["targets"]), " ".join(row["seed_kernels"])
        table.add_row(row["name"], row["interface"], targets, row["tolerance"], _keyless_words(row), seeds)
    console = make_console()
    console.print(table)
    console.print(
        "\nridgeline run NAME searches one of these; ridgeline new makes one of your own. "
        "ridgeline problems PROBLEM tells what a kernel of it gets and gives.",
        soft_wrap=True,
    )
    console.print(
        "keyless: whether the offline model composes kernels for it; else a search needs a model with a key (--model "
        "openai:o3), and without one judges the seed kernels alone.",
        soft_wrap=True,
    )
    return 0


def _tell_one(named: str, *, is_json: bool) -> int:
    """Print what a kernel gets and gives, whether a search needs a key, each device's header, and the first two again."""
    spec = find_problem(named)
    _check_models(spec)
    limit_s, tell = outline_limit_s(spec.call_timeout_s), tells_of_wait(spec.reference_given)
    with OutlineProcess(limit_s=limit_s, with_graphs=True, on_wait=tell) as outlines:
        outlined = [outline_problem(outlines, spec, kind, with_run=True) for kind in spec.targets]
    refuse_too_large(outlined, spec)
    if is_json:
        sys.stdout.write(json.dumps([each.to_json() for each in outlined], indent=2) + "\n")
        return 0
    told = "\n".join([f"{spec.name}, {spec.path}", *problem_lines(outlined), ""])
    headers = [f"\nproblem.h on {each.kind.value}:\n\n{each.header}" for each in outlined if each.header]
    again = ["\n", told] if headers else []  # the headers fill more than a screen
    sys.stdout.write("".join([told, *headers, *again]))
    return 0


def _check_models(spec: ProblemSpec) -> None:
    """Refuse a name under `models:` that means no model, as a search does; keys and packages are left to it."""
    for name in spec.models:
        try:
            check_name(name)
        except ModelError as error:
            raise ModelError(f"{spec.given}: models: {error}") from None


def _keyless_words(row: dict[str, Any]) -> str:
    """Return whether a search of this problem does without a key, and where if not everywhere."""
    if row["keyless"] == row["targets"]:
        return "yes"
    return f"on {' '.join(row['keyless'])}" if row["keyless"] else "no"


def _row(name: str, path: Path, keyless: list[str]) -> dict[str, Any]:
    spec = load_problem(path)
    return {
        "name": name,
        "path": str(path),
        "interface": spec.interface,
        "targets": list(spec.targets),
        "tolerance": spec.tolerance,
        "keyless": [kind for kind in spec.targets if kind in keyless],
        "seed_kernels": [stem for kind in spec.targets for stem, _ in spec.seed_sources(kind)],
    }
