"""`ridgeline run`: begin a search or go on with one."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from ridgeline.checkpoints.archive import FILE_NAME
from ridgeline.checkpoints.runs.folders import find_run
from ridgeline.graph.cli import EXIT_PARKED
from ridgeline.graph.cli.arguments import NEWEST
from ridgeline.graph.cli.console import make_console
from ridgeline.graph.cli.estimate import search_estimate
from ridgeline.graph.cli.foreground import run_shown
from ridgeline.graph.cli.request import PROBLEM_SUFFIXES, ignored_lines, reference_warning, request_of_words
from ridgeline.graph.cli.summary import resume_command
from ridgeline.graph.session.options import RUNS, SearchRequest
from ridgeline.problems.spec import FILE_NAME as PROBLEM
from ridgeline.problems.spec import shipped_problems
from ridgeline.tools.errors import ProblemError
from ridgeline.tools.records.vocabulary import RunState


def execute(args: argparse.Namespace) -> int:
    """Run the search and return 0; 75 when it is parked or was told to stop; 129, 130 or 143 after a signal."""
    search = _request(args).resolve(sends=not args.estimate)
    if args.estimate:
        sys.stdout.writelines(f"{line}\n" for line in search_estimate(search))
        return 0
    console = make_console(stderr=args.json)
    warnings = [*ignored_lines(vars(args), search), *reference_warning(search)]
    result, stop = run_shown(console, search, warnings=warnings, is_plain=args.plain)
    if result is not None and args.json:
        sys.stdout.write(json.dumps(result.report) + "\n")
    if result is not None and result.state not in (RunState.STOPPED, RunState.WAITING):
        return 0
    return stop.exit_code() or EXIT_PARKED


def _request(args: argparse.Namespace) -> SearchRequest:
    """Return the request; ProblemError, with what to type, when the words name neither a problem nor a run."""
    problem, is_resumed = args.problem, args.resume is not None
    word = None if args.resume is NEWEST else args.resume
    if word and problem is None and word.endswith(PROBLEM_SUFFIXES):
        problem, word = word, None  # argparse cannot tell an option's optional value from what follows it
    run_dir = Path(args.run_dir) if args.run_dir else None
    if is_resumed and (named := word or run_dir):
        run_dir = find_run(run_dir.parent if run_dir else RUNS, named)
    elif args.replay is not None:
        pass  # its recording holds the problem
    elif problem is None and is_resumed:
        raise ProblemError("run: --resume needs to know of what: ridgeline run problem.yaml --resume, or --resume RUN")
    elif problem is None:
        raise ProblemError(
            "run: no problem was named; try ridgeline run quickstart, or ridgeline run path/to/problem.yaml "
            "(ridgeline problems lists what ships, ridgeline new makes one of your own module)"
        )
    if problem is not None:
        _refuse_run(problem)
    return request_of_words(vars(args), problem=problem, run_dir=run_dir, resume=is_resumed)


def _refuse_run(problem: str) -> None:
    """Refuse the folder or the name of a run where a problem is to be named."""
    if problem in shipped_problems() or (Path(problem) / PROBLEM).is_file():
        return
    named = next((run for run in (Path(problem), RUNS / problem) if (run / FILE_NAME).is_file()), None)
    if named is not None and not (named / PROBLEM).is_file():
        raise ProblemError(f"{problem}: a search's run, no problem; to go on with it: {resume_command(named)}")
