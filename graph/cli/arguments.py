"""Every command, its options and their help; imports nothing heavy, so that `--help` is instant."""

from __future__ import annotations

import argparse

from ridgeline import __version__
from ridgeline.graph.cli.archive_arguments import add_archives
from ridgeline.graph.cli.live_arguments import add_mailbox, add_steering
from ridgeline.graph.cli.parser import Commands, Parser, describe_commands
from ridgeline.graph.cli.serving_arguments import add_mcp
from ridgeline.graph.cli.values import (
    amount,
    attempts,
    integer,
    natural,
    parts,
    port,
    positive,
    setting,
    setting_or_none,
    timeout,
    tokens_or_run,
    word,
)

DESCRIPTION = "Search for a faster native kernel that does the work of a PyTorch module, and prove it."

EXIT_CODES = """exit codes:
  0  finished, also without a gain or at a budget; `evaluate`: whatever the verdict
  1  internal error, please report. Without these words the machine is too busy, or failed on a file of `evaluate`
  2  invalid input, the message says how to fix it
  69  ended in the middle of a search, by its provider or its disk; once that is mended, `--resume` goes on
  75  parked (`--park`), or stopped by `ridgeline stop`; `--resume` goes on
  129, 130, 143  stopped by SIGHUP, SIGINT or SIGTERM; `--resume` goes on
  141  the reader of the output went away (`| head`); a search stops there, and `--resume` goes on"""

EVALUATE_DESCRIPTION = """Judge kernel files: compile, verify, time. By the clock, one file is waited for at most: 180 s
while it is compiled (300 s where it includes torch), 120 s in verification, 120 s in timing. A larger call_timeout_s in
problem.yaml raises the last two: both together are 8 times as long, and 240 s at least. Verification has more where it
asks for more: 660 s in all for a reference that takes 66 trials instead of 12, and four times as long for a kernel near a
limit. The judge's own work comes on top: PyTorch's calls, and the comparison of outputs."""

