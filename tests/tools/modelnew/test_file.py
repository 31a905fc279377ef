"""A KernelBench file with `ModelNew`, loaded and made."""

from __future__ import annotations

import pytest
import torch

from ridgeline.tools.modelnew.file import NoModel, load_file, make_model, told

MODEL = """import torch
class ModelNew(torch.nn.Module):
    def __init__(self, width, *, bias=True):
        super().__init__()
        self.linear = torch.nn.Linear(width, width, bias=bias)
    def forward(self, x):
        return self.linear(x)
"""


def test_a_model_is_made_from_the_public_seed_for_evaluation() -> None:
    module = load_file(MODEL)
    first, second = make_model(module, "[4]"), make_model(module, "[4]")
    assert not first.training and not any(p.requires_grad for p in first.parameters())
    assert torch.equal(first.linear.weight, second.linear.weight)


@pytest.mark.parametrize(
    ("source", "says"), [("", "defines no `ModelNew`"), ("def ModelNew():\n    return 3\n", "gives a int, not a")]
)
def test_a_file_without_a_usable_model_says_what_it_has_to_define(source: str, says: str) -> None:
    with pytest.raises(NoModel, match=says) as caught:
        make_model(load_file(source), "[]")
    assert told(caught.value) == str(caught.value)


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("x = 1\n1 / 0\n", "candidate.py:2: ZeroDivisionError: division by zero"),
        ("def f():\n    raise ValueError('two\\n lines')\nf()\n", "candidate.py:2: ValueError: two lines"),
        ("x = (\n", "candidate.py:1: SyntaxError: "),
    ],
)
def test_an_exception_is_told_in_one_line_with_the_file_s_own_line(source: str, says: str) -> None:
    with pytest.raises(Exception) as caught:
        load_file(source)
    assert told(caught.value).startswith(says) and "\n" not in told(caught.value)
