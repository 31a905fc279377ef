"""Problems made of files in KernelBench's form: small ones of our own."""

from pathlib import Path

import pytest

from ridgeline.problems.kernelbench import import_file, kernelbench_files
from ridgeline.problems.spec import load_problem
from ridgeline.tools.errors import ProblemError

SQUARE = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return x * x


ROWS = 8


def get_inputs():
    return [torch.rand(ROWS, 4)]


def get_init_inputs():
    return []
"""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    files = {
        "level1/2_Square_.py": SQUARE,
        "level1/10_Cube-of__X.py": SQUARE.replace("x * x", "x ** 3"),
        "level1/README.py": "no number",
        "level2/1_Broken.py": "def get_inputs(:\n",
        "level2/2_Without_Model.py": "def get_inputs():\n    return []\n",
        "level2/3_Package.py": "import a_package_nobody_has.parts\nfrom torch import nn\n" + SQUARE,
        "level2/4_Lazy.py": SQUARE.replace("        return", "        import a_package_nobody_has\n        return"),
        "changelog/1_Notes.py": SQUARE,
    }
    for name, text in files.items():
        path = tmp_path / "repo" / "KernelBench" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "repo"


def test_files_are_found_from_the_repository_down_to_one_file(repository: Path) -> None:
    inner = repository / "KernelBench"
    everything = ["1/2", "1/10", "2/1", "2/2", "2/3", "2/4"]
    assert [f.id for f in kernelbench_files(repository)] == everything
    assert [f.id for f in kernelbench_files(inner)] == everything
    assert [f.id for f in kernelbench_files(repository, (1,))] == everything[:2]
    assert [f.id for f in kernelbench_files(inner / "level1")] == everything[:2]
    assert [f.id for f in kernelbench_files(inner / "level1" / "2_Square_.py")] == ["1/2"]


@pytest.mark.parametrize("path", ["repo/KernelBench/changelog", "repo/nothing", "repo/KernelBench/level1/README.py"])
def test_a_path_without_files_is_one_line(repository: Path, path: str) -> None:
    with pytest.raises(ProblemError, match="give a copy of KernelBench's repository"):
        kernelbench_files(repository.parent / path)
    with pytest.raises(ProblemError, match="holds no level7/NUMBER_NAME.py"):
        kernelbench_files(repository, (7,))


def test_a_file_becomes_a_problem_with_its_own_name_and_text(repository: Path, tmp_path: Path) -> None:
    made = [import_file(f, tmp_path / "out", "crfm") for f in kernelbench_files(repository, (1,))]
    assert [m.problem for m in made] == [
        tmp_path / "out" / "level1" / name / "problem.yaml" for name in ("kb1_2_square", "kb1_10_cube_of_x")
    ]
    for each in made:
        assert each.problem is not None
        spec = load_problem(each.problem)
        assert spec.tolerance == "crfm"
        assert spec.reference_source("cuda") == each.file.path.read_text()
        assert "ROWS: 8" in each.problem.read_text()


def test_a_long_file_name_gives_a_name_that_a_problem_may_have(repository: Path, tmp_path: Path) -> None:
    path = repository / "KernelBench" / "level1" / f"75_{'Conv_' * 30}.py"
    path.write_text(SQUARE)
    made = import_file(kernelbench_files(path)[0], tmp_path)
    assert made.problem is not None
    assert load_problem(made.problem).name.startswith("kb1_75_conv_conv_")


def test_what_cannot_be_a_problem_is_named_with_its_reason(repository: Path, tmp_path: Path) -> None:
    broken, without, package, lazy = (import_file(f, tmp_path / "out") for f in kernelbench_files(repository, (2,)))
    assert (broken.problem, broken.code) == (None, "form")
    assert "line 1: " in broken.reason
    assert (without.problem, without.code) == (None, "form")
    assert "has no `Model`" in without.reason
    assert package.problem is not None
    assert (package.code, package.reason.split(",")[0]) == ("package", "imports a_package_nobody_has")
    assert lazy.code == "", "what forward imports is not certain to be reached"


def test_importing_again_keeps_what_is_there_and_refuses_to_mix(repository: Path, tmp_path: Path) -> None:
    file = kernelbench_files(repository, (1,))[0]
    made = import_file(file, tmp_path / "out")
    assert made.problem is not None
    made.problem.write_text(made.problem.read_text() + "\n# mine\n")
    assert import_file(file, tmp_path / "out") == made
    assert made.problem.read_text().endswith("# mine\n")
    with pytest.raises(ProblemError, match="has tolerance fp32, not crfm"):
        import_file(file, tmp_path / "out", "crfm")
    file.path.write_text(SQUARE + "\n# another\n")
    with pytest.raises(ProblemError, match="made of another file of this name"):
        import_file(file, tmp_path / "out")
