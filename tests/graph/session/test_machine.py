"""What is found out of a problem before anything waits for its device."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.graph.conftest import write_problem
from tests.graph.memory_engine import DEVICE

from ridgeline.graph.library.search import search
from ridgeline.graph.session.machine import measuring_devices, target_of, users_reference
from ridgeline.problems.spec import ProblemSpec, load_problem
from ridgeline.tools.errors import BadReferenceError, ModelError, NoRoomError, ProblemError
from ridgeline.tools.records.vocabulary import DeviceKind


def _importing(folder: Path, head: str) -> ProblemSpec:
    problem = write_problem(folder)
    reference = problem.path.parent / problem.reference
    reference.write_text(head + reference.read_text())
    return load_problem(problem.path)


def test_one_gpu_by_number_is_measured_on_alone() -> None:
    gpu = replace(DEVICE, kind=DeviceKind.CUDA, uuid="GPU-1")
    assert measuring_devices("cuda:1", gpu) == (gpu,)
    assert measuring_devices("cpu", DEVICE) == (DEVICE,)


def test_a_reference_that_imports_a_neighbour_is_refused_without_being_run(tmp_path: Path) -> None:
    (tmp_path / "helper_beside_it.py").write_text("")
    problem = _importing(tmp_path, "import helper_beside_it\n")
    with pytest.raises(ProblemError, match=r"imports helper_beside_it, not installed here; .*a reference is one file"):
        target_of(problem, "cpu")


def test_a_reference_that_says_where_to_look_or_does_without_is_left_to_the_judge(tmp_path: Path) -> None:
    target_of(_importing(tmp_path / "one", "import sys\nsys.path.append('/opt')\nimport nobody_has_this\n"), "cpu")
    target_of(_importing(tmp_path / "two", "try:\n    import nobody_has_this\nexcept ImportError:\n    pass\n"), "cpu")


def test_offline_refuses_an_interface_before_there_is_a_run_folder(tmp_path: Path) -> None:
    problem = write_problem(tmp_path / "problem")
    problem.path.write_text(problem.path.read_text() + "interface: module\n")
    with pytest.raises(ModelError, match=r"not covered: interface module\. Two other ways on"):
        search(problem.path, models=["offline"], run_dir=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_an_error_of_the_judge_names_the_user_s_reference_and_the_sizes_it_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _importing(tmp_path / "mine", "ROWS = 4\n").path
    path.write_text(path.read_text() + "targets: {cpu: {sizes: {ROWS: 3}}}\n")
    monkeypatch.chdir(tmp_path)
    problem = load_problem(Path("mine"))
    says = r"^mine/reference\.py: Model\(\) raised .* \(with ROWS = 3 of mine/problem\.yaml's targets\.cpu\.sizes\)$"
    with pytest.raises(NoRoomError, match=says), users_reference(problem, "cpu"):
        raise NoRoomError("reference.py: Model() raised RuntimeError: no room for 3")
    with pytest.raises(ProblemError, match=r"^reference\.py: sizes: is missing$"), users_reference(problem, "cpu"):
        raise ProblemError("reference.py: sizes: is missing")  # a key of problem.yaml has the reference's name


def test_sizes_that_may_be_why_are_told_of_an_error_that_was_raised_alone(tmp_path: Path) -> None:
    path = _importing(tmp_path, "ROWS = 4\nAXIS = 1\nCOLS = 8\n").path
    path.write_text(path.read_text() + "targets: {cpu: {sizes: {ROWS: 0.5, AXIS: -1, COLS: 3}}}\n")
    problem = load_problem(path)
    stated = f" (with ROWS = 0.5, AXIS = -1, COLS = 3 of {path}'s targets.cpu.sizes"
    perhaps = "; perhaps for ROWS, in the reference 4, or AXIS, in the reference 1"
    assert (
        _told_of(problem, "forward() draws random numbers (randn)")
        == f"forward() draws random numbers (randn){stated})"
    )
    for part in ("forward()", "get_inputs()", "Model().to(device)", "module"):
        assert _told_of(problem, f"{part} raised TypeError: no") == f"{part} raised TypeError: no{stated}{perhaps})"
    (path.parent / problem.reference).unlink()  # as a user may do meanwhile
    assert _told_of(problem, "forward() raised TypeError: no") == f"forward() raised TypeError: no{stated})"


def _told_of(problem: ProblemSpec, said: str) -> str:
    with pytest.raises(BadReferenceError) as caught, users_reference(problem, "cpu"):
        raise BadReferenceError.of_text(said)
    return str(caught.value).removeprefix(f"{problem.reference_given}: ")


def test_a_mistyped_model_names_the_file_that_names_it(tmp_path: Path) -> None:
    problem = write_problem(tmp_path / "mine", models=["opnai:o3"])
    with pytest.raises(ModelError, match=r"problem\.yaml: models: opnai:o3: .*did you mean openai\?"):
        search(problem.path, run_dir=tmp_path / "run")
    with pytest.raises(ModelError, match=r"^opnai:o3: "):
        search(problem.path, models=["opnai:o3"], run_dir=tmp_path / "run")
