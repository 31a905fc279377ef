"""Choices are made to depend on far parts of the inputs, where usual ones depend on near parts alone."""

from __future__ import annotations

import pytest
import torch
from tests.cheats.court import HERE
from tests.tools.judge.worker.made import made, made_of

from ridgeline.tools.records.trial_names import FAR_CHOICES, LARGE_VECTORS, NOMINAL

ROUTED = (HERE / "routed.py").read_text()
STEPS, READ = 192, 112


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
    ("names", "inputs", "body"),
    [
        ("x, w", "torch.randn(32, 64), torch.randn(64, 8)", "return (x @ w).argmax(-1)"),
        ("x, y", "torch.randn(32, 64), torch.randn(32, 64)", "return torch.where(x > 0, x, y)"),
        ("x", "torch.randn(32, 64)", "return torch.tanh(x)"),
    ],
)
def test_choices_that_show_all_that_they_are_made_by_need_no_such_trial(names: str, inputs: str, body: str) -> None:
    assert FAR_CHOICES not in made(names, inputs, body).domain.names
