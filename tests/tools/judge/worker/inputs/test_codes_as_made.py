"""A floating-point buffer of whole numbers, which trials have as the model makes it, differs where a trial needs another."""

import pytest
import torch
from tests.tools.judge.worker.made import made_of

from ridgeline.tools.judge.worker.inputs.parameters import ParameterSource
from ridgeline.tools.judge.worker.inputs.source import SecretSource
from ridgeline.tools.judge.worker.reference import Reference
from ridgeline.tools.records.trial_names import NOMINAL, TWEAKED

SOURCE = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("codes", torch.randint(9, (6, 8)).float())
        self.weight = nn.Parameter(torch.randn(6, 8))

    def forward(self, x):
        return x[:, None] * self.codes + (x[:, None].round() == self.codes) * self.weight


def get_inputs():
    return [torch.randn(64, 8)]


def get_init_inputs():
    return []
"""

COMPARED = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("listed", {made})

    def forward(self, x):
        return x.sum() == self.listed


def get_inputs():
    return [torch.randn(64, 8)]


def get_init_inputs():
    return []
"""


@pytest.mark.parametrize("trial", ["alone_codes", TWEAKED[1], TWEAKED[2]])
def test_a_trial_in_which_it_changes_alone_never_has_it_as_its_base_does(trial: str) -> None:
    found = made_of(SOURCE)
    assert trial in found.domain.names
    for secret in range(16):
        found.source.draw_from(b"%d" % secret)
        base, other = (found.book.contents.of(name)[1]["codes"] for name in (NOMINAL[1], trial))
        assert not torch.equal(base, other)


def weights_with(made: str, secret: bytes) -> ParameterSource:
    """Return the parameters of a model to whose buffer, made so, inputs are compared."""
    weights = SecretSource(Reference(COMPARED.format(made=made)), secret).weights
    weights.are_ways_known = True
    return weights


@pytest.mark.parametrize("made", ["torch.arange(16.0)", "torch.tensor([3.0, -1.0, 5.0, 3.0, -1.0])"])
def test_a_floating_buffer_of_whole_numbers_is_at_times_as_the_model_makes_it(made: str) -> None:
    weights = weights_with(made, b"secret")
    draws = [weights.usual(f"draw {i}")["listed"] for i in range(64)]
    default = weights.defaults["listed"]
    assert 16 <= sum(torch.equal(draw, default) for draw in draws) <= 48
    for secret in (b"one", b"another"):
        assert all(torch.equal(weights_with(made, secret).usual(trial)["listed"], default) for trial in NOMINAL)
    assert any(not bool(torch.isin(draw, default).any()) for draw in draws)
    others = [weights.unlike(weights.usual(NOMINAL[0]), weights.usual(f"draw {i}"), f"draw {i}") for i in range(64)]
    assert not any(torch.equal(values["listed"], default) for values in others)
    facts = {weights_with(made, b"%d" % i).of_one_sign for i in range(16)}
    assert len(facts) == 1, "what is found out of it depends on no secret"


@pytest.mark.parametrize(
    "made",
    [
        "torch.tensor([3.0, -1.0, 3.0, -1.0])",
        "torch.arange(16.0) / 2",
        "(torch.arange(8.0) - torch.arange(8.0)[:, None]).abs()",
    ],
    ids=["of two numbers", "of halves", "a symmetric matrix"],
)
def test_a_floating_buffer_that_lists_no_whole_numbers_is_never_as_the_model_makes_it(made: str) -> None:
    weights = weights_with(made, b"secret")
    draws = [weights.usual(f"draw {i}")["listed"] for i in range(16)]
    assert not any(torch.equal(draw, weights.defaults["listed"]) for draw in draws)
