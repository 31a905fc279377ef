"""Whatever stands at whichever key: a problem, or one line that names the file."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from ridgeline.graph.cli import main
from ridgeline.problems.model_calls import CallSettings, Section
from ridgeline.problems.spec import Budget, ProblemSpec, SearchSettings, load_problem
from ridgeline.tools.errors import ProblemError

REFERENCE = (
    "import torch\nROWS = 4\nDTYPE = 'float32'\nclass Model(torch.nn.Module):\n    def forward(self, x):\n"
    "        return x\ndef get_inputs():\n    return [torch.randn(ROWS)]\n"
)
HEAD = {"name": "mine", "reference": "reference.py"}
VALUES = [
    "null",
    "true",
    "-1",
    "0",
    "1.5",
    ".nan",
    "-.inf",
    "1e400",
    "9" * 309,
    "-" + "9" * 400,
    "0x" + "f" * 400,
    "0x" + "f" * 5000,
    "0b" + "1" * 20_000,
    "1:" + "9" * 400,
    "1." + "0" * 5000,
    "''",
    "' '",
    "x" * 300,
    "x" * 5000,
    r'"\0"',
    r'"a\nb"',
    r'"\e[31m"',
    r'"\ud800"',
    "2020-01-01",
    "2020-13-45",
    "!!bool x",
    "!!int x",
    "!!timestamp 9",
    "!!binary aGk=",
    "!!set {a}",
    "!!python/name:os.system x",
    ".",
    "..",
    "/dev/zero",
    "/proc/self/mem",
    "reference.py/x",
    "[]",
    "[[]]",
    "[null]",
    "['.']",
    "['']",
    "['**']",
    "['[']",
    r'["\0"]',
    f"[{'x' * 5000}]",
    "{}",
    "{1: 1}",
    "{[1]: 1}",
    "{cpu: 1}",
    "{cpu: {sizes: 1}}",
    "{<<: [1]}",
    "&a [*a]",
    "&a {b: *a}",
    "&a {<<: *a}",
    "[" * 90 + "]" * 90,
]
PLACES = {
    **{key: f"{key}: {{}}" for key in [*ProblemSpec.model_fields, "unknown"]},
    **{f"search.{key}": f"search: {{{{{key}: {{}}}}}}" for key in [*SearchSettings.model_fields, "unknown"]},
    **{f"budget.{key}": f"budget: {{{{{key}: {{}}}}}}" for key in Budget.model_fields},
    **{
        f"sizes.{name}": f"targets: {{{{cpu: {{{{sizes: {{{{{name}: {{}}}}}}}}}}}}}}"
        for name in ("ROWS", "DTYPE", "NONE")
    },
    "prices.input": "prices: {{m: {{input: {}, output: 1}}}}",
    "a key": "? {}\n: 1",
    "a size's name": "targets: {{cpu: {{sizes: {{? {}\n : 1}}}}}}",
    "a model's name": "prices: {{? {}\n : {{input: 1, output: 1}}}}",
}


@pytest.fixture
def problem(tmp_path: Path) -> Path:
    (tmp_path / "reference.py").write_text(REFERENCE)
    return tmp_path / "problem.yaml"


@pytest.mark.parametrize("value", VALUES, ids=lambda value: value[:20])
def test_any_value_anywhere_is_a_problem_or_one_short_line(problem: Path, value: str) -> None:
    for place, line in PLACES.items():
        head = "".join(f"{key}: {text}\n" for key, text in HEAD.items() if key != place)
        problem.write_text(f"{head}{line.format(value)}\n")
        try:
            load_problem(problem)
        except ProblemError as error:
            said = str(error)
            assert said.startswith(f"{problem}: "), place
            assert said.isprintable(), place
            # a path is shown whole, so that it can be looked for
            assert len(said) < len(str(problem)) + 300 or place == "reference", place


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("seeds: ['.']", "seeds: `.` is the problem's folder; name the kernels in it, as in `seeds/*.cpp`"),
        (f"targets: {{cpu: {{sizes: {{ROWS: {'9' * 309}}}}}}}", "sizes.ROWS: must be a number that a float can hold"),
        (f"search: {{rounds: 0x{'f' * 5000}}}", "got a whole number of thousands of digits"),
        (f"tolerance: 0x{'f' * 5000}", "crfm, got a whole number of thousands of digits"),
        (f"schema_version: {'9' * 400}", "schema_version: must have fewer digits, got 999"),
        (f"models: {'x' * 300}", "models: must be a list: write ['xxxx"),
        (f"{'x' * 300}: 1", "…: unknown key; known are"),
        (r'"a\nb": 1', r"'a\nb': unknown key; known are"),
        (r'targets: {cpu: {sizes: {"a\nb": 1}}}', r"assigns no `'a\nb'` at its top level"),
        (r'seeds: ["a\nb"]', r"seeds: `'a\nb'` matches no file"),
    ],
)
def test_a_command_ends_with_code_2_and_the_line(
    problem: Path, capsys: pytest.CaptureFixture[str], line: str, expected: str
) -> None:
    problem.write_text("".join(f"{key}: {text}\n" for key, text in HEAD.items()) + line + "\n")
    assert main(["run", str(problem)]) == 2
    output, errors = capsys.readouterr()
    assert errors.startswith(f"ridgeline: {problem}: ") and expected in errors
    assert (output, errors.count("\n")) == ("", 1)


def test_a_word_of_a_list_is_told_by_itself_without_its_number(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "quickstart", "--without", "memory,tunning"]) == 2
    assert capsys.readouterr().err.startswith("ridgeline: without: must be one of memory, ")
    with pytest.raises(ProblemError, match=r"search\.without: must be one of .*, got 'tunning'; did you mean tuning\?"):
        ProblemSpec.from_dict({**HEAD, "search": {"without": ["tunning"]}}, folder=".")


@pytest.mark.parametrize(
    ("section", "given", "says"),
    [
        (Budget, {"usd": math.nan}, "Budget: usd: must be a finite number, got nan"),
        (Budget, {"wall_s": math.inf}, "Budget: wall_s: must be a finite number, got inf"),
        (Budget, {"gpu_s": -1.0}, "Budget: gpu_s: must be greater than 0, got -1.0"),
        (Budget, {"tokens": 0}, "Budget: tokens: must be greater than 0, got 0"),
        (Budget, {"usd": "5"}, "Budget: usd: must be a number, got '5'"),
        (Budget, {"dollars": 5}, "Budget: dollars: unknown key; known are usd, tokens, wall_s, gpu_s"),
        (SearchSettings, {"rounds": 0}, "SearchSettings: rounds: must be greater than or equal to 1, got 0"),
        (CallSettings, {"timeout_s": math.nan}, "CallSettings: timeout_s: must be a finite number, got nan"),
    ],
)
def test_a_section_that_a_program_makes_is_refused_in_one_line(
    section: type[Section], given: dict[str, Any], says: str
) -> None:
    with pytest.raises(ProblemError) as told:
        section(**given)
    assert str(told.value) == says
    with pytest.raises(ValidationError):  # a whole file's mistake keeps its place
        section.model_validate(given)


def refusal(folder: Path, text: str) -> str:
    """Return what is said of a problem.yaml beside a whole reference, without its path in front."""
    (folder / "reference.py").write_text(REFERENCE)
    (folder / "problem.yaml").write_text(text)
    with pytest.raises(ProblemError) as refused:
        load_problem(folder)
    return str(refused.value).removeprefix(f"{folder / 'problem.yaml'}: ")


def test_all_mistakes_of_a_file_are_told_at_once_each_with_its_key(tmp_path: Path) -> None:
    said = refusal(
        tmp_path,
        "name: mine\nreference: reference.py\nseeds: foo.cpp\nsearhc: {}\nsearch: {rounds: many}\nbudget: {usd: -1}\n",
    )
    assert said == (
        "4 mistakes: (1) searhc: unknown key; did you mean `search`?, (2) seeds: must be a list: write [foo.cpp], "
        "(3) search.rounds: must be a whole number, got 'many', (4) budget.usd: must be greater than 0, got -1"
    )


def test_a_misspelt_required_key_is_one_mistake(tmp_path: Path) -> None:
    said = refusal(tmp_path, "name: mine\nrefrence: reference.py\n")
    assert said == "refrence: unknown key; did you mean `reference`?"


def test_mistakes_in_what_a_file_names_are_told_at_once_each_once(tmp_path: Path) -> None:
    sizes = "targets: {cpu: {sizes: {COLS: 3}}, cuda: {}}"
    said = refusal(tmp_path, f"name: mine\nreference: reference.py\nseeds: ['no*.cpp']\n{sizes}\n")
    assert said.startswith("2 mistakes: (1) targets.cpu.sizes: the reference assigns no `COLS`")
    assert said.count("`no*.cpp` matches no file") == 1 and ", (2) seeds: " in said


def test_mistakes_of_a_files_text_and_of_what_it_names_are_told_at_once(tmp_path: Path) -> None:
    said = refusal(
        tmp_path,
        "name: My Problem\nreference: reference.py\nsearhc: {}\nprices: {mine: {input: 1}}\nseeds: ['no*.cpp']\n"
        "targets: {cpu: {sizes: {COLS: 3, DTYPE: big}}, cuda: 3}\n",
    )
    assert said.startswith("7 mistakes: (1) searhc: unknown key; did you mean `search`?, (2) name: must be 1 to 64 of ")
    assert "(3) targets.cpu.sizes.DTYPE: must be a number or one of " in said and "(4) targets.cuda: must be " in said
    assert "(5) prices.mine.output: is missing; add it, (6) targets.cpu.sizes: the reference assigns no `COLS`" in said
    assert "(7) seeds: " in said
    with pytest.raises(ProblemError, match=r"from_dict: 2 mistakes: \(1\) interface: .*, \(2\) targets.cpu.sizes: "):
        ProblemSpec.from_dict({**HEAD, "interface": 3, "targets": {"cpu": {"sizes": {"COLS": 3}}}}, folder=tmp_path)


def test_of_many_mistakes_the_first_and_their_number_are_told(tmp_path: Path) -> None:
    said = refusal(tmp_path, f"name: mine\nreference: reference.py\nideas: {list(range(30))}\n")
    assert said.startswith("30 mistakes: (1) ideas.0: ") and said.endswith(", and 10 more")
