"""The folder of a problem made of a live module: written once, found again, and another one told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tests.problems.live.modules import Chain, Given, Scaled, made
from torch import nn

from ridgeline.problems.spec import ProblemSpec, load_problem
from ridgeline.tools.errors import ProblemError


def test_the_folder_is_an_ordinary_problem_that_says_what_it_is(tmp_path: Path) -> None:
    spec = made(tmp_path, Chain(), torch.randn(8, 64), search={"rounds": 1}, models=["offline"])
    assert load_problem(tmp_path / "own") == spec and (spec.search.rounds, spec.tolerance) == (1, "fp32")
    assert {path.name for path in (tmp_path / "own").iterdir()} == {"problem.yaml", "reference.py"}
    text = spec.reference_source("cpu")
    for part in (
        "- x: float32 (8, 64)",
        "# class Chain(nn.Module):",
        "#   (norm): LayerNorm((64,)",
        "_parameter(self, 'norm.weight', torch.ones((64,)",
        "layer_norm = torch.layer_norm(x, [64], self.norm.weight, self.norm.bias, 1e-05, False)  # (8, 64) float32",
        "gelu = F.gelu(layer_norm); del layer_norm",
        "_normal((8, 64), torch.float32, mean=0.0, std=1.0),  # x",
    ):
        assert part in text
    assert str(tmp_path) not in text


def test_the_example_of_the_page_makes_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = Path(__file__).parents[3] / "docs" / "problem.md"
    block = page.read_text(encoding="utf-8").partition("```python\n")[2].partition("```")[0]
    assert "from_module" in block
    monkeypatch.chdir(tmp_path)
    exec(block, {})
    assert load_problem(Path("own/block")).name == "block"


def test_the_same_problem_is_found_again_with_other_weights_and_another_draw(tmp_path: Path) -> None:
    spec = made(tmp_path, Chain(), torch.randn(8, 64))
    spec.path.write_text(spec.path.read_text() + "ideas: [mine]\n")
    text = spec.reference_source("cpu")
    trained = Chain()
    again = made(tmp_path, trained, torch.randn(8, 64))
    assert again.ideas == ["mine"] and again.reference_source("cpu") == text
    with pytest.raises(ProblemError, match="another `interface` than is asked for; change it there"):
        made(tmp_path, trained, torch.randn(8, 64), interface="torch")


@pytest.mark.parametrize(
    "other",
    [
        lambda folder: made(folder, Chain(), torch.randn(4, 64)),
        lambda folder: made(folder, Chain(), torch.randn(8, 64) * 10),
        lambda folder: made(folder, nn.LayerNorm(64), torch.randn(8, 64)),
        lambda folder: made(folder, Chain(), torch.randn(8, 64), name="other"),
    ],
)
def test_another_problem_in_the_folder_is_refused(tmp_path: Path, other: Callable[[Path], ProblemSpec]) -> None:
    made(tmp_path, Chain(), torch.randn(8, 64))
    with pytest.raises(ProblemError, match="another") as caught:
        other(tmp_path)
    assert "\n" not in str(caught.value)


def test_a_count_that_training_raises_is_no_part_of_the_problem(tmp_path: Path) -> None:
    module = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8))
    made(tmp_path, module, torch.randn(4, 8))
    module[1].num_batches_tracked += 1000
    made(tmp_path, module, torch.randn(4, 8))


def test_another_table_is_another_problem(tmp_path: Path) -> None:
    tables = [torch.arange(64.0).sin(), torch.arange(64.0).cos()]

    class Table(nn.Module):
        def __init__(self, table: torch.Tensor) -> None:
            super().__init__()
            self.register_buffer("table", table, persistent=False)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + self.table

    made(tmp_path, Table(tables[0]), torch.randn(8, 64))
    made(tmp_path, Table(tables[0]), torch.randn(8, 64))
    with pytest.raises(ProblemError, match="holds another problem, which is called own too; give another folder"):
        made(tmp_path, Table(tables[1]), torch.randn(8, 64))
    with pytest.raises(ProblemError, match="holds another problem, own; give another folder"):
        made(tmp_path, Table(tables[1]), torch.randn(8, 64), name="mine")


def test_another_constant_of_about_the_same_size_is_another_problem(tmp_path: Path) -> None:
    made(tmp_path, Scaled(0.125), torch.randn(8, 64))
    made(tmp_path, Scaled(0.125), torch.randn(8, 64))
    with pytest.raises(ProblemError, match="holds another problem"):
        made(tmp_path, Scaled(0.2), torch.randn(8, 64))


def test_a_folder_of_something_else_and_one_that_cannot_be_written_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    made(tmp_path, Given(), torch.randn(4))  # an empty folder is as good as none
    (tmp_path / "b" / "own").mkdir(parents=True)
    (tmp_path / "b" / "own" / "precious").write_text("")
    (tmp_path / "c").write_text("")
    for folder, said in (
        (tmp_path / "b", "holds no problem.yaml; give a new folder"),
        (tmp_path / "c", "give another folder"),
    ):
        with pytest.raises(ProblemError, match=said):
            made(folder, Given(), torch.randn(4))
    assert [path.name for path in (tmp_path / "b" / "own").iterdir()] == ["precious"]
