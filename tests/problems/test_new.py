"""`ridgeline new`: a folder that runs, or nothing."""

from pathlib import Path

import pytest

from ridgeline.problems.new import new_problem
from ridgeline.problems.spec import load_problem, shipped_problems
from ridgeline.tools.errors import ProblemError

SOFTMAX = shipped_problems()["softmax"].parent / "reference.py"


def test_a_new_problem_loads_and_copies_the_reference(tmp_path: Path) -> None:
    path = new_problem("my-softmax", SOFTMAX, tmp_path / "problems")
    assert path == tmp_path / "problems" / "my-softmax" / "problem.yaml"
    spec = load_problem(path)
    assert spec.name == "my-softmax"
    assert spec.reference_source("cpu") == SOFTMAX.read_text()
    assert "ROWS: 4096, COLS: 65536" in path.read_text()


def test_a_new_problem_names_the_page_of_its_keys_before_their_schema(tmp_path: Path) -> None:
    page, schema, *_ = new_problem("mine", SOFTMAX, tmp_path).read_text().splitlines()
    assert page.endswith(": docs/problem.md in Ridgeline's repository")
    assert Path(schema.rpartition(": ")[2]).is_file()


def test_a_reference_of_half_precision_accepts_its_own_class(tmp_path: Path) -> None:
    reference = tmp_path / "half.py"
    reference.write_text(SOFTMAX.read_text().replace("COLS)", "COLS, dtype=torch.bfloat16)"))
    assert load_problem(new_problem("half", reference, tmp_path)).tolerance == "bf16"


def test_a_reference_of_float64_asks_for_its_digits(tmp_path: Path) -> None:
    reference = tmp_path / "double.py"
    reference.write_text(SOFTMAX.read_text().replace("COLS)", "COLS, dtype=torch.float64)"))
    assert load_problem(new_problem("double", reference, tmp_path)).tolerance == "fp64"


def test_a_constant_that_no_size_can_replace_is_not_offered(tmp_path: Path) -> None:
    reference = tmp_path / "reference.py"
    reference.write_text(f"{SOFTMAX.read_text()}\nHUGE = 0x{'f' * 5000}\nMOST = 1e999\nON = True\n")
    text = new_problem("mine", reference, tmp_path / "out").read_text()
    assert "ROWS: 4096" in text
    assert not any(name in text for name in ("HUGE", "MOST", "ON:"))


def test_a_folder_that_is_there_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "problem.yaml").write_text("precious")
    with pytest.raises(ProblemError, match="already exists; choose another name or remove it"):
        new_problem("mine", SOFTMAX, tmp_path)
    assert (tmp_path / "mine" / "problem.yaml").read_text() == "precious"


@pytest.mark.parametrize(
    ("name", "reference", "expected"),
    [
        ("Mine", SOFTMAX.read_text(), "name must be 1 to 64 of a-z"),
        ("../mine", SOFTMAX.read_text(), "name must be 1 to 64 of a-z"),
        ("mine\n", SOFTMAX.read_text(), "name must be 1 to 64 of a-z"),
        ("mine", "import torch\n", "has no `Model`"),
        ("mine", "class Model(\n", "line 1: "),
    ],
)
def test_a_bad_request_leaves_nothing_behind(tmp_path: Path, name: str, reference: str, expected: str) -> None:
    (tmp_path / "reference.py").write_text(reference)
    with pytest.raises(ProblemError, match=expected):
        new_problem(name, tmp_path / "reference.py", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_folder_without_write_access_is_one_line() -> None:
    with pytest.raises(ProblemError, match="choose another --out"):
        new_problem("mine", SOFTMAX, Path("/proc"))  # root writes anywhere but here


def test_an_output_path_that_is_a_file_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ProblemError, match="choose another --out"):
        new_problem("mine", SOFTMAX, tmp_path / "file")


def test_a_folder_that_cannot_be_made_is_refused_before_the_reference_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def check(_source: str, _tolerance: str) -> None:
        pytest.fail("the reference was run")

    (tmp_path / "file").write_text("")
    out = tmp_path / "file" / "below"
    with pytest.raises(ProblemError, match=f"{out}/mine: cannot be made, because {tmp_path}/file is no folder; choose"):
        new_problem("mine", SOFTMAX, out, check=check)
    monkeypatch.setattr("os.access", lambda place, _mode: Path(place) != tmp_path)  # root may write anywhere
    with pytest.raises(ProblemError, match=f"because {tmp_path} cannot be written; choose another --out"):
        new_problem("mine", SOFTMAX, tmp_path / "out", check=check)
