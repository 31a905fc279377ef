"""A floating-point buffer of whole numbers, which trials have as the model makes it, differs where a trial needs another."""

import pytest
import torch
from tests.tools.judge.worker.made import made_of

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


@pytest.mark.parametrize("trial", ["alone_codes", TWEAKED[1], TWEAKED[2]])
def test_a_trial_in_which_it_changes_alone_never_has_it_as_its_base_does(trial: str) -> None:
    found = made_of(SOURCE)
    assert trial in found.domain.names
    for secret in range(16):
        found.source.draw_from(b"%d" % secret)
        base, other = (found.book.contents.of(name)[1]["codes"] for name in (NOMINAL[1], trial))
        assert not torch.equal(base, other)
