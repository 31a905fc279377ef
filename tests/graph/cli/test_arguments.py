"""The options and what they refuse."""

from __future__ import annotations

import argparse
from typing import get_args

import pytest

from ridgeline.graph.cli.arguments import NEWEST, make_parser
from ridgeline.graph.cli.parser import Commands
from ridgeline.problems.limits import MOST
from ridgeline.problems.spec import ProblemSpec, SearchPart, SearchSettings
from ridgeline.tools.build.interfaces import C_CPU_S
from ridgeline.tools.build.recipe import WALL_PER_CPU
from ridgeline.tools.records.evaluation_limit import (
    CALLS,
    LEAST_S,
    LEAST_TRIALS,
    LONGEST_BUILD_S,
    MOST_TRIALS,
    timing_limit_s,
    verify_limit_s,
)
from ridgeline.tools.records.precision import FRESH_SECRETS
from ridgeline.tools.records.vocabulary import Purpose

COMMANDS = {
    "run": ["quickstart"],
    "suite": ["quickstart"],
    "evaluate": ["quickstart", "kernel.cpp"],
    "show": ["x"],
    "new": ["x", "--from", "reference.py"],
    "import": ["kernelbench", "x"],
    "export": ["x"],
    "merge": ["x", "y"],
    "clean": [],
}


def parser_of(command: str) -> argparse.ArgumentParser:
    actions = make_parser()._subparsers._group_actions  # type: ignore[union-attr]
    found: argparse.ArgumentParser = actions[0].choices[command]  # type: ignore[index]
    return found


def test_every_commands_help_begins_with_what_it_does() -> None:
    waiting = [make_parser()]
    while waiting:
        parser = waiting.pop()
        assert parser.description, parser.prog
        for action in parser._actions:
            if isinstance(action, Commands):
                waiting += action.choices.values()


VALUED = [
    (command, action.option_strings[0])
    for command in COMMANDS
    for action in parser_of(command)._actions
    if action.option_strings and action.nargs != 0
]


