"""Every command, its options and their help; imports nothing heavy, so that `--help` is instant."""

from __future__ import annotations

import argparse
import contextlib
import difflib
from typing import Any, NoReturn

from ridgeline import __version__

DESCRIPTION = "Search for a faster native kernel that does the work of a PyTorch module, and prove it."

EXIT_CODES = """exit codes:
  0  finished, also without a gain or at a budget; `evaluate`: whatever the verdict
  1  internal error, please report
  2  invalid input, the message says how to fix it
  129, 130, 143  stopped by SIGHUP, SIGINT or SIGTERM; `--resume` goes on
  141  the reader of the output went away (`| head`); a search stops there, and `--resume` goes on"""

EVALUATE_DESCRIPTION = """Judge kernel files: compile, verify, time. By the clock, one file is waited for at most: 180 s
while it is compiled (300 s where it includes torch), 120 s in verification, 120 s in timing. A larger call_timeout_s in
problem.yaml raises the last two: both together are 8 times as long, and 240 s at least. The judge's own work comes on
top: PyTorch's calls, and the comparison of outputs."""

MOST = 1_000_000
"""Largest number of a search's setting, as in a problem file."""

NEWEST = object()
"""Value of `--resume` without a word: the newest unfinished one."""


class _Parser(argparse.ArgumentParser):
    """Takes whole options alone and reports invalid ones in one line, as commands report every other invalid input."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **(options | {"allow_abbrev": False}))

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Return the parsed words; an unknown one ends the command here, where the chosen command's options are known."""
        known, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"{unknown[0]}: no such option or word here{self._near(unknown[0])}")
        return known, []

    def _near(self, word: str) -> str:
        name = word.partition("=")[0]
        close = difflib.get_close_matches(name, self._option_string_actions, n=1) if name.startswith("-") else []
        return f"; did you mean {close[0]}?" if close else ""

    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> object:
        """Return an option's value; of `--option=--` argparse makes an empty list."""
        if action.option_strings and arg_strings == ["--"]:
            raise argparse.ArgumentError(action, "is empty; give it a value or leave it out")
        return super()._get_values(action, arg_strings)

    def error(self, message: str) -> NoReturn:
        """Exit with status 2."""
        message = message.replace("the following arguments are required:", "missing:")
        self.exit(2, f"{self.prog}: {message} ({self.prog} --help lists the options)\n")


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of `ridgeline`; `args.command` names the chosen command."""
    parser = _Parser(
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
    _add_archives(commands)
    _add_housekeeping(commands)
    return parser


_Commands = argparse._SubParsersAction  # noqa: SLF001 - argparse gives this type no public name


def _add_run(commands: _Commands[_Parser]) -> None:
    run = commands.add_parser(
        "run",
        help="search for a faster kernel, or go on with a search",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    run.add_argument(
        "problem", type=_word, nargs="?", help="a problem.yaml or its folder, or the name of a shipped problem"
    )
    _add_search_shape(run)
    _add_placement(run)
    _add_budget(run)
    _add_showing(run, "result.json")


def _add_showing(run: argparse.ArgumentParser, file_name: str) -> None:
    run.add_argument("--rng-seed", type=_integer, metavar="N", help="random seed of the search's choices (default 0)")
    run.add_argument("--json", action="store_true", help=f"print {file_name} to standard output; progress to stderr")
    run.add_argument("--plain", action="store_true", help="plain lines instead of the live view")
    _add_unsafe(run)


def _add_suite(commands: _Commands[_Parser]) -> None:
    suite = commands.add_parser(
        "suite",
        help="search several problems, one after the other",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    suite.add_argument(
        "problems", type=_word, nargs="*", metavar="PROBLEM", help="problem.yaml, shipped name, or folder of problems"
    )
    _add_search_shape(suite)
    place = suite.add_argument_group("where")
    _add_device_and_bank(place)
    place.add_argument("--out", type=_word, metavar="DIR", help="the suite's folder (default runs/suite-TIME-PROCESS)")
    place.add_argument(
        "--resume",
        type=_word,
        nargs="?",
        const=NEWEST,
        metavar="FOLDER",
        help="go on with a suite; without FOLDER the newest unfinished one",
    )
    _add_budget(suite, "budget of each search: no further kernel once one is spent")
    _add_showing(suite, "suite.json")


def _add_search_shape(run: argparse.ArgumentParser) -> None:
    shape = run.add_argument_group("the search (defaults come from the problem file)")
    shape.add_argument("--rounds", type=_setting, metavar="N", help="rounds; with --resume, extends a finished search")
    shape.add_argument("--ideas", type=_setting, metavar="N", help="ideas a round")
    shape.add_argument("--implementations", type=_setting, metavar="N", help="implementations of each idea")
    shape.add_argument("--repairs", type=_setting_or_none, metavar="N", help="repairs of a failed implementation")
    shape.add_argument(
        "--tune-trials", type=_setting_or_none, metavar="N", help="tuning measurements a round, 0 for none"
    )
    shape.add_argument("--strategy", choices=("branch", "revision"), help="branch from ideas, or revise one kernel")
    shape.add_argument(
        "--model",
        action="append",
        type=_word,
        metavar="PROVIDER:NAME",
        help="openai:o3, google_genai:gemini-2.5-pro, offline, … (repeatable: the models share the search)",
    )


def _add_placement(run: argparse.ArgumentParser) -> None:
    place = run.add_argument_group("where")
    _add_device_and_bank(place)
    place.add_argument(
        "--run-dir", type=_word, metavar="DIR", help="the run's folder (default runs/PROBLEM-TIME-PROCESS)"
    )
    place.add_argument(
        "--resume",
        type=_word,
        nargs="?",
        const=NEWEST,
        metavar="ID",
        help="go on with a run: its folder or its folder's name; without ID this problem's newest unfinished run",
    )


def _add_device_and_bank(place: argparse._ArgumentGroup) -> None:
    place.add_argument("--device", type=_word, help="cpu, cuda or cuda:N (default cpu)")
    place.add_argument(
        "--bank", type=_word, metavar="PATH|none", help="the seed bank, kept across runs (default: your own)"
    )


def _add_budget(
    run: argparse.ArgumentParser,
    title: str = "budget: no further kernel once one is spent; timing PyTorch and the certificate come on top",
) -> None:
    budget = run.add_argument_group(title)
    budget.add_argument("--max-usd", type=_amount, metavar="USD", help="US dollars of model calls")
    budget.add_argument("--max-tokens", type=_positive, metavar="N", help="input and output tokens together")
    budget.add_argument("--max-wall-s", type=_amount, metavar="S", help="seconds on the clock for finding kernels")
    budget.add_argument("--max-gpu-s", type=_amount, metavar="S", help="seconds of GPU time")


def _add_evaluate(commands: _Commands[_Parser]) -> None:
    evaluate = commands.add_parser(
        "evaluate", help="judge kernel files: compile, verify, time", description=EVALUATE_DESCRIPTION
    )
    evaluate.add_argument("problem", type=_word, help="a problem.yaml, or the name of a shipped problem")
    evaluate.add_argument("files", type=_word, nargs="+", metavar="FILE", help="kernel sources")
    evaluate.add_argument("--device", type=_word, default="cpu", help="cpu, cuda or cuda:N (default cpu)")
    evaluate.add_argument("--json", action="store_true", help="one JSON line a file")
    _add_unsafe(evaluate)


def _add_reading(commands: _Commands[_Parser]) -> None:
    show = commands.add_parser("show", help="what a run found: rounds, ideas, lineage of the best, cost")
    show.add_argument(
        "run",
        type=_word,
        nargs="?",
        help="a run's folder, its name or the name's beginning (of several the newest); without it a list of the runs",
    )
    show.add_argument("--json", action="store_true")
    problems = commands.add_parser("problems", help="list the problems that ship with Ridgeline")
    problems.add_argument("--json", action="store_true")
    new = commands.add_parser("new", help="make a problem from your own PyTorch module")
    new.add_argument("name", type=_word, help="the new problem's name: lower-case letters, digits, - and _")
    new.add_argument(
        "--from", type=_word, dest="reference", required=True, metavar="reference.py", help="Model, get_inputs, …"
    )
    new.add_argument("--out", type=_word, default=".", metavar="DIR", help="writes DIR/NAME/problem.yaml (default .)")
    _add_import(commands)


def _add_import(commands: _Commands[_Parser]) -> None:
    command = commands.add_parser("import", help="make problems from another suite's files")
    command.add_argument("suite", choices=("kernelbench",), help="the suite whose format the files have")
    command.add_argument("path", type=_word, help="a copy of its repository, a level's folder or one file")
    command.add_argument("--level", action="append", type=_positive, metavar="N", help="only this level (repeatable)")
    command.add_argument(
        "--out",
        type=_word,
        default="kernelbench-problems",
        metavar="DIR",
        help="default kernelbench-problems: DIR/levelN/NAME",
    )
    command.add_argument(
        "--tolerance", choices=("fp32", "tf32", "fp16", "bf16", "fp8", "crfm"), default="fp32", help="default fp32"
    )
    command.add_argument(
        "--check", action="store_true", help="say whether each problem runs on the device, and if not, why"
    )
    command.add_argument("--device", type=_word, default="cpu", help="the device that --check looks at (default cpu)")
    command.add_argument("--json", action="store_true", help="one JSON array instead of the table")


def _add_archives(commands: _Commands[_Parser]) -> None:
    export = commands.add_parser("export", help="copy a run's archive into one file, or its kernels as training data")
    export.add_argument("run", type=_word, help="a run's folder or its folder's name")
    export.add_argument("--jsonl", action="store_true", help="one JSON line a candidate instead of a database")
    export.add_argument(
        "--out",
        type=_word,
        metavar="FILE",
        help="the file to write; .jsonl means --jsonl (whose default is standard output)",
    )
    merge = commands.add_parser("merge", help="merge exported archives into one")
    merge.add_argument("into", type=_word, metavar="ALL.sqlite", help="the archive that grows; made when missing")
    merge.add_argument("sources", type=_word, nargs="+", metavar="RUN", help="run folders or exported archives")


def _add_housekeeping(commands: _Commands[_Parser]) -> None:
    clean = commands.add_parser("clean", help="empty the build cache, remove old runs")
    clean.add_argument("--runs", type=_word, metavar="DIR", default="runs", help="the folder of runs (default runs)")
    clean.add_argument("--older-than-days", type=_amount, metavar="D", help="remove runs older than this")
    clean.add_argument("--keep", type=_natural, metavar="N", help="keep the newest N runs of each problem")
    clean.add_argument("--cache", action="store_true", help="empty the build cache too")
    clean.add_argument("--dry-run", action="store_true", help="only say what would be removed")
    doctor = commands.add_parser("doctor", help="what works on this machine, and what to install")
    doctor.add_argument("--json", action="store_true")


def _add_unsafe(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--unsafe-no-sandbox",
        action="store_true",
        help="run candidates without isolation where no sandbox tier works; recorded in every result",
    )


def _word(text: str) -> str:
    if not text.strip():
        raise argparse.ArgumentTypeError("is empty; give it a value or leave it out")
    return text


def _positive(text: str) -> int:
    return _whole(text, least=1)


def _natural(text: str) -> int:
    return _whole(text, least=0)


def _setting(text: str) -> int:
    return _whole(text, least=1, most=MOST)


def _setting_or_none(text: str) -> int:
    return _whole(text, least=0, most=MOST)


def _integer(text: str) -> int:
    return _whole(text)


def _whole(text: str, *, least: int | None = None, most: int | None = None) -> int:
    bounds = "" if least is None else f", {least} or more" if most is None else f" from {least} to {most}"
    with contextlib.suppress(ValueError):
        value = int(text)
        if (least is None or value >= least) and (most is None or value <= most):
            return value
    raise argparse.ArgumentTypeError(f"must be a whole number{bounds}, got {_shown(text)}")


def _amount(text: str) -> float:
    with contextlib.suppress(ValueError):
        value = float(text)
        if 0 < value < float("inf"):
            return value
    raise argparse.ArgumentTypeError(f"must be a number above 0, got {_shown(text)}")


def _shown(text: str) -> str:
    return f"{text[:40]}…" if len(text) > 40 else text or "nothing"
