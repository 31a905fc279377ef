"""Winners that are loaded with a model of other weights than the run's reference had."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
import torch
from tests.graph.library.test_winner import COLS, OUT, ROWS, SCALE, X, write_run

from ridgeline.graph.library.winner import load
from ridgeline.tools.errors import InputError
from ridgeline.tools.records.problem import Signature

pytestmark = pytest.mark.any_tier

REFERENCE = f"""
import dataclasses

import torch


@dataclasses.dataclass
class Sizes:
    cols: "int" = {COLS}


class Model(torch.nn.Module):
    def __init__(self, eps=0.25):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.rand(Sizes().cols))
        self.eps = eps

    def forward(self, x):
        return x * self.weight + self.eps


def get_inputs():
    return [torch.randn({ROWS}, {COLS})]
"""
WEIGHTED = """
void run(const float* x, const float* weight, float* out, void*) {
  for (int i = 0; i < X_NUMEL; i++) out[i] = x[i] * weight[i % X_SHAPE_1] + 0.25f;
}
"""


class Weighted(torch.nn.Module):
    def __init__(self, eps: float = 0.25, *, width: int = COLS) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.rand(width))
        self.drop = torch.nn.Dropout(0.5)  # none in eval mode
        self.eps, self.calls = eps, 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return self.drop(x * self.weight + self.eps)


@pytest.fixture(scope="module")
def weighted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    weight = dataclasses.replace(SCALE, name="weight", source="weight")
    folder = tmp_path_factory.mktemp("weighted") / "run"
    return write_run(folder, Signature(args=(X, weight, OUT)), WEIGHTED, reference=REFERENCE)


def test_a_model_of_other_weights_is_taken_as_it_is_and_left_so(weighted: Path) -> None:
    model, x = Weighted(), torch.randn(ROWS, COLS)
    state = torch.get_rng_state()
    kernel = load(weighted, model)
    assert torch.equal(torch.get_rng_state(), state)
    assert (model.calls, model.training, model.drop.training) == (0, True, True)
    torch.testing.assert_close(kernel(x), model.eval()(x).detach())


def test_a_model_that_computes_something_else_than_the_reference_is_refused(weighted: Path) -> None:
    with pytest.raises(
        InputError, match="^scaled: model gives something else than the run's reference with the same par"
    ):
        load(weighted, Weighted(0.26))
    other = torch.nn.Linear(3, COLS)
    other.weight = torch.nn.Parameter(torch.rand(COLS))
    with pytest.raises(InputError, match="^scaled: model fails on the reference's inputs: RuntimeError: "):
        load(weighted, other)
    with pytest.raises(InputError, match="weight must be float32"):
        load(weighted, Weighted(width=1))(torch.randn(ROWS, COLS))
