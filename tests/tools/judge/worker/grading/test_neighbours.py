"""What PyTorch loses on neighbouring operands counts where it lost little by luck; where it loses nothing, no limit moves."""

from __future__ import annotations

import torch
from tests.tools.judge.worker.grading.judged import Judged

from ridgeline.tools.judge.worker.grading.case import Case
from ridgeline.tools.judge.worker.grading.class_errors import floating_errors, rounded
from ridgeline.tools.judge.worker.grading.neighbours import neighbour_outputs
from ridgeline.tools.records.vocabulary import PrecisionClass

CANCELLING = "return torch.stack(((x + 4096) - 4096, x), -1)"


def errors_beside(judged: Judged, case: Case) -> list[float]:
    found = []
    for rng_seed in range(4):
        outputs = neighbour_outputs(judged.reference, case, rng_seed)
        errors = outputs and floating_errors(outputs, case)
        assert errors
        found.append(errors[0].overall)
    return found


def test_a_lucky_run_is_held_to_what_its_neighbours_lose() -> None:
    judged = Judged("x", "torch.randn(64, 64)", CANCELLING)
    case = judged.book.case("nominal_0")
    lost = judged.book.own_errors(case, PrecisionClass.FP32)
    assert lost
    case.own[PrecisionClass.FP32] = tuple(type(e)(overall=e.overall / 16) for e in lost)
    assert all(0.5 < each / lost[0].overall < 2 for each in errors_beside(judged, case))

    def kernel(x: torch.Tensor) -> torch.Tensor:
        return torch.stack(((x - 4096) + 4096, x), -1)  # as much, at other places

    assert judged.passes("nominal_0", kernel)
    assert not judged.passes("nominal_0", lambda x: kernel(rounded(x, PrecisionClass.BF16)))


def test_no_neighbour_has_more_bits_than_the_operand() -> None:
    judged = Judged("x", "torch.randn(64, 64)", "return x * x - 1")
    case = judged.book.case("nominal_0")
    case.inputs = tuple(rounded(t, PrecisionClass.BF16) for t in case.inputs)  # its products are exact
    outputs = neighbour_outputs(judged.reference, case, 0)
    assert outputs
    exact = case.expected[0].values
    assert float((outputs[0] - exact).abs().max()) < 2.0**-20
    whole = Judged("x", "torch.randn(64, 64)", "return torch.exp(x)").book.case("integers")
    assert neighbour_outputs(judged.reference, whole, 0) is None
