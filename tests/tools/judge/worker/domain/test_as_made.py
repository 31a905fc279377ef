"""One trial has the module's own parameters and buffers beside inputs as they are drawn: there equal numbers of both meet."""

from __future__ import annotations

import torch
from tests.tools.judge.worker.made import made, made_of

from ridgeline.tools.judge.worker.grading.excuses.last_bits import excused
from ridgeline.tools.judge.worker.grading.outputs.compare import compare
from ridgeline.tools.records.trial_names import AS_MADE, NOMINAL, TIMED

BINS = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("edges", torch.arange(-8, 8) / 8)
        self.scale = nn.Parameter(torch.ones(32))

    def forward(self, x):
        return torch.bucketize(x, self.edges, right=True) * x * self.scale


def get_inputs():
    return [torch.randint(-9, 10, (16, 32)) / 8]


def get_init_inputs():
    return []
"""


def in_the_lower_bin(x: torch.Tensor, edges: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    return torch.bucketize(x, edges) * x * scale


def test_what_lies_on_an_edge_is_met_beside_the_modules_own_edges_alone() -> None:
    found = made_of(BINS)
    for name, is_seen in ((NOMINAL[0], False), (AS_MADE, True)):
        case = found.book.case(name)
        output = in_the_lower_bin(*case.inputs, **case.parameters)
        assert (compare(output, case.expected[0]).errors.overall > 1e-2) is is_seen
    own = found.book.case(AS_MADE).parameters
    assert torch.equal(own["edges"], torch.arange(-8, 8) / 8) and torch.equal(own["scale"], torch.ones(32))
    assert AS_MADE in found.domain.names and AS_MADE in TIMED


def test_last_bits_do_not_decide_where_a_given_number_equals_an_edge() -> None:
    found = made_of(BINS)
    case = found.book.case(AS_MADE)
    outputs = (in_the_lower_bin(*case.inputs, **case.parameters),)
    for output in excused(found.book._reference, case, 0, outputs):
        assert compare(output, case.expected[0]).errors.overall > 1e-2


def test_a_reference_without_parameters_has_no_such_trial() -> None:
    assert AS_MADE not in made("x", "torch.randn(16, 32)", "return x.tanh()").domain.names
