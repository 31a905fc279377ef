"""Larger arguments show a limit that lies beyond the usual ones, and nothing where they merely scale the output."""

from __future__ import annotations

import pytest
import torch
from tests.tools.judge.worker.domain.sizes.test_sized_trials import large, module
from tests.tools.judge.worker.made import made

from ridgeline.tools.judge.worker.grading.outputs.compare import compare
from ridgeline.tools.records.trial_names import LARGE_BLOCKED, LARGE_INPUTS, LARGE_MATRICES, OF_SQUARES

LIMITED = """norm = torch.linalg.vector_norm(self.weight)
        return x @ (self.weight / {limit}).mT"""


@pytest.mark.parametrize(
    "limit",
    [
        "torch.clamp(norm / 4, min=1.0)",
        "torch.maximum(norm / 4, torch.ones(()))",
        "(1 + torch.relu(norm / 4 - 1))",
        "torch.stack([norm / 4, torch.ones(())]).amax()",
        "torch.where(norm > 4, norm / 4, 1.0)",
        "max(1.0, float(norm) / 4)",
        "(1 + torch.nn.functional.softplus(40 * (norm / 4 - 1)) / 40)",
    ],
)
def test_a_limit_beyond_twice_the_usual_weights_is_met_by_the_trials(limit: str) -> None:
    making = "self.weight = nn.Parameter(torch.randn(16, 16) / 16)"
    found = module(making, LIMITED.format(limit=limit), "32, 16")
    assert LARGE_MATRICES in large(found)

    def without_limit(name: str) -> torch.Tensor:
        case = found.book.case(name)
        return case.inputs[0].double() @ case.parameters["weight"].double().mT

    for name, is_seen in (("nominal_0", False), (LARGE_MATRICES, True)):
        expected = found.book.case(name).expected[0]
        assert (compare(without_limit(name), expected).errors.overall > 1e-2) is is_seen


@pytest.mark.parametrize(
    "body",
    [
        "return self.second(torch.relu(self.first(x)))",
        "return torch.clamp(self.first(x), min=0) @ self.second.weight.abs()",
        "return self.second(torch.nn.functional.leaky_relu(self.first(x))).half()",
    ],
)
def test_what_merely_scales_at_any_size_has_no_trials_of_larger_weights(body: str) -> None:
    making = "; ".join(f"self.{name} = nn.Linear(64, 64, bias=False)" for name in ("first", "second"))
    assert not {LARGE_MATRICES, LARGE_INPUTS, LARGE_BLOCKED, *OF_SQUARES}.intersection(large(module(making, body)))


def test_numbers_beyond_the_range_of_a_type_at_eight_times_tell_nothing() -> None:
    found = made("x", "torch.randn(32, 64).half()", "return x * 4096")
    assert LARGE_INPUTS not in large(found)
