"""`ridgeline new`: a problem made of the user's own module."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from ridgeline.graph.cli.outlined import (
    OutlinedProblem,
    lacks_a_gpu,
    outline_problem,
    problem_lines,
    tells_of_wait,
    why_broken,
)
from ridgeline.problems.new import new_problem
from ridgeline.problems.spec import load_problem
from ridgeline.tools.errors import BadReferenceError
from ridgeline.tools.judge.outline_process import OutlineProcess
from ridgeline.tools.records.vocabulary import PrecisionClass


def execute(args: argparse.Namespace) -> int:
    """Write DIR/NAME/problem.yaml; say what a kernel of it gets and gives, whether it needs a key, and what to do with it.

    Raises:
        ProblemError: a mistake, also one that only running the reference shows; nothing is written then.
    """
    lacks = ""
    with OutlineProcess(with_graphs=True, on_wait=tells_of_wait(args.reference)) as outlines:

        def check(source: str, tolerance: str) -> None:
            nonlocal lacks
            found = outlines.outline(source, PrecisionClass(tolerance), with_run=True)
            if said := why_broken(found):
                raise BadReferenceError(f"{args.reference}: {said}")
            lacks = lacks_a_gpu(found)

        path = new_problem(args.name, Path(args.reference), Path(args.out), check=check)
        spec = load_problem(path)
        outlined = [outline_problem(outlines, spec, kind) for kind in spec.targets]
    told = [*problem_lines(outlined), *([lacks] if lacks else []), *_ways_on(path, outlined, is_of_gpu=bool(lacks))]
    sys.stdout.write("\n".join([f"wrote {path}", *told, ""]))
    return 0


def _ways_on(path: Path, outlined: Sequence[OutlinedProblem], *, is_of_gpu: bool) -> list[str]:
    """Return what tells more of the problem, and what searches it."""
    is_told = any(each.header for each in outlined)
    header = shlex.join(["ridgeline", "problems", str(path)]) if is_told else "a run writes it into its folder"
    model = ["--model", "openai:o3"] if all(each.refusal for each in outlined) else []
    device = ["--device", "cuda"] if is_of_gpu else []
    return [
        f"its problem.h: {header}",
        f"search it with: {shlex.join(['ridgeline', 'run', str(path), *model, *device])}",
    ]
