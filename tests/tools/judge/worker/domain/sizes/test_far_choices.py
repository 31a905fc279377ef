"""Choices are made to depend on far parts of the inputs, where usual ones depend on near parts alone."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tests.cheats.court import HERE
from tests.tools.judge.worker.made import made_of

from ridgeline.tools.judge.worker.call_form import Tensors
from ridgeline.tools.judge.worker.domain.sizes.far_choices import FarChoices
from ridgeline.tools.judge.worker.inputs.source import SecretSource
from ridgeline.tools.records.trial_names import FAR_CHOICES, LARGE_VECTORS, NOMINAL

ROUTED = (HERE / "routed.py").read_text()
STEPS, READ = 192, 112
WEIGHTED = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter({weight})

    def forward(self, x):
        return {result}


def get_inputs():
    return [torch.randn(32, 64)]


def get_init_inputs():
    return []
"""


def chosen(inputs: tuple[torch.Tensor, ...], parameters: dict[str, torch.Tensor], last: int) -> torch.Tensor:
    kept, x = torch.sigmoid(parameters["decay"]), inputs[0]
    state = torch.zeros_like(x[0])
    for step in x[STEPS - last :]:
        state = kept * state + (1 - kept) * step
    return (state @ parameters["router"]).argmax(-1)


@pytest.mark.parametrize("secret", [b"secret", b"another", b"third"])
def test_choices_of_what_gates_keep_depend_on_all_steps_in_one_trial(secret: bytes) -> None:
    found = made_of(ROUTED, secret=secret)
    assert {FAR_CHOICES, LARGE_VECTORS} <= set(found.domain.names)
    for name, is_seen in ((NOMINAL[0], False), (FAR_CHOICES, True)):
        case = found.book.case(name)
        inputs, parameters = (t.double() for t in case.inputs), {n: t.double() for n, t in case.parameters.items()}
        exact = tuple(inputs), parameters
        differ = chosen(*exact, READ) != chosen(*exact, STEPS)
        assert bool(differ.double().mean() > 1 / 8) is is_seen
        assert torch.equal(chosen(case.inputs, case.parameters, STEPS), chosen(*exact, STEPS))


@pytest.mark.parametrize(
    ("weight", "result", "is_looked_at"),
    [
        ("torch.randn(64, 8)", "(torch.tanh(x @ self.weight) + x[:, :8]).argmax(-1)", True),
        ("torch.randn(64)", "torch.where(x > self.weight, x, -x)", True),
        ("torch.randn(64)", "torch.tanh(x * self.weight)", False),
    ],
)
def test_choices_that_show_all_that_they_are_made_by_need_no_such_trial(
    monkeypatch: pytest.MonkeyPatch, weight: str, result: str, is_looked_at: bool
) -> None:
    usual = list[tuple[float, ...]]()
    shown = FarChoices._shown

    def noted(self: FarChoices, *args: Any) -> tuple[float, ...]:
        found = shown(self, *args)
        usual.append(found)
        return found

    monkeypatch.setattr(FarChoices, "_shown", noted)
    assert FAR_CHOICES not in made_of(WEIGHTED.format(weight=weight, result=result)).domain.names
    assert len(usual) == is_looked_at, "usual choices show enough: no other arguments are tried"
    assert all(share >= 1 / 16 for each in usual for share in each)


def test_what_far_parts_are_replaced_by_is_drawn_once(monkeypatch: pytest.MonkeyPatch) -> None:
    labels, nominal = list[str](), SecretSource.nominal

    def noted(source: SecretSource, label: str, *, is_timed: bool = False) -> Tensors:
        labels.append(label)
        return nominal(source, label, is_timed=is_timed)

    monkeypatch.setattr(SecretSource, "nominal", noted)
    assert FAR_CHOICES in made_of(ROUTED).domain.names
    assert labels.count(f"{FAR_CHOICES}:other") == 1