NEWEST = object()
"""Value of `--resume` without a word: the newest unfinished one."""


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of `ridgeline`; `args.command` names the chosen command."""
    parser = Parser(
        prog="ridgeline",
        description=DESCRIPTION,
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"ridgeline {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    _add_run(commands)
    _add_suite(commands)
    _add_evaluate(commands)
    _add_reading(commands)
    add_mailbox(commands)
    add_steering(commands)
    add_mcp(commands)
    add_archives(commands)
    _add_housekeeping(commands)
    describe_commands(commands)
    return parser


def _search_command(commands: Commands[Parser], name: str, summary: str) -> Parser:
    """Return the parser of a command that searches, whose help ends with the exit codes."""
    formatter = argparse.RawDescriptionHelpFormatter
    return commands.add_parser(name, help=summary, epilog=EXIT_CODES, formatter_class=formatter)


def _add_run(commands: Commands[Parser]) -> None:
    run = _search_command(commands, "run", "search for a faster kernel, or go on with a search")
    run.add_argument(
        "problem", type=word, nargs="?", help="a problem.yaml or its folder, or the name of a shipped problem"
    )
    _add_search_shape(run)
    _add_placement(run)
    _add_replay(run)
    _add_budget(run)
    run.add_argument(
        "--estimate", action="store_true", help="print the calls, tokens and dollars to expect, and search nothing"
    )
    _add_showing(run, "result.json")


def _add_showing(run: argparse.ArgumentParser, file_name: str) -> None:
    run.add_argument("--rng-seed", type=integer, metavar="N", help="random seed of the search's choices (default 0)")
    run.add_argument("--json", action="store_true", help=f"print {file_name} to standard output; progress to stderr")
    run.add_argument("--plain", action="store_true", help="plain lines instead of the live view")
    _add_unsafe(run)


def _add_suite(commands: Commands[Parser]) -> None:
    suite = _search_command(commands, "suite", "search several problems, one after the other")
    suite.add_argument(
        "problems", type=word, nargs="*", metavar="PROBLEM", help="problem.yaml, shipped name, or folder of problems"
    )
    _add_search_shape(suite)
    place = suite.add_argument_group("where")
    _add_device_and_bank(place)
    place.add_argument("--out", type=word, metavar="DIR", help="the suite's folder (default runs/suite-TIME-PROCESS)")
    place.add_argument(
        "--resume",
        type=word,
        nargs="?",
        const=NEWEST,
        metavar="FOLDER",
        help="go on with a suite; without FOLDER the newest unfinished one",
    )
    _add_budget(suite, "budget of each search: no further kernel once one is spent", is_suite=True)
    _add_showing(suite, "suite.json")


def _add_search_shape(run: argparse.ArgumentParser) -> None:
    shape = run.add_argument_group("the search (defaults come from the problem file)")
    shape.add_argument("--rounds", type=setting, metavar="N", help="rounds; with --resume, extends a finished search")
    shape.add_argument("--ideas", type=setting, metavar="N", help="ideas a round")
    shape.add_argument("--implementations", type=setting, metavar="N", help="implementations of each idea")
    shape.add_argument("--repairs", type=setting_or_none, metavar="N", help="repairs of a failed implementation")
    shape.add_argument(
        "--tune-trials", type=setting_or_none, metavar="N", help="tuning measurements a round, 0 for none"
    )
    shape.add_argument(
        "--strategy",
        choices=("branch", "revision"),
        help="branch (default): several ideas a round, each from the best kernels so far; revision: one kernel, "
        "improved by one idea at a time, without a memory of ideas",
    )
    shape.add_argument(
        "--without",
        type=parts,
        metavar="PART,…",
        help="leave parts out: memory (what became of earlier ideas), diagnosis (profiles that say what limits a "
        "kernel), recombination (ideas that join two kernels), novelty (refusing an idea that was tried), tuning "
        "(trying other values of tunables), blocks (kernels of other operations as examples)",
    )
    shape.add_argument(
        "--model",
        action="append",
        type=word,
        metavar="PROVIDER:NAME",
        help="openai:o3, google_genai:gemini-2.5-pro, offline, mailbox, … (repeatable: the models share the search)",
    )
    shape.add_argument(
        "--park", action="store_true", help="exit when only outside answers are missing; continue with --resume"
    )
    shape.add_argument(
        "--model-timeout-s", type=timeout, metavar="S", help="longest wait for one reply of a model (default 600)"
    )
    shape.add_argument(
        "--model-attempts",
        type=attempts,
        metavar="N",
        help="times that a request is sent while its provider fails (default 5)",
    )


def _add_placement(run: argparse.ArgumentParser) -> None:
    place = run.add_argument_group("where")
    _add_device_and_bank(place)
    place.add_argument(
        "--run-dir", type=word, metavar="DIR", help="the run's folder (default runs/PROBLEM-TIME-PROCESS)"
    )
    place.add_argument(
        "--resume",
        type=word,
        nargs="?",
        const=NEWEST,
        metavar="ID",
        help="go on with a run: its folder or its folder's name; without ID this problem's newest unfinished run",
    )


def _add_replay(run: argparse.ArgumentParser) -> None:
    replay = run.add_argument_group("replay: answers from a recorded run, no model is asked")
    replay.add_argument("--replay", type=word, metavar="RUN", help="a run, or a file of ridgeline export --replay")
    replay.add_argument(
        "--replay-timings", action="store_true", help="take every measurement from it too: nothing is built or run"
    )
    replay.add_argument(
        "--replay-else", type=word, metavar="MODEL", help="ask this model what was not recorded (else it is left out)"
    )
    replay.add_argument(
        "--replay-strict", action="store_true", help="end where an answer was not recorded, so that nothing is left out"
    )


def _add_device_and_bank(place: argparse._ArgumentGroup) -> None:
    place.add_argument("--device", type=word, help="cpu, cuda or cuda:N (default cpu)")
    place.add_argument(
        "--bank",
        type=word,
        metavar="PATH|none",
        help="the seed bank: a file of the fastest kernels of earlier searches, which later ones begin with beside the "
        "seeds (default: your own; none: no bank is read or written)",
    )


def _add_budget(
    run: argparse.ArgumentParser,
    title: str = "budget: no further kernel once one is spent; timing PyTorch and the certificate come on top",
    *,
    is_suite: bool = False,
) -> None:
    budget = run.add_argument_group(title)
    budget.add_argument("--max-usd", type=amount, metavar="USD", help="US dollars of model calls")
    budget.add_argument(
        "--max-tokens",
        type=positive if is_suite else tokens_or_run,
        metavar="N" if is_suite else "N|RUN",
        help="stop after N input + output tokens" + ("" if is_suite else "; RUN: as many as that run used"),
    )
    budget.add_argument(
        "--max-wall-s", type=amount, metavar="S", help="seconds for finding kernels, from the first ideas on"
    )
    budget.add_argument("--max-gpu-s", type=amount, metavar="S", help="seconds of GPU time")


def _add_evaluate(commands: Commands[Parser]) -> None:
    evaluate = commands.add_parser(
        "evaluate", help="judge kernel files: compile, verify, time", description=EVALUATE_DESCRIPTION
    )
    evaluate.add_argument("problem", type=word, help="a problem.yaml, or the name of a shipped problem")
    evaluate.add_argument("files", type=word, nargs="+", metavar="FILE", help="kernel sources")
    evaluate.add_argument("--device", type=word, default="cpu", help="cpu, cuda or cuda:N (default cpu)")
    evaluate.add_argument("--json", action="store_true", help="one JSON line a file")
    _add_unsafe(evaluate)


def _add_reading(commands: Commands[Parser]) -> None:
    show = commands.add_parser("show", help="what a run found: rounds, ideas, lineage of the best, cost")
    show.add_argument(
        "run",
        type=word,
        nargs="?",
        help="a run's folder, its name or the name's beginning (of several the newest); without it a list of the runs",
    )
    show.add_argument("--json", action="store_true", help="one JSON object; without a run, a JSON array of the runs")
    show.add_argument(
        "--profile", type=word, metavar="ID", help="what limits one of its kernels, and the time by stage"
    )
    show.add_argument("--counters", action="store_true", help="with --profile: the raw counters as well")
    show.add_argument(
        "--web", action="store_true", help="serve its page on this machine, also while it runs, until Ctrl-C"
    )
    show.add_argument("--port", type=port, metavar="N", help="with --web: the port (default: a free one)")
    problems = commands.add_parser(
        "problems", help="list the problems that ship with Ridgeline, or tell what a kernel of one gets and gives"
    )
    problems.add_argument("problem", type=word, nargs="?", metavar="PROBLEM", help="problem.yaml, or shipped name")
    problems.add_argument("--json", action="store_true", help="one JSON array instead of the table")
    new = commands.add_parser("new", help="make a problem from your own PyTorch module")
    new.add_argument("name", type=word, help="the new problem's name: lower-case letters, digits, - and _")
    new.add_argument(
        "--from", type=word, dest="reference", required=True, metavar="reference.py", help="Model, get_inputs, …"
    )
    new.add_argument("--out", type=word, default=".", metavar="DIR", help="writes DIR/NAME/problem.yaml (default .)")
    _add_import(commands)


def _add_import(commands: Commands[Parser]) -> None:
    command = commands.add_parser("import", help="make problems from another suite's files")
    command.add_argument("suite", choices=("kernelbench",), help="the suite whose format the files have")
    command.add_argument("path", type=word, help="a copy of its repository, a level's folder or one file")
    command.add_argument("--level", action="append", type=positive, metavar="N", help="only this level (repeatable)")
    command.add_argument(
        "--out",
        type=word,
        default="kernelbench-problems",
        metavar="DIR",
        help="default kernelbench-problems: DIR/levelN/NAME",
    )
    command.add_argument(
        "--tolerance",
        choices=("fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "crfm"),
        default="fp32",
        help="default fp32",
    )
    command.add_argument(
        "--check", action="store_true", help="say whether each problem runs on the device, and if not, why"
    )
    command.add_argument("--device", type=word, default="cpu", help="the device that --check looks at (default cpu)")
    command.add_argument("--json", action="store_true", help="one JSON array instead of the table")


def _add_housekeeping(commands: Commands[Parser]) -> None:
    clean = commands.add_parser("clean", help="empty the build cache, remove old runs")
    clean.add_argument("--runs", type=word, metavar="DIR", default="runs", help="the folder of runs (default runs)")
    clean.add_argument("--older-than-days", type=amount, metavar="D", help="remove runs older than this")
    clean.add_argument("--keep", type=natural, metavar="N", help="keep the newest N runs of each problem")
    clean.add_argument("--cache", action="store_true", help="empty the build cache too")
    clean.add_argument("--dry-run", action="store_true", help="only say what would be removed")
    doctor = commands.add_parser("doctor", help="what works on this machine, and what to install")
    doctor.add_argument("--json", action="store_true", help="one JSON object with every finding")

    completion = commands.add_parser(
        "completion", help='print a script that completes these words: eval "$(ridgeline completion bash)"'
    )
    completion.add_argument("shell", choices=("bash", "zsh"), help="the shell that is to complete them")


def _add_unsafe(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--unsafe-no-sandbox",
        action="store_true",
        help="run candidates without isolation where no sandbox tier works; recorded in every result",
    )