@pytest.mark.parametrize(("command", "option"), VALUED)
def test_an_empty_value_is_a_mistake(command: str, option: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        make_parser().parse_args([command, *COMMANDS[command], option, ""])
    said = capsys.readouterr().err
    assert (ended.value.code, said.count("\n")) == (2, 1)
    assert f"argument {option}" in said


@pytest.mark.parametrize(("command", "option"), VALUED)
def test_two_hyphens_are_no_value(command: str, option: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        make_parser().parse_args([command, *COMMANDS[command], f"{option}=--"])
    said = capsys.readouterr().err
    assert (ended.value.code, said.count("\n")) == (2, 1)
    assert f"argument {option}: is empty" in said


@pytest.mark.parametrize("command", [command for command, words in COMMANDS.items() if words])
def test_an_empty_word_is_a_mistake(command: str) -> None:
    for place, _ in enumerate(COMMANDS[command]):
        words = [*COMMANDS[command]]
        if not words[place].startswith("--"):
            words[place] = ""
            with pytest.raises(SystemExit):
                make_parser().parse_args([command, *words])


def test_an_empty_word_that_is_needed_is_not_told_to_be_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    for words, said in ((["idea", "run", ""], "is empty; it needs a value"), (["show", ""], "or leave it out")):
        with pytest.raises(SystemExit):
            make_parser().parse_args(words)
        assert said in capsys.readouterr().err


@pytest.mark.parametrize("name", ["rounds", "ideas", "implementations", "repairs", "tune_trials"])
def test_a_setting_has_the_range_of_a_problem_file(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    schema = SearchSettings.model_json_schema()["properties"][name]
    assert schema["maximum"] == MOST
    option = f"--{name.replace('_', '-')}"
    for value in (schema["minimum"], MOST):
        assert vars(make_parser().parse_args(["run", "x", option, str(value)]))[name] == value
    for value in (schema["minimum"] - 1, MOST + 1):
        with pytest.raises(SystemExit):
            make_parser().parse_args(["run", "x", option, str(value)])
        said = capsys.readouterr().err
        assert f"argument {option}: must be a whole number from {schema['minimum']} to {MOST}, got {value}" in said


def test_resume_without_a_word_means_the_newest_run() -> None:
    assert make_parser().parse_args(["run", "--resume"]).resume is NEWEST
    assert make_parser().parse_args(["run", "--resume", "x"]).resume == "x"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["run", "x", "--round", "3"], "ridgeline run: --round: no such option or word here; did you mean --rounds?"),
        (["run", "x", "--max-walls=3"], "did you mean --max-wall-s? (ridgeline run --help lists the options)"),
        (["show", "x", "y"], "ridgeline show: y: no such option or word here (ridgeline show --help"),
        (["--verison"], "ridgeline: --verison: no such option or word here; did you mean --version? (ridgeline --help"),
        (["evaluate", "--jsn"], "ridgeline evaluate: --jsn: no such option or word here; did you mean --json?"),
        (["run", "x", "--", "--rond"], "ridgeline run: --rond: no such option or word here"),
        (["shw"], "ridgeline: shw: no such command; did you mean show? (ridgeline --help"),
        (["mailbox", "lst", "x"], "ridgeline mailbox: lst: no such command; did you mean list?"),
        (["zzz"], "ridgeline: zzz: no such command; choose from run, suite, evaluate, show,"),
        (["help", "run"], "ridgeline: help: no such command (ridgeline --help lists the commands)\n"),
        ([], "ridgeline: no command was named (ridgeline --help lists the commands)\n"),
        (["run", "x", "--strategy", "brunch"], "argument --strategy: brunch: no such choice; did you mean branch?"),
        (["import", "zzz", "x"], "argument suite: zzz: no such choice; choose from kernelbench ("),
    ],
)
def test_a_word_that_is_not_known_is_a_mistake_that_names_the_near_one(
    words: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        make_parser().parse_args(words)
    assert ended.value.code == 2
    assert says in capsys.readouterr().err


def all_parsers(parser: argparse.ArgumentParser) -> list[argparse.ArgumentParser]:
    nested = [action.choices for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    return [parser, *(each for choices in nested for below in choices.values() for each in all_parsers(below))]


def test_every_option_and_word_has_a_help_text() -> None:
    silent = [
        f"{parser.prog} {action.option_strings or action.dest}"
        for parser in all_parsers(make_parser())
        for action in parser._actions
        if not action.help and not isinstance(action, argparse._SubParsersAction)
    ]
    assert silent == []


def test_the_help_says_what_each_part_and_each_strategy_does() -> None:
    told = {action.dest: action.help or "" for action in parser_of("run")._actions}
    assert [part for part in get_args(SearchPart) if f"{part} (" not in told["without"]] == []
    assert "branch (default): " in told["strategy"] and "revision: " in told["strategy"]
    assert told["max_tokens"] == "stop after N input + output tokens; RUN: as many as that run used"
    assert told["park"] == "exit when only outside answers are missing; continue with --resume"
    assert "fastest kernels of earlier searches" in told["bank"]


def test_the_help_of_evaluate_says_what_a_kernel_may_cost_at_the_defaults() -> None:
    call_timeout_s = ProblemSpec.model_fields["call_timeout_s"].default
    said = " ".join(parser_of("evaluate").format_help().split())
    assert (
        f"{C_CPU_S * WALL_PER_CPU:.0f} s while it is compiled ({LONGEST_BUILD_S:.0f} s where it includes torch)" in said
    )
    assert f"{verify_limit_s(call_timeout_s):.0f} s in verification" in said
    assert f"{timing_limit_s(call_timeout_s, Purpose.EVALUATE):.0f} s in timing" in said
    assert f"{CALLS} times as long, and {LEAST_S:.0f} s at least" in said
    most_s = verify_limit_s(call_timeout_s, MOST_TRIALS)
    assert f"{most_s:.0f} s in all for a reference that takes {MOST_TRIALS} trials instead of {LEAST_TRIALS}" in said
    near_s = verify_limit_s(call_timeout_s, draws=1 + FRESH_SECRETS)
    assert near_s == 4 * verify_limit_s(call_timeout_s)
    assert "four times as long for a kernel near a limit" in said
