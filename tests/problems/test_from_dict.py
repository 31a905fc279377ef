"""A problem from a mapping in a program: the keys, checks and words of problem.yaml, and no file of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.graph.conftest import write_problem

from ridgeline.problems.spec import ProblemSpec
from ridgeline.tools.errors import ProblemError

TOY: dict[str, Any] = {"name": "toy", "reference": "reference.py", "seeds": ["seeds/*.cpp"], "search": {"rounds": 2}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Give a folder with a reference and a seed, and no problem.yaml."""
    write_problem(tmp_path).path.unlink()
    return tmp_path


def test_a_mapping_states_what_a_file_would(folder: Path) -> None:
    spec = ProblemSpec.from_dict(TOY, folder=folder)
    assert (spec.name, spec.search.rounds, len(spec.seed_sources("cpu"))) == ("toy", 2, 1)
    assert "class Model" in spec.reference_source("cpu")
    assert spec.path.is_absolute() and not spec.path.exists()
    assert ProblemSpec.from_dict(TOY, folder=str(folder)) == spec


def test_a_problem_prints_as_one_line_with_what_it_is_and_where(folder: Path) -> None:
    spec = ProblemSpec.from_dict({**TOY, "targets": {"cpu": {}}}, folder=folder)
    line = f"<ProblemSpec toy: {folder}/reference.py, interface c, tolerance fp32, targets cpu>"
    assert (str(spec), repr(spec)) == (line, line)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"tolerance": "fp33"}, "tolerance: must be one of .*did you mean fp32"),
        ({"serach": {}}, "serach: unknown key; did you mean `search`"),
        ({"reference": "absent.py"}, "absent.py does not exist"),
        ({"seeds": ["*.cu"]}, "seeds: "),
        ({"name": None}, "name: must be text"),
    ],
)
def test_a_mistake_is_told_in_one_line_that_names_the_key(folder: Path, change: dict[str, Any], said: str) -> None:
    with pytest.raises(ProblemError, match=f"from_dict: .*{said}") as caught:
        ProblemSpec.from_dict(TOY | change, folder=folder)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("data", "folder"), [([], "."), (None, "."), (TOY, 5), (TOY, None)])
def test_what_is_no_mapping_or_no_folder_is_refused(data: Any, folder: Any) -> None:
    with pytest.raises(ProblemError, match=r"ProblemSpec\.from_dict: "):
        ProblemSpec.from_dict(data, folder=folder)
