"""Sizes written into a reference's text."""

import ast

import pytest

from ridgeline.problems.syntax import has_init_inputs, odd_counts, substitute_sizes, top_level_numbers
from ridgeline.tools.errors import ProblemError


@pytest.mark.parametrize(
    ("source", "sizes", "expected"),
    [
        ("N = 4  # rows\nM = N * 2\n", {"N": 16}, "N = 16  # rows\nM = N * 2\n"),
        ("N = 4\nM = N * 2\n", {"M": 3}, "N = 4\nM = 3\n"),
        ("N: int = 4\n", {"N": 16}, "N: int = 16\n"),
        ("N, M = 4, 5\n", {"M": 6}, "N, M = 4, 6\n"),
        ("N = (\n    4 +\n    4\n)\nM = 1\n", {"N": 16, "M": 2}, "N = (\n    16\n)\nM = 2\n"),
        ("é = 'ü'; N = 4; M = 5\n", {"N": 16, "M": 17}, "é = 'ü'; N = 16; M = 17\n"),
        ("# a\x0cb\nN = 4\n", {"N": 16}, "# a\x0cb\nN = 16\n"),
        ("EPS = 1e-5\n", {"EPS": -0.5}, "EPS = -0.5\n"),
        ("AXIS = -2\nSCALE = 3 / 2\n", {"AXIS": -1, "SCALE": 0.5}, "AXIS = -1\nSCALE = 0.5\n"),
        ("PADDING = 1\n", {"PADDING": 0}, "PADDING = 0\n"),
        ("N = 4\ndef f():\n    N = 4\n", {"N": 16}, "N = 16\ndef f():\n    N = 4\n"),
    ],
)
def test_only_the_value_of_the_assignment_changes(source: str, sizes: dict[str, float], expected: str) -> None:
    changed = substitute_sizes(source, sizes, "here")
    assert changed == expected
    ast.parse(changed)


def test_derived_constants_follow() -> None:
    scope: dict[str, int] = {}
    exec(substitute_sizes("N = 4\nM = N * 2\n", {"N": 16}, "here"), scope)
    assert scope["M"] == 32


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("ROWS = 4\n", "here: the reference assigns no `N` at its top level; it assigns ROWS"),
        ("n = 4\nNN = 3\n", "did you mean `NN`?"),
        ("def f():\n    N = 4\n", "it assigns none"),
        ("N = 4\nN = 5\n", "assigns `N` more than once"),
        ("N = 4\nN *= 2\n", "assigns `N` more than once"),
        ("N = M = 4\n", "assigns `N` together with other names"),
        ("N, M = pair()\n", "assigns `N` together with other names"),
    ],
)
def test_a_size_that_cannot_be_set_is_refused(source: str, expected: str) -> None:
    with pytest.raises(ProblemError) as caught:
        substitute_sizes(source, {"N": 16}, "here")
    assert expected in str(caught.value)


@pytest.mark.parametrize(("source", "size"), [("SCALE = 1\n", 0.125), ("AXIS = 1\n", -1), ("T = 4 * 2\n", 1.5)])
def test_a_whole_number_is_replaced_by_any_number_which_is_told_where_it_may_be_a_mistake(
    source: str, size: float
) -> None:
    name, _, was = source.strip().partition(" = ")
    assert substitute_sizes(source, {name: size}, "here") == f"{name} = {size}\n"
    assert odd_counts(ast.parse(source), {name: size, "OTHER": -1}) == {name: was}
    assert odd_counts(ast.parse(source), {name: 0}) == {}
    assert odd_counts(ast.parse(f"{name} = 2.5\n"), {name: size}) == {}


def test_a_text_is_replaced_by_a_types_name_and_by_nothing_else() -> None:
    source = 'DTYPE = "float16"\nN = 4\n'
    assert substitute_sizes(source, {"DTYPE": "bfloat16", "N": 8}, "here") == "DTYPE = 'bfloat16'\nN = 8\n"
    with pytest.raises(ProblemError, match="here.DTYPE: must be one of float32, float16, bfloat16 as in the reference"):
        substitute_sizes(source, {"DTYPE": 16}, "here")


@pytest.mark.parametrize(
    ("source", "has"),
    [
        ("def get_init_inputs():\n    return []\n", True),
        ("from own import inputs as get_init_inputs\n", True),
        ("get_init_inputs = list\n", True),
        ("if True:\n    def get_init_inputs(): return []\n", True),
        ("# no get_init_inputs: Model takes nothing\nN = 'get_init_inputs'\n", False),
        (None, False),
    ],
)
def test_a_reference_has_init_inputs_where_it_gives_that_name(source: str | None, has: bool) -> None:
    assert has_init_inputs(source) is has


def test_the_numbers_that_sizes_may_replace_are_listed() -> None:
    tree = ast.parse("N = 4\nEPS = 1e-5\nNAME = 'x'\nFLAG = True\nM = N * 2\n")
    assert top_level_numbers(tree) == {"N": 4, "EPS": 1e-5}
