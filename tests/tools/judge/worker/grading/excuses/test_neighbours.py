"""What PyTorch loses on neighbouring operands counts where it lost little by luck; where it loses nothing, no limit moves."""

from __future__ import annotations

import pytest
import torch
from tests.tools.judge.worker.grading.judged import Judged

from ridgeline.tools.judge.worker.grading.cases.case import Case, errors_of
from ridgeline.tools.judge.worker.grading.cases.class_errors import floating_errors, rounded
from ridgeline.tools.judge.worker.grading.excuses.neighbours import neighbour_outputs
from ridgeline.tools.records.precision import NOMINAL_GATE
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


SOLVED = (
    "a, x",
    "torch.randn(32, 16, 16) / 4, torch.randn(32, 16)",
    "return torch.linalg.slogdet(a).logabsdet, torch.linalg.solve(a, x[..., None])[..., 0]",
)


def eliminated(a: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return determinants and solutions by elimination, a column after the other."""
    rows, count, size = torch.cat((a, x[..., None]), -1), torch.arange(len(a)), a.shape[-1]
    logarithms, found = torch.zeros(len(a)), torch.zeros(x.shape)
    for k in range(size):
        pivot = rows[:, k:, k].abs().argmax(1) + k
        rows[count, pivot], rows[:, k] = rows[:, k].clone(), rows[count, pivot].clone()
        logarithms += rows[:, k, k].abs().log()
        rows[:, k + 1 :] -= (rows[:, k + 1 :, k] / rows[:, k, k, None])[..., None] * rows[:, k, None]
    for k in reversed(range(size)):
        found[:, k] = (rows[:, k, size] - (rows[:, k, k + 1 : size] * found[:, k + 1 :]).sum(-1)) / rows[:, k, k]
    return logarithms, found


@pytest.mark.parametrize("secret", [b"w8", b"w34", b"w53", b"w149"])
def test_luck_with_whole_numbers_is_held_to_what_their_neighbours_lose(secret: bytes) -> None:
    judged = Judged(*SOLVED, secret=secret)
    case = judged.book.case("integers")
    outputs = eliminated(*case.inputs)
    assert errors_of(outputs, case.expected)[1].overall > NOMINAL_GATE[PrecisionClass.FP32]
    assert judged.passes("integers", eliminated)
    assert not judged.passes("integers", lambda a, x: tuple(o * (1 + 2.0**-10) for o in eliminated(a, x)))


def test_what_whole_numbers_lose_nothing_of_stays_exact() -> None:
    judged = Judged("x", "torch.randn(64, 64)", "return x * x - 1, (x * 4096 + 0.1) - 4096 * x")
    case = judged.book.case("integers")
    outputs = neighbour_outputs(judged.reference, case, 0)
    assert outputs
    errors = floating_errors(outputs, case)
    assert errors[0].is_none
    assert not errors[1].is_none


def test_well_conditioned_whole_numbers_move_no_limit() -> None:
    judged = Judged("x", "torch.randn(64, 64)", "return x @ x.mT / 3")
    case = judged.book.case("integers")
    outputs = neighbour_outputs(judged.reference, case, 0)
    assert outputs
    assert floating_errors(outputs, case)[0].overall < 1e-6
    assert not judged.passes("integers", lambda x: x @ x.mT / 3 * (1 + 2e-5))


def test_masks_stay() -> None:
    judged = Judged("x, m", "torch.randn(64, 64), (torch.rand(64, 64) > 0.5).float()", "return x / 3 * m")
    assert neighbour_outputs(judged.reference, judged.book.case("nominal_0"), 0)
    case = judged.book.case("integers")
    case.inputs = (case.inputs[1], case.inputs[1])
    assert neighbour_outputs(judged.reference, case, 0) is None


def test_a_mask_beside_an_output_is_the_expected_one() -> None:
    judged = Judged("x", "torch.randn(64, 64)", "return x / 3, x > 0")
    case = judged.book.case("nominal_0")
    outputs = neighbour_outputs(judged.reference, case, 0)
    assert outputs
    assert torch.equal(outputs[1], case.expected[1].values)
