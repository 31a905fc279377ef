"""The inputs and weights that a reference draws in the way of an example."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tests.problems.live.modules import Given, Scaled, made, reference_of
from torch import nn

from ridgeline.problems.spec import ProblemSpec


def drawn_like(folder: Path, example: torch.Tensor) -> torch.Tensor:
    spec = ProblemSpec.from_module(Given(), (example,), name="given", folder=folder / "given")
    drawn = reference_of(spec).get_inputs()[0]
    assert (drawn.shape, drawn.dtype, drawn.stride()) == (example.shape, example.dtype, example.stride())
    return drawn  # type: ignore[no-any-return]


CAUSAL = torch.full((64, 64), float("-inf")).triu(1)
KEPT: dict[str, torch.Tensor] = {
    "causal": CAUSAL,
    "boolean": torch.ones(64, 64).tril().bool(),
    "lengths": torch.tensor([0, 7, 9, 20], dtype=torch.int32),
    "positions": torch.arange(600),
    "permutation": torch.randperm(600),
    "one": torch.tensor(7),
    "true": torch.ones(3, dtype=torch.bool),
    "grid": torch.linspace(0, 1, 50),
    "biased": torch.where(CAUSAL == 0, torch.randn(64, 64), CAUSAL),
}


@pytest.mark.parametrize("name", KEPT)
def test_an_example_with_a_structure_is_kept(tmp_path: Path, name: str) -> None:
    assert torch.equal(drawn_like(tmp_path, KEPT[name]), KEPT[name])


def test_an_empty_example_is_kept(tmp_path: Path) -> None:
    class Joined(nn.Module):
        def forward(self, x: torch.Tensor, rest: torch.Tensor) -> torch.Tensor:
            return torch.cat([x, rest])

    example = (torch.randn(4, 3), torch.zeros(0, 3))
    spec = ProblemSpec.from_module(Joined(), example, name="joined", folder=tmp_path / "joined")
    assert reference_of(spec).get_inputs()[1].shape == (0, 3)


def test_a_permuted_layout_is_drawn_in_its_own_strides(tmp_path: Path) -> None:
    drawn_like(tmp_path, torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last))


@pytest.mark.parametrize(
    ("example", "is_like"),
    [
        (torch.randn(64, 64) * 100 + 1000, lambda t: 64 < t.std() < 160 and 900 < t.mean() < 1100),
        (torch.rand(64, 64), lambda t: 0 <= t.min() < 0.1 and 0.9 < t.max() <= 1.1),
        (-torch.rand(64, 64) - 1, lambda t: t.min() >= -2.2 and t.max() <= -0.9),
        (torch.ones(64, 64), lambda t: t.min() >= 0.5 and t.max() <= 1.5 and t.std() > 0.1),
        (torch.zeros(64, 64), lambda t: t.min() < 0 < t.max()),
        (torch.randint(3, 50, (64, 64)), lambda t: t.min() == 3 and t.max() == 49),
        (torch.rand(1024, 1024) < 0.25, lambda t: 0.2 < t.double().mean() < 0.3),
        ((torch.rand(1024, 1024) < 0.25).float(), lambda t: 0.2 < t.mean() < 0.3 and set(t.unique().tolist()) == {0, 1}),
        (torch.randn(64, dtype=torch.float64) * 1e-5, lambda t: 4e-6 < t.std() < 3e-5),
    ],
)  # fmt: skip
def test_other_inputs_are_drawn_in_the_way_of_the_example(
    tmp_path: Path, example: torch.Tensor, is_like: Callable[[torch.Tensor], bool]
) -> None:
    assert is_like(drawn_like(tmp_path, example))


def test_indices_stay_within_those_of_the_example(tmp_path: Path) -> None:
    spec = made(tmp_path, nn.Embedding(32, 8), torch.randint(0, 32, (4, 16)))
    reference = reference_of(spec)
    assert reference.Model()(*reference.get_inputs()).shape == (4, 16, 8)


def test_a_variance_of_few_channels_stays_positive(tmp_path: Path) -> None:
    module = nn.BatchNorm1d(4)
    module.running_var.copy_(torch.tensor([0.1, 0.2, 5.0, 0.4]))
    variance = reference_of(made(tmp_path, module, torch.randn(8, 4))).Model().running_var
    assert (variance > 0).all() and not torch.equal(variance, module.running_var)


@pytest.mark.parametrize("number", [float("-inf"), float("nan")])
def test_a_number_that_is_not_finite_is_given_as_it_is(tmp_path: Path, number: float) -> None:
    reference = reference_of(made(tmp_path, Scaled(0.125), torch.randn(8, 64), number))
    x, given = reference.get_inputs()
    assert repr(given) == repr(number)
    assert torch.allclose(reference.Model()(x, given), Scaled(0.125)(x, given), equal_nan=True)
